"""Virtual counters: NVML and network-interface readings of a simulated run.

intervals of computing, rates of links -> running totals -> samples of each window -> Trace

NVML's utilisation is the share of its last sampling window (1/6 s on most GPUs) in which a kernel
ran, or used memory, in whole percents. The value changes at the end of each window, however often
it is read. Windows begin with the trace; samples before the end of the first window show the first
value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from driple.errors import SimulationError, TraceError
from driple.schemes.records import Computing, WorkerRecord
from driple.trace import Trace
from driple.trace.targets import RESOURCES, UNITS
from driple.units import counted

__all__ = ["lengthened", "traces_of_worker"]

FloatArray = npt.NDArray[np.float64]

# Bounds of a worker's traces, checked before they are built: some hundred MB each.
MOST_SEGMENTS = 5_000_000
MOST_SAMPLES = 10_000_000
_ROUNDING = 1e-6  # of shares, which are differences of running totals


def lengthened(record: WorkerRecord, least_s: float) -> WorkerRecord:
    """The record with the steps after the first repeated until they last `least_s`.

    A few steps shorter than NVML's window fill too few windows to resolve the period of their
    pattern. Later steps repeat the same pattern, so no more of them are simulated.

    Args:
        record: record of a worker.
        least_s: minimum time from the end of the first step to the end of the last, seconds.

    Raises:
        TraceError: the steps take no time, or too many repetitions would be needed.
    """
    start_s, end_s = record.step_ends_s[0], record.step_ends_s[-1]
    span_s = end_s - start_s
    segments = len(record.computing) + len(record.tx) + len(record.rx)
    if span_s <= 0 or segments * (least_s / span_s) > MOST_SEGMENTS:
        raise TraceError(
            f"{counted(len(record.step_ends_s) - 1, 'simulated step')} of {span_s:.3g} s in all, "
            "too short for the counters of a GPU; give the graph of a training step with the "
            "shapes of its tensors"
        )
    turns = math.ceil(least_s / span_s)
    if turns <= 1:
        return record
    shifts = [turn * span_s for turn in range(turns)]
    computing = [one for one in record.computing if start_s <= one.start_s < end_s]
    return WorkerRecord(
        computing=[
            Computing(one.start_s + shift, one.end_s + shift, one.busy_share, one.memory_share)
            for shift in shifts
            for one in computing
        ],
        step_ends_s=[
            start_s,
            *(end + shift for shift in shifts for end in record.step_ends_s[1:]),
        ],
        tx=_repeated(record.tx, start_s, end_s, shifts),
        rx=_repeated(record.rx, start_s, end_s, shifts),
    )


def _repeated(
    rates: Sequence[tuple[float, float]], start_s: float, end_s: float, shifts: Sequence[float]
) -> list[tuple[float, float]]:
    """The rates between two times, repeated."""
    at_start = [rate for time, rate in rates if time <= start_s][-1]
    within = [(time, rate) for time, rate in rates if start_s < time < end_s]
    return [
        (time + shift, rate) for shift in shifts for time, rate in [(start_s, at_start), *within]
    ]


def traces_of_worker(
    record: WorkerRecord,
    *,
    period_s: float,
    start_s: float,
    end_s: float,
    window_s: float,
) -> dict[str, Trace]:
    """The traces of the four resources of a worker.

    Args:
        record: record of the worker.
        period_s: sampling period.
        start_s: start of the traces, seconds.
        end_s: end of the traces, seconds.
        window_s: window of the device's utilisation counter (`Device.counter_window_s`), seconds; 0
            for the sampling period.

    Raises:
        TraceError: the traces would have too many samples.
        SimulationError: a device would be in use for less than 0 % or more than 100 % of a sample.
    """
    num_samples = (end_s - start_s) / period_s
    if not num_samples <= MOST_SAMPLES:
        raise TraceError(
            f"simulated steps last {end_s - start_s:.3g} s in all, {num_samples:.3g} samples of "
            f"{period_s:g} s, at most {MOST_SAMPLES} are taken; simulate fewer steps, or check the "
            "graph's tensor sizes and the turns of its loops"
        )
    count = int(num_samples + 1e-9)
    edges: FloatArray = start_s + period_s * np.arange(count + 1, dtype=np.float64)
    device = _totals_of_computing(record)
    shares = {
        name: _windowed(times, totals, edges, window_s) for name, (times, totals) in device.items()
    }
    _check_shares(shares)
    amounts = {name: np.round(100 * share) for name, share in shares.items()}
    for name, rates in (("net_tx", record.tx), ("net_rx", record.rx)):
        times, totals = _totals_of_rates(rates, end_s)
        amounts[name] = np.diff(np.interp(edges, times, totals)) / period_s / 1e6
    return {
        name: Trace(
            resource=name,
            unit=UNITS[name],
            amount=amounts[name],
            period_s=period_s,
            start_s=start_s,
            counter_period_s=window_s if name in device else 0.0,
        )
        for name in RESOURCES
    }


def _check_shares(shares: Mapping[str, FloatArray]) -> None:
    """Raise SimulationError unless every share of time lies in [0, 1]."""
    for name, share in shares.items():
        odd = share[~((share >= -_ROUNDING) & (share <= 1 + _ROUNDING))]
        if len(odd):
            raise SimulationError(
                f"simulated {name} of {100 * odd[0]:.4g} %, needed is 0 to 100 %; this is a fault "
                "of Driple: report it with the graph and the setting"
            )


def _totals_of_computing(record: WorkerRecord) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Seconds of use up to each point in time, at the ends of all segments, by resource."""
    spans = np.array(
        [(one.start_s, one.end_s, one.busy_share, one.memory_share) for one in record.computing],
        dtype=np.float64,
    ).reshape(-1, 4)
    times, lengths = spans[:, :2].ravel(), spans[:, 1] - spans[:, 0]
    totals = {}
    for name, share in (("device_util", spans[:, 2]), ("device_mem_util", spans[:, 3])):
        used = np.zeros((len(spans), 2))
        used[:, 1] = lengths * share
        totals[name] = (times, np.cumsum(used.ravel()))
    return totals


def _totals_of_rates(
    rates: Sequence[tuple[float, float]], end_s: float
) -> tuple[FloatArray, FloatArray]:
    """Bytes up to each point in time, where the rate changes."""
    times = np.array([time for time, _ in rates] + [max(end_s, rates[-1][0])], dtype=np.float64)
    steps = np.diff(times) * np.array([rate for _, rate in rates], dtype=np.float64)
    return times, np.concatenate(([0.0], np.cumsum(steps)))


def _windowed(
    times: FloatArray, totals: FloatArray, edges: FloatArray, window_s: float
) -> FloatArray:
    """Share of use in the last whole window before each sample, or of the sampling period.

    A trace that is shorter than a window shows the share of all of it.
    """
    if not len(times):
        return np.zeros(len(edges) - 1)
    if window_s <= 0:
        return np.diff(np.interp(edges, times, totals)) / np.diff(edges)
    window_s = min(window_s, float(edges[-1] - edges[0]))
    passed = np.maximum(np.floor((edges[1:] - edges[0]) / window_s + 1e-9), 1.0)
    ends = edges[0] + passed * window_s
    used: FloatArray = np.interp(ends, times, totals) - np.interp(ends - window_s, times, totals)
    return used / window_s
