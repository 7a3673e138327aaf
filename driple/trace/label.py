"""Turn the traces of one worker into the twelve targets (paper, section 3.3).

    Trace -> label_trace -> Label (one resource)          4 x Label -> targets_of -> Targets

Pure: no clock, no files, no device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from driple.errors import TraceError
from driple.trace.bursts import BoolArray, FloatArray, runs, two_means
from driple.trace.targets import FIGURES, NETWORK, RESOURCES, Targets
from driple.trace.trace import Trace
from driple.units import counted

__all__ = ["Label", "Pattern", "label_trace", "targets_of"]

Pattern = Literal["B", "I", "BIB"]

# Two clusters are distinct if their means differ by this fraction of the higher one or more: one
# percent of a full device, NVML's resolution. Otherwise a trace is all burst or all idle (paper,
# Table 3).
_MIN_CONTRAST = 0.01
# Network traffic with fewer bursts has lost some: a burst and its gap then take more than two
# iterations, plus a tenth for noise. No measured run reaches this limit.
_MOST_ITERATIONS = 2.2
_MOST_SPLITS = 10
# A one-cluster trace is idle below this value: NVML shows whole percents.
_BUSY_PCT = 1.0
_BUSY_MB_PER_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """Burst and idle figures of one resource.

    Attributes:
        burst_amount: mean amount of the burst samples, in the resource's unit.
        burst_duration_s: mean duration of a burst.
        idle_duration_s: mean duration of an idle gap.
        idle_amount: mean amount of the idle samples; recorded, never a target.
        num_bursts: number of bursts that the durations average over.
        pattern: `BIB` for bursts and gaps, `B` for constantly busy, `I` for constantly idle.
    """

    burst_amount: float
    burst_duration_s: float
    idle_duration_s: float
    idle_amount: float
    num_bursts: int
    pattern: Pattern


def label_trace(trace: Trace, iteration_time_s: float) -> Label:
    """Mean burst amount, burst duration and idle duration of one trace (paper, section 3.3).

    2-means on the amount splits the samples in two; a burst is a run of high samples and lasts as
    many sampling periods as it has samples. Runs that the ends of the trace cut short are left out.
    On a shared link bursts differ in height, and one threshold would lose the low ones: if fewer
    than every second iteration has a burst of network traffic, the samples below the threshold are
    split again (docs/decisions/0017-several-servers.md). A trace with one level is one burst, or
    one gap, per iteration, so its label does not depend on the length of the recording.

    Args:
        trace: trace of one resource.
        iteration_time_s: iteration time, seconds.

    Raises:
        TraceError: fewer than two samples, or an iteration that takes no time.
    """
    if not 0 < iteration_time_s < math.inf:
        raise TraceError(
            f"an iteration of {iteration_time_s:g} s; a label needs its time, above 0 and finite"
        )
    amount = trace.amount
    if len(amount) < 2:
        raise TraceError(
            f"trace of {trace.resource} has {counted(len(amount), 'sample')}, a label needs 2 or "
            "more; measure or simulate more iterations"
        )
    is_burst = two_means(amount)
    mean = float(amount.mean())
    if not is_burst.any():
        return _flat_label(trace, mean, iteration_time_s)
    high, low = float(amount[is_burst].mean()), float(amount[~is_burst].mean())
    if high - low < _MIN_CONTRAST * abs(high):
        return _flat_label(trace, mean, iteration_time_s)
    iteration = iteration_time_s / trace.period_s
    if trace.resource in NETWORK and _cycle(is_burst) > _MOST_ITERATIONS * iteration:
        is_burst = _with_low_bursts(amount, is_burst, iteration)
        high, low = float(amount[is_burst].mean()), float(amount[~is_burst].mean())
    stretches = runs(is_burst)
    bursts, gaps = stretches.length[stretches.is_burst], stretches.length[~stretches.is_burst]
    return Label(
        burst_amount=high,
        burst_duration_s=float(bursts.mean()) * trace.period_s,
        idle_duration_s=float(gaps.mean()) * trace.period_s,
        idle_amount=low,
        num_bursts=len(bursts),
        pattern="BIB",
    )


def _cycle(is_burst: BoolArray) -> float:
    """Number of samples in a mean burst plus a mean gap."""
    stretches = runs(is_burst)
    return float(
        stretches.length[stretches.is_burst].mean() + stretches.length[~stretches.is_burst].mean()
    )


def _with_low_bursts(amount: FloatArray, is_burst: BoolArray, iteration: float) -> BoolArray:
    """The split, or a lower one, with the number of bursts closest to one per iteration.

    Args:
        amount: shape [n].
        is_burst: shape [n], mask of the highest split.
        iteration: iteration time in samples.
    """
    least = _MIN_CONTRAST * float(amount[is_burst].mean())
    splits = [is_burst]
    for _ in range(_MOST_SPLITS):
        rest = ~splits[-1]
        below = two_means(amount[rest])
        if not below.any() or amount[rest][below].mean() < least:
            break
        lower = splits[-1].copy()
        lower[rest] = below
        splits.append(lower)
    return min(splits, key=lambda split: abs(math.log(_cycle(split) / iteration)))


def _flat_label(trace: Trace, mean: float, iteration_time_s: float) -> Label:
    """Label of a trace with one level: one burst, or one gap, as long as an iteration."""
    busy = mean >= (_BUSY_PCT if trace.unit == "%" else _BUSY_MB_PER_S)
    return Label(
        burst_amount=mean if busy else 0.0,
        burst_duration_s=iteration_time_s if busy else 0.0,
        idle_duration_s=0.0 if busy else iteration_time_s,
        idle_amount=0.0 if busy else mean,
        num_bursts=1 if busy else 0,
        pattern="B" if busy else "I",
    )


def targets_of(labels: Mapping[str, Label]) -> Targets:
    """The twelve targets from the labels of the four resources.

    Raises:
        TraceError: a resource has no label.
    """
    missing = [resource for resource in RESOURCES if resource not in labels]
    if missing:
        raise TraceError(f"no trace of {', '.join(missing)}; a label needs all four resources")
    values = np.zeros((len(RESOURCES), len(FIGURES)))
    for i, resource in enumerate(RESOURCES):
        label = labels[resource]
        values[i] = (label.burst_amount, label.burst_duration_s, label.idle_duration_s)
    return Targets(values)
