"""Steps of a record: as marked by `driple.mark_step()`, or the period of its traces.

HostRecord -> StepTimes: seconds of a step, its doubt, and the window that has steps
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from driple.errors import TraceError
from driple.measure.record.sources import ALLOCATED, CPU, LOOPBACK
from driple.measure.record.store import HostRecord, Int64Array
from driple.trace.period import LEAST_LAG, LEAST_SAMPLES, find_period
from driple.units import counted

__all__ = ["StepTimes", "steps_of"]

_SLOW = 1.5  # times the median: leading steps that take longer are warm-up
_PAUSE = 5.0  # times the median: validation, a checkpoint or a pause, and no step
_LEAST_MARKED = 3  # steps
_EXACT, _OTHERS = (LOOPBACK, "net_tx", "net_rx", ALLOCATED), (CPU,)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTimes:
    """How long steps take, and when.

    Attributes:
        step_s: mean seconds of a step.
        low_s: 10th percentile of marked steps; of a period, its doubt.
        high_s: 90th percentile.
        source: where they come from.
        num_steps: steps in the window.
        num_pauses: gaps between marks that are too long for steps, left out of the mean.
        start_ns: begin of the window, monotonic clock.
        end_ns: its end.
        ambiguous_s: other periods that fit nearly as well; seconds.
    """

    step_s: float
    low_s: float
    high_s: float
    source: Literal["marked", "period"]
    num_steps: int
    num_pauses: int
    start_ns: int
    end_ns: int
    ambiguous_s: tuple[float, ...] = ()


def steps_of(record: HostRecord, *, by_period: bool = False) -> StepTimes:
    """The steps of a record.

    Args:
        record: one host's.
        by_period: use the period even if steps are marked.

    Raises:
        TraceError: no marks, and traces that do not repeat.
    """
    marks = [process.times_ns for process in record.marks]
    marks = [times for times in marks if len(times) > _LEAST_MARKED]
    return _by_period(record) if by_period or not marks else _marked(marks)


def _marked(marks: list[Int64Array]) -> StepTimes:
    """Steps by the marks of every process; the window in which all of them train."""
    kept, num_pauses, starts = [], 0, []
    for times in marks:
        steps = np.diff(times)
        middle = float(np.median(steps))
        quick = np.flatnonzero(steps <= _SLOW * middle)
        first = int(quick[0])
        is_step = steps[first:] <= _PAUSE * middle
        num_pauses += int((~is_step).sum())
        kept.append(steps[first:][is_step] / 1e9)
        starts.append(int(times[first]))
    together = np.concatenate(kept)
    low, high = np.percentile(together, (10, 90))
    return StepTimes(
        step_s=float(np.mean([steps.mean() for steps in kept])),
        low_s=float(low),
        high_s=float(high),
        source="marked",
        num_steps=round(len(together) / len(kept)),
        num_pauses=num_pauses,
        start_ns=max(starts),
        end_ns=min(int(times[-1]) for times in marks),
    )


def _by_period(record: HostRecord) -> StepTimes:
    samples, grid_s = record.samples, record.about.period_s
    rows = samples.whole
    time_s = (samples.before_ns[rows] - samples.before_ns[0]) / 1e9
    even_s = np.arange(0, time_s[-1], grid_s)
    exact, others = (
        np.array(
            [
                np.interp(even_s, time_s, samples.values[rows, samples.names.index(name)])
                for name in names
                if name in samples.names
            ]
        ).reshape(-1, len(even_s))
        for names in (_EXACT, _OTHERS)
    )
    period = find_period(exact, others, grid_s)
    if period is None:
        why = (
            f"{counted(len(even_s), 'sample')} are too few for a period, which needs "
            f"{LEAST_SAMPLES}"
            if len(even_s) < LEAST_SAMPLES
            else f"its traces do not repeat every {LEAST_LAG * grid_s:g} s or more (shorter steps "
            "need driple record with a smaller --set period_ms)"
        )
        marked = max((len(process.times_ns) for process in record.marks), default=0)
        few = (
            f"only {counted(marked, 'mark')}, needed are {_LEAST_MARKED + 1}"
            if 0 < marked <= _LEAST_MARKED
            else ""
        )
        raise TraceError(
            f"{record.folder} has {few or 'no marked steps'}, and {why}; call "
            "driple.mark_step() at the end of each step and record again"
        )
    return StepTimes(
        step_s=period.period_s,
        low_s=period.low_s,
        high_s=period.high_s,
        source="period",
        num_steps=period.num_steps,
        num_pauses=0,
        start_ns=int(samples.before_ns[0]) + round(period.start_s * 1e9),
        end_ns=int(samples.before_ns[0]) + round(period.end_s * 1e9),
        ambiguous_s=period.ambiguous_s,
    )
