"""Gaps of a trace: where no kernel of the GPU runs, or no op of the host.

    steps, busy spans -> what lies between them -> Gap: by cause and by what the host did

A gap of a GPU whose next kernel was not yet launched waits for the host. One whose next kernel was
launched already is the latency of the launch, or a kernel that waits for another stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from driple.measure.kineto.nesting import PHASES

if TYPE_CHECKING:
    from driple.measure.kineto.columns import TraceColumns
    from driple.measure.kineto.nesting import HostEvents

__all__ = ["Gap", "GapCause", "find_gaps"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
GapCause = Literal["host", "launched", "no_op"]

_US = 1e-6
_NUMBER = re.compile(r"#\d+$")
_LEAST_US = 1e-3
_CAUSES: tuple[GapCause, ...] = ("host", "launched", "no_op")


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """Gaps of one cause at one place of the step; medians over the steps.

    Attributes:
        cause: `host` (the GPU waits, as the host has not launched its next kernel), `launched` (the
            GPU waits, its next kernel is launched) or `no_op` (no op of the host runs).
        place: innermost annotation around what comes next, or its phase.
        count: gaps of a step.
        seconds: of a step.
        longest_s: the longest one of all steps.
        before: what the longest one ends with; empty at the end of a step.
    """

    cause: GapCause
    place: str
    count: float
    seconds: float
    longest_s: float
    before: str


def find_gaps(
    step_start_us: FloatArray,
    step_end_us: FloatArray,
    start_us: FloatArray,
    end_us: FloatArray,
    *,
    host: IntArray,
    launch_us: FloatArray | None,
    columns: TraceColumns,
    events: HostEvents,
) -> tuple[tuple[Gap, ...], float]:
    """Gaps by cause and place, and the busy time of a step.

    Args:
        step_start_us: shape [steps].
        step_end_us: shape [steps].
        start_us: shape [n], of what is busy.
        end_us: shape [n].
        host: shape [n], its place in the events of the host; -1 without.
        launch_us: shape [n], when the host launched it; None where it is the host itself.
        columns: the trace.
        events: of the host.

    Returns:
        Gaps, those of most time first, and seconds.
    """
    edges = np.unique(np.concatenate([step_start_us, step_end_us]))
    real = len(start_us)
    starts = np.concatenate([start_us, edges])  # an edge is busy for no time, and splits gaps
    ends = np.concatenate([end_us, edges])
    order = np.argsort(starts, kind="stable")
    starts, until = starts[order], np.maximum.accumulate(ends[order])
    begin, end = until[:-1], starts[1:]
    following = _next_real(order, real)[1:]
    middle = (begin + end) / 2
    step = np.searchsorted(step_start_us, middle, side="right") - 1
    kept = (end - begin > _LEAST_US) & (step >= 0) & (middle < step_end_us[np.maximum(step, 0)])
    begin, end, following, step = begin[kept], end[kept], following[kept], step[kept]
    lengths = end - begin
    num_steps = len(step_start_us)
    idle = np.bincount(step, weights=lengths, minlength=num_steps)
    busy_s = float(np.median(step_end_us - step_start_us - idle)) * _US
    at_end = following < 0
    safe = np.maximum(following, 0)
    if launch_us is None:
        cause = np.full(len(step), 2)
    else:
        late = at_end | (launch_us[safe] > begin) if real else at_end
        cause = np.where(late, 0, 1)
    rows = np.where(at_end, -1, host[safe]) if real else np.full(len(step), -1)
    place, places = _places(rows, columns, events)
    key = cause * len(places) + place
    gaps = _grouped(
        key, step, lengths, rows, places=places, num_steps=num_steps, columns=columns, events=events
    )
    return gaps, busy_s


def _next_real(order: IntArray, real: int) -> IntArray:
    """For each place in the order, the first from there on that is no edge; -1 if none is."""
    positions = np.where(order < real, np.arange(len(order)), len(order))
    nearest = np.minimum.accumulate(positions[::-1])[::-1]
    return np.where(nearest < len(order), order[np.minimum(nearest, len(order) - 1)], -1)


def _places(
    rows: IntArray, columns: TraceColumns, events: HostEvents
) -> tuple[IntArray, tuple[str, ...]]:
    """What the host was at, for each gap, and the names of these."""
    names: dict[str, int] = {"end of the step": 0}
    places = np.zeros(len(rows), np.int64)
    known = np.flatnonzero(rows >= 0)
    label, phase = events.label[rows[known]], events.phase[rows[known]]
    both, which = np.unique(np.stack([label, phase]), axis=1, return_inverse=True)
    numbers = []
    for annotation, number in both.T.tolist():
        name = PHASES[number] if annotation < 0 else _NUMBER.sub("", columns.names[annotation])
        numbers.append(names.setdefault(name, len(names)))
    if len(known):
        places[known] = np.array(numbers)[which.reshape(-1)]
    return places, tuple(names)


def _grouped(
    key: IntArray,
    step: IntArray,
    lengths: FloatArray,
    rows: IntArray,
    *,
    places: tuple[str, ...],
    num_steps: int,
    columns: TraceColumns,
    events: HostEvents,
) -> tuple[Gap, ...]:
    gaps = []
    for value in np.unique(key).tolist():
        members = np.flatnonzero(key == value)
        sums = np.bincount(step[members], weights=lengths[members], minlength=num_steps)
        counts = np.bincount(step[members], minlength=num_steps)
        longest = members[int(np.argmax(lengths[members]))]
        row = int(rows[longest])
        before = "" if row < 0 else columns.names[int(columns.name[events.index[row]])]
        gaps.append(
            Gap(
                cause=_CAUSES[value // len(places)],
                place=places[value % len(places)],
                count=float(np.median(counts)),
                seconds=float(np.median(sums)) * _US,
                longest_s=float(lengths[longest]) * _US,
                before=before,
            )
        )
    return tuple(sorted(gaps, key=lambda gap: (-gap.seconds, gap.place)))
