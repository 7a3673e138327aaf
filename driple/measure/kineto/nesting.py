"""What stands around each event of the host: op, phase, module and annotation.

    TraceColumns -> events of each thread by start -> a stack of what is open -> HostEvents

The backward pass runs without its modules around it: each of its ops has the sequence number of the
op of the forward pass that it is the gradient of, and counts in that one's module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.measure.kineto.columns import EventKind, TraceColumns
from driple.measure.kineto.kinds import group_of_op

__all__ = ["BACKWARD", "DATA", "FORWARD", "PHASES", "STEP_NAME", "UPDATES", "HostEvents", "nest"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
SmallArray = npt.NDArray[np.int32]

STEP_NAME = "ProfilerStep#"
PHASES = ("forward", "backward", "update", "data loading")
FORWARD, BACKWARD, UPDATES, DATA = range(4)
_BACKWARD_NAME = "autograd::engine::evaluate_function"
_UPDATE_NAME = "Optimizer.step"
_DATA_NAME = "enumerate(DataLoader)"
_LATER_US = 1e-3  # an event that begins so little before another's end begins after it
_MOST_PATHS = 100_000
_MOST_LEVELS = 100


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class HostEvents:
    """Events of the host, thread by thread, each thread by start.

    Attributes:
        index: shape [n], their places in the columns.
        group: shape [n], place in `groups` of the outermost op around it, or itself; -1 without.
        phase: shape [n], place in `PHASES`.
        module: shape [n], place in `paths`.
        label: shape [n], place in the names of the innermost annotation around it; -1 without.
        own_us: shape [n], of an op without the ops in it; 0 of other events.
        is_top: shape [n], whether it is an op that no other op is around.
        groups: names of kinds of op.
        paths: names of modules from the outermost on; the first is that of no module.
    """

    index: IntArray
    group: SmallArray
    phase: SmallArray
    module: SmallArray
    label: SmallArray
    own_us: FloatArray
    is_top: npt.NDArray[np.bool_]
    groups: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class _Open:
    """An event that has not ended, with what its inner events take over."""

    end: float
    place: int  # in the thread's events
    op: int  # place of the innermost op, itself included; -1 without
    group: int
    phase: int
    module: int
    label: int
    sequence: int


def nest(columns: TraceColumns) -> HostEvents:
    """Find what stands around each event of the host."""
    index = np.flatnonzero(columns.kind <= EventKind.LAUNCH)
    kind, lane = columns.kind[index], columns.lane[index]
    start, length = columns.start_us[index], columns.length_us[index]
    rank = np.array([2, 0, 1, 3])[kind]  # of events of the same time: the annotation is outside
    order = np.lexsort((rank, -length, start, lane))
    index = index[order]
    size = len(index)
    arrays = {name: np.full(size, -1, np.int32) for name in ("group", "phase", "module", "label")}
    sequences, own_us = np.full(size, -1, np.int64), np.zeros(size)
    is_top = np.zeros(size, np.bool_)
    threads = _Threads(columns.names)
    bounds = np.flatnonzero(np.diff(columns.lane[index])) + 1
    for begin, end in zip([0, *bounds.tolist()], [*bounds.tolist(), size], strict=True):
        if begin == end:
            continue
        part = slice(begin, end)
        rows = threads.walk(columns, index[part])
        for name, values in zip((*arrays, "sequence", "own", "top"), rows, strict=True):
            target = arrays.get(name)
            if target is not None:
                target[part] = values
            elif name == "sequence":
                sequences[part] = values
            elif name == "own":
                own_us[part] = values
            else:
                is_top[part] = values
    backward = np.flatnonzero(sequences >= 0)
    of_forward = threads.module_of_sequence
    arrays["module"][backward] = [of_forward.get(key, 0) for key in sequences[backward].tolist()]
    return HostEvents(
        index=index,
        own_us=own_us,
        is_top=is_top,
        groups=tuple(threads.groups),
        paths=tuple(threads.paths),
        **arrays,
    )


class _Threads:
    """The walk over all threads, with what they share."""

    def __init__(self, names: Sequence[str]) -> None:
        self.groups: dict[str, int] = {}
        self.paths: list[tuple[str, ...]] = [()]
        self.module_of_sequence: dict[int, int] = {}
        self._path_of: dict[tuple[int, int], int] = {}
        groups = [group_of_op(name) for name in names]
        self._group = [
            -1 if group is None else self.groups.setdefault(group, len(self.groups))
            for group in groups
        ]
        self._names = names
        self._is_backward = [name.startswith(_BACKWARD_NAME) for name in names]
        self._phase = [
            UPDATES if name.startswith(_UPDATE_NAME)
            else DATA if name.startswith(_DATA_NAME)
            else -1
            for name in names
        ]  # fmt: skip
        self._is_step = [name.startswith(STEP_NAME) for name in names]

    def walk(self, columns: TraceColumns, index: IntArray) -> tuple[list[float], ...]:
        """Group, phase, module, label, sequence, own time and whether on top, of each event."""
        starts = columns.start_us[index].tolist()
        lengths = columns.length_us[index].tolist()
        kinds, names = columns.kind[index].tolist(), columns.name[index].tolist()
        keys = columns.key[index].tolist()
        own = [0.0] * len(starts)
        rows: tuple[list[float], ...] = tuple([] for _ in range(5))
        groups, phases, modules, labels, sequences = rows
        tops: list[float] = []
        outside = _Open(0.0, -1, -1, -1, FORWARD, 0, -1, -1)
        stack: list[_Open] = []
        for place, (start, length, kind, name) in enumerate(
            zip(starts, lengths, kinds, names, strict=True)
        ):
            while stack and stack[-1].end <= start + _LATER_US:
                stack.pop()
            around = stack[-1] if stack else outside
            opened = _Open(
                start + length, place, around.op, around.group, around.phase, around.module,
                around.label, around.sequence,
            )  # fmt: skip
            top = False
            if kind == EventKind.OP:
                top = around.op < 0
                if not top:
                    own[around.op] -= length
                own[place] += length
                self._enter_op(opened, name, keys[place])
            elif kind == EventKind.MODULE:
                if opened.sequence < 0:
                    opened.module = self._path(around.module, name)
            elif kind == EventKind.ANNOTATION and not self._is_step[name]:
                opened.label = name
                if self._phase[name] >= 0:
                    opened.phase = self._phase[name]
            groups.append(opened.group)
            phases.append(opened.phase)
            modules.append(opened.module)
            labels.append(opened.label)
            sequences.append(opened.sequence)
            tops.append(top)
            if kind != EventKind.LAUNCH:
                stack.append(opened)
        return (*rows, [max(value, 0.0) for value in own], tops)

    def _enter_op(self, opened: _Open, name: int, key: int) -> None:
        opened.op = opened.place
        if self._is_backward[name]:
            opened.phase = BACKWARD
            if opened.sequence < 0:
                opened.sequence = key
        elif opened.phase == FORWARD and key >= 0:
            self.module_of_sequence[key] = opened.module
        if opened.group < 0:
            opened.group = self._group[name]

    def _path(self, around: int, name: int) -> int:
        """Number of the path of a module within another."""
        known = self._path_of.get((around, name))
        if known is None:
            path = self.paths[around]
            if len(self.paths) >= _MOST_PATHS or len(path) >= _MOST_LEVELS:
                return around
            known = self._path_of[around, name] = len(self.paths)
            self.paths.append((*path, self._names[name]))
        return known
