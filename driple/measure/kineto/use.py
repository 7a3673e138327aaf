"""A trace of training steps, summed: time by kind of op, phase and module, and gaps.

    TraceColumns, HostEvents -> steps (ProfilerStep#) -> TraceUse: medians over the steps

With kernels of a GPU in the trace, times are of the GPU, by the op of the host that started each
kernel. Without, times are of the host: of each op without the ops in it.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.measure.kineto.columns import EventKind, TraceColumns, read_trace
from driple.measure.kineto.gaps import Gap, find_gaps
from driple.measure.kineto.kinds import COLLECTIVE, COPY_TO_DEVICE, OTHER, UPDATE
from driple.measure.kineto.nesting import DATA, PHASES, STEP_NAME, UPDATES, HostEvents, nest

__all__ = ["DATA_LOADING", "FUSED", "TraceUse", "Windows", "trace_use", "use_of_columns"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

DATA_LOADING, FUSED = "data_loading", "fused"
_US = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class Windows:
    """Times of the steps, in order.

    Attributes:
        start_us: shape [steps], microseconds since the first event.
        end_us: shape [steps].
        marked: whether the trace marks them; else the whole trace is one.
    """

    start_us: FloatArray
    end_us: FloatArray
    marked: bool

    def step_of(self, time_us: FloatArray) -> IntArray:
        """The step of each time; -1 outside of all."""
        steps = np.searchsorted(self.start_us, time_us, side="right") - 1
        outside = (steps < 0) | (time_us > self.end_us[np.maximum(steps, 0)])
        return np.where(outside, -1, steps).astype(np.int64)


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceUse:
    """What a trace shows of a step; each number is the median over its steps.

    Attributes:
        num_steps: steps of the trace.
        marked: whether the trace marks its steps; else the whole trace counts as one.
        device: name of the GPU; empty where the trace has no kernels of one.
        on_gpu: whether times are those of kernels.
        other_devices: GPUs of the trace that are left out, as another one does more.
        step_s: from one step's begin to the next one's.
        busy_s: in which a kernel runs, or an op of the host.
        kinds: seconds by kind of op, as `driple.measure.kineto.kinds` groups them.
        counts: kernels, or ops of the host, by kind.
        phases: seconds by phase.
        modules: seconds of each module without the modules in it, by names from the outermost on,
            in order of their first call; that of no module is empty.
        gaps: where no kernel, or no op, runs; the ones that take most time first.
        num_events: events of the file.
        num_bytes: of its text.
    """

    num_steps: int
    marked: bool
    device: str
    on_gpu: bool
    other_devices: int
    step_s: float
    busy_s: float
    kinds: dict[str, float]
    counts: dict[str, float]
    phases: dict[str, float]
    modules: dict[tuple[str, ...], float]
    gaps: tuple[Gap, ...]
    num_events: int
    num_bytes: int


def trace_use(path: Path, modules: Set[str] = frozenset()) -> TraceUse:
    """Read a trace and sum it up.

    Args:
        path: JSON of `export_chrome_trace`, gzipped or not.
        modules: paths of the job's modules, which annotations (`record_function`) may name.

    Raises:
        TraceError: a file that is no trace of a training step, damaged or too large.
    """
    return use_of_columns(read_trace(path, modules))


def use_of_columns(columns: TraceColumns) -> TraceUse:
    """Sum up a trace that was read."""
    host = nest(columns)
    windows = _windows(columns)
    kernels = np.flatnonzero(columns.kind >= EventKind.KERNEL)
    on_gpu = bool(len(kernels))
    number, others = -1, 0
    if on_gpu:
        number, others = _busiest(columns, kernels)
        kernels = kernels[columns.lane[kernels] == number]
        work = _of_kernels(columns, host, kernels)
    else:
        work = _of_ops(columns, host)
    step = windows.step_of(work.time_us)
    size = len(windows.start_us)
    gaps, busy_s = find_gaps(
        windows.start_us,
        windows.end_us,
        work.start_us[work.is_busy],
        work.end_us[work.is_busy],
        host=work.host[work.is_busy],
        launch_us=work.time_us[work.is_busy] if on_gpu else None,
        columns=columns,
        events=host,
    )
    seconds = work.length_us * _US
    kinds = _medians(step, work.group, seconds, size, len(work.groups))
    counts = _medians(step, work.group, np.ones(len(step)), size, len(work.groups))
    phases = _medians(step, work.phase, seconds, size, len(PHASES))
    modules = _medians(step, work.module, seconds, size, len(host.paths))
    return TraceUse(
        num_steps=size,
        marked=windows.marked,
        device=columns.devices.get(number, "") if on_gpu else "",
        on_gpu=on_gpu,
        other_devices=others,
        step_s=float(np.median(windows.end_us - windows.start_us)) * _US,
        busy_s=busy_s,
        kinds={name: kinds[i] for i, name in enumerate(work.groups) if kinds[i] > 0},
        counts={name: counts[i] for i, name in enumerate(work.groups) if kinds[i] > 0},
        phases={name: phases[i] for i, name in enumerate(PHASES) if phases[i] > 0},
        modules={path: modules[i] for i, path in enumerate(host.paths)},
        gaps=gaps,
        num_events=columns.num_events,
        num_bytes=columns.num_bytes,
    )


def _windows(columns: TraceColumns) -> Windows:
    """The steps that the trace marks; the whole trace where it marks none."""
    names = [
        int(digits) if (digits := name.removeprefix(STEP_NAME)).isdecimal() and len(digits) < 16
        else -1
        for name in columns.names
    ]  # fmt: skip
    is_step = np.array([name.startswith(STEP_NAME) for name in columns.names], np.bool_)
    marks = np.flatnonzero((columns.kind == EventKind.ANNOTATION) & is_step[columns.name])
    spans: dict[int, tuple[float, float]] = {}
    for mark in marks.tolist():
        start, length = float(columns.start_us[mark]), float(columns.length_us[mark])
        kept = spans.get(int(columns.name[mark]))
        if length > 0 and (kept is None or length > kept[1]):
            spans[int(columns.name[mark])] = (start, length)
    if not spans:
        ends = columns.start_us + columns.length_us
        start = float(columns.start_us.min())
        end = max(float(ends.max()), start + _US)
        return Windows(start_us=np.array([start]), end_us=np.array([end]), marked=False)
    ordered = sorted((start, length, names[name]) for name, (start, length) in spans.items())
    starts, ends_us = [], []
    for place, (start, length, number) in enumerate(ordered):
        following = ordered[place + 1] if place + 1 < len(ordered) else None
        own_end = start + length
        if following is not None:  # steps do not overlap, and consecutive ones have no gap
            own_end = following[0] if following[2] == number + 1 else min(own_end, following[0])
        if own_end > start:
            starts.append(start)
            ends_us.append(own_end)
    return Windows(start_us=np.array(starts), end_us=np.array(ends_us), marked=True)


def _busiest(columns: TraceColumns, kernels: IntArray) -> tuple[int, int]:
    """The device whose kernels take most time, and how many others there are."""
    devices, which = np.unique(columns.lane[kernels], return_inverse=True)
    spent = np.bincount(which, weights=columns.length_us[kernels])
    return int(devices[int(np.argmax(spent))]), len(devices) - 1


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Work:
    """Kernels, or ops of the host, with what they count as.

    Attributes:
        time_us: when the host came to it.
        start_us: when it began.
        end_us: when it ended.
        length_us: that count.
        is_busy: of which the union is busy time.
        host: place in the events of the host; -1 without.
        group: place in `groups`.
        phase: place in `PHASES`.
        module: place in the paths of the host's events.
        groups: names of kinds.
    """

    time_us: FloatArray
    start_us: FloatArray
    end_us: FloatArray
    length_us: FloatArray
    is_busy: npt.NDArray[np.bool_]
    host: IntArray
    group: IntArray
    phase: IntArray
    module: IntArray
    groups: tuple[str, ...]


def _of_ops(columns: TraceColumns, host: HostEvents) -> _Work:
    rows = np.flatnonzero(columns.kind[host.index] == EventKind.OP)
    index = host.index[rows]
    start = columns.start_us[index]
    groups, group = _by_phase(host.groups, host.group[rows], host.phase[rows])
    return _Work(
        time_us=start,
        start_us=start,
        end_us=start + columns.length_us[index],
        length_us=host.own_us[rows],
        is_busy=host.is_top[rows],
        host=rows,
        group=group,
        phase=host.phase[rows].astype(np.int64),
        module=host.module[rows].astype(np.int64),
        groups=groups,
    )


def _of_kernels(columns: TraceColumns, host: HostEvents, kernels: IntArray) -> _Work:
    launches = np.flatnonzero(columns.kind[host.index] == EventKind.LAUNCH)
    launches = launches[columns.key[host.index[launches]] >= 0]
    keys = columns.key[host.index[launches]]
    order = np.argsort(keys, kind="stable")
    launches, keys = launches[order], keys[order]
    wanted = columns.key[kernels]
    rows = np.full(len(kernels), -1, np.int64)
    if len(keys):
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        rows = np.where((keys[place] == wanted) & (wanted >= 0), launches[place], -1)
    known = rows >= 0
    safe = np.maximum(rows, 0)

    def taken(values: npt.NDArray[np.int32], otherwise: int) -> IntArray:
        if not len(values):
            return np.full(len(kernels), otherwise, np.int64)
        return np.where(known, values[safe], otherwise).astype(np.int64)

    start = columns.start_us[kernels]
    launch = columns.start_us[host.index[safe]] if len(host.index) else start
    groups, group = _by_phase(host.groups, taken(host.group, -1), taken(host.phase, 0))
    groups, group = _by_kernel(columns, kernels, groups, group)
    return _Work(
        time_us=np.where(known, launch, start),
        start_us=start,
        end_us=start + columns.length_us[kernels],
        length_us=columns.length_us[kernels],
        is_busy=np.ones(len(kernels), np.bool_),
        host=rows,
        group=group,
        phase=taken(host.phase, 0),
        module=taken(host.module, 0),
        groups=groups,
    )


def _by_phase(
    names: tuple[str, ...], group: npt.NDArray[np.integer], phase: npt.NDArray[np.integer]
) -> tuple[tuple[str, ...], IntArray]:
    """Kinds, of which updates and data loading are one each whatever runs in them."""
    groups = tuple(dict.fromkeys((*names, UPDATE, DATA_LOADING, OTHER)))
    groups_shown = np.where(group < 0, groups.index(OTHER), group).astype(np.int64)
    groups_shown[phase == UPDATES] = groups.index(UPDATE)
    groups_shown[phase == DATA] = groups.index(DATA_LOADING)
    return groups, groups_shown


def _by_kernel(
    columns: TraceColumns, kernels: IntArray, names: tuple[str, ...], group: IntArray
) -> tuple[tuple[str, ...], IntArray]:
    """Kinds that a kernel's own name decides."""
    groups = tuple(dict.fromkeys((*names, COLLECTIVE, COPY_TO_DEVICE, "fill", FUSED)))
    own = np.full(len(columns.names), -1, np.int64)
    for place in np.unique(columns.name[kernels]).tolist():
        name = columns.names[place].lower()
        if name.startswith("nccl") or "ncclkernel" in name or "ncclDevKernel".lower() in name:
            own[place] = groups.index(COLLECTIVE)
        elif name.startswith("triton_"):
            own[place] = groups.index(FUSED)
        elif name.startswith("memcpy") and ("htod" in name or "dtoh" in name):
            own[place] = groups.index(COPY_TO_DEVICE)
    decided = own[columns.name[kernels]]
    groups_of_kernels = np.where(decided >= 0, decided, group)
    unknown = groups_of_kernels == groups.index(OTHER)
    groups_of_kernels[unknown & (columns.kind[kernels] == EventKind.FILL)] = groups.index("fill")
    return groups, groups_of_kernels


def _medians(
    step: IntArray, column: IntArray, amount: FloatArray, num_steps: int, num_columns: int
) -> list[float]:
    """Median over the steps of each column's sum, shape [num_columns]."""
    inside = step >= 0
    flat = step[inside] * num_columns + column[inside]
    sums = np.bincount(flat, weights=amount[inside], minlength=num_steps * num_columns)
    medians: list[float] = np.median(sums.reshape(num_steps, num_columns), axis=0).tolist()
    return medians
