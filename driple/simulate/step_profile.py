"""One step of a simulated run: which part of a record stands for all.

    WorkerRecord -> the step whose length is nearest to the mean -> StepProfile of the mean length

Steps differ in their random slowness alone, so that one of them, as long as the mean, has the
bursts of each.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from driple.errors import SimulationError
from driple.schemes.records import Computing, WorkerRecord
from driple.step.phases import COMPUTING, EXCHANGE, PhasePart
from driple.step.profile import DeviceSpan, LinkSpan, StepProfile
from driple.units import counted

__all__ = ["profile_of"]

_ROUNDING = 1e-6  # of shares, which are differences of running totals
_ROUNDED = 1e-12  # of a time, which is such a total too


def profile_of(record: WorkerRecord, *, kernels_exchange: bool) -> StepProfile:
    """One step of a worker, as long as its mean step after the first.

    Args:
        record: of two steps or more.
        kernels_exchange: see `StepProfile`.

    Raises:
        SimulationError: the steps take no time, or a device is in use for more than all of it.
    """
    ends_s = np.array(record.step_ends_s, dtype=np.float64)
    lengths_s = np.diff(ends_s)
    if not len(lengths_s) or record.iteration_time_s <= 0:
        raise SimulationError(
            f"a record of {counted(len(ends_s), 'step')} without any time has no step to show; "
            "simulate two or more of a training graph with the shapes of its tensors"
        )
    number = int(np.abs(lengths_s - record.iteration_time_s).argmin())
    start_s, end_s = float(ends_s[number]), float(ends_s[number + 1])
    computing, sent, received = record.use_beside(number + 1)
    profile = StepProfile(
        step_s=end_s - start_s,
        device=tuple(_device(computing, start_s, end_s)),
        tx=tuple(_transfers(sent, start_s, end_s)),
        rx=tuple(_transfers(received, start_s, end_s)),
        kernels_exchange=kernels_exchange,
    )
    return profile.corrected(record.iteration_time_s)


def _device(computing: Sequence[Computing], start_s: float, end_s: float) -> Iterator[DeviceSpan]:
    """Spans of the segments between two times, by phase."""
    first = bisect_right(computing, start_s, key=lambda one: one.end_s)
    last = bisect_left(computing, end_s, key=lambda one: one.start_s)
    for segment in computing[first:last]:
        begin_s, stop_s = max(segment.start_s, start_s), min(segment.end_s, end_s)
        if stop_s <= begin_s:
            continue
        parts = segment.parts or (_part_of(segment),)
        per_s = (segment.end_s - segment.start_s) / sum(part.duration_s for part in parts)
        now_s = segment.start_s
        for part in parts:
            next_s = now_s + per_s * part.duration_s
            first_s, last_s = max(now_s, begin_s), min(next_s, stop_s)
            if last_s - first_s > _ROUNDED * stop_s and part.phase != EXCHANGE:
                yield _span(part, first_s - start_s, last_s - start_s)
            now_s = next_s


def _part_of(segment: Computing) -> PhasePart:
    """A segment whose phases are unknown; one without any kernel is a wait for other devices."""
    length_s = segment.end_s - segment.start_s
    busy_s, memory_s = segment.busy_share * length_s, segment.memory_share * length_s
    phase = COMPUTING if segment.busy_share > 0 else EXCHANGE
    return PhasePart(phase, length_s, busy_s, memory_s, exchange_s=length_s - busy_s)


def _span(part: PhasePart, start_s: float, end_s: float) -> DeviceSpan:
    shares = [part.busy_s, part.memory_s, part.exchange_s]
    busy, memory, waits = (one / part.duration_s for one in shares)
    if not -_ROUNDING <= memory <= busy + _ROUNDING <= 1 + 2 * _ROUNDING:
        raise SimulationError(
            f"simulated {part.phase} of {100 * busy:.4g} % kernels and {100 * memory:.4g} % memory "
            "traffic, needed is 0 to 100 %; this is a fault of Driple: report it with the graph"
        )
    return DeviceSpan(
        phase=part.phase,
        start_s=start_s,
        end_s=end_s,
        busy_share=min(max(busy, 0.0), 1.0),
        memory_share=min(max(memory, 0.0), 1.0),
        exchange_share=min(max(waits, 0.0), 1.0 - min(max(busy, 0.0), 1.0)),
    )


def _transfers(
    rates: Sequence[tuple[float, float]], start_s: float, end_s: float
) -> Iterator[LinkSpan]:
    """Times with traffic between two times, from (time, rate from then on)."""
    first = max(bisect_right(rates, start_s, key=lambda one: one[0]) - 1, 0)
    last = bisect_left(rates, end_s, key=lambda one: one[0])
    for (begin_s, rate), (stop_s, _) in pairwise([*rates[first:last], (end_s, 0.0)]):
        first_s, last_s = max(begin_s, start_s), min(stop_s, end_s)
        if rate > 0 and last_s > first_s:
            yield LinkSpan(start_s=first_s - start_s, end_s=last_s - start_s, bytes_per_s=rate)
