"""Period of a job's counters: the length of a step where nothing marks steps.

    counters over time -> on an axis on which steps are even -> autocorrelation -> period

Steps of one job differ in time, above all on shared machines, but not in the bytes that they send
and allocate. So every growing counter, and time itself, is tried as the axis on which the others
are laid out; the axis with the strongest autocorrelation counts the steps.

Pure: no clock, no files. A period may be a part of a step (two like bursts in each) or several
steps (accumulated gradients); `ambiguous_s` names such lengths where they fit nearly as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["LEAST_LAG", "LEAST_SAMPLES", "Period", "find_period"]

FloatArray = npt.NDArray[np.float64]

LEAST_LAG = 4
"""Samples; shorter steps do not show."""
LEAST_SAMPLES = 300
"""Samples of a window, and of each piece of it."""
_LEAST_PERIODS = 4  # in a piece, for its own period
_MOST_PIECES = 10
_LEAST_STEPS = 8  # in the whole window
_PHASES = 8
_ONE_PIECE = 0.05  # relative doubt of a period that a single piece gives
_PAUSE = 5.0  # times the median: validation, a checkpoint or a pause, and no step
_WEAK = 0.25  # a lower peak of the autocorrelation is no period
_AS_GOOD = 0.85  # of the highest peak: the smallest such lag is the period
_NEAR = 0.5  # logarithm: pieces that are slower or faster than that have another period
_PERIODS, _SHORT_PIECE = 20, 150  # in a piece of the window: periods, and samples at least
_MULTIPLES, _SAME = (2, 3), 0.05  # of one axis's period on another, and how near it lies
_FOLLOWED = 0.4  # of the first peak: multiples of the period are followed down to this height


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """A period with its doubt.

    Attributes:
        period_s: mean over the window, seconds.
        low_s: lower end of its doubt: two standard errors of its steps.
        high_s: upper end.
        strength: autocorrelation at the period, up to 1.
        num_steps: periods that were counted.
        start_s: begin of the window in which the counters repeat, seconds from the first sample.
        end_s: its end.
        ambiguous_s: other lengths that fit nearly as well, such as twice the period; seconds.
    """

    period_s: float
    low_s: float
    high_s: float
    strength: float
    num_steps: int
    start_s: float
    end_s: float
    ambiguous_s: tuple[float, ...]


def find_period(exact: FloatArray, others: FloatArray, grid_s: float) -> Period | None:
    """The period that counters of several resources share; None if they do not repeat.

    Args:
        exact: shape [k, n], counters that grow by the same amount in every step, such as bytes on
            a network; at even times, any units.
        others: shape [m, n], counters that grow by about the same amount, such as CPU time.
        grid_s: seconds between two samples.
    """
    num = max(exact.shape[1], others.shape[1])
    if num < LEAST_SAMPLES:
        return None
    time = np.arange(num, dtype=np.float64)
    even, uneven = _curves(exact, time), [time, *_curves(others, time)]
    for axes in (even, uneven):
        periods = [_on_axis(axis, [*even, *uneven], grid_s) for axis in axes]
        known = [period for period in periods if period is not None]
        if known:
            return _shortest(max(known, key=_support), known)
    return None


def _shortest(best: Period, known: list[Period]) -> Period:
    """The period that the best one is a multiple of on another axis, if there is one.

    Counters that repeat every step repeat every second and third one too, so of two axes the one
    with the shorter period shows steps, the other pairs of them. The longer one stays a doubt.
    """
    shorter = (each for each in known if _is_multiple(best, each))
    shortest = min(shorter, key=lambda period: period.period_s, default=best)
    longer = {each.period_s for each in known if _is_multiple(each, shortest)}
    return replace(shortest, ambiguous_s=tuple(sorted({*shortest.ambiguous_s, *longer})))


def _is_multiple(longer: Period, shorter: Period) -> bool:
    """Whether a period is about two or three times another one."""
    ratio = longer.period_s / shorter.period_s
    return round(ratio) in _MULTIPLES and abs(ratio / round(ratio) - 1) < _SAME


def _support(period: Period) -> float:
    """Strength of a period, and the share of its window that repeats."""
    span_s = period.end_s - period.start_s
    return period.strength * period.num_steps * period.period_s / span_s


def _curves(counters: FloatArray, time: FloatArray) -> list[FloatArray]:
    """Counters that grow, from 0 to n - 1; ties are broken, so that each place has one time."""
    curves = []
    for counter in counters:
        total = float(counter[-1] - counter[0])
        if total > 0:
            curve = (counter - counter[0]) / total + 1e-9 * time / len(time)
            curves.append(curve * (len(time) - 1) / curve[-1])
    return curves


def _on_axis(axis: FloatArray, curves: list[FloatArray], grid_s: float) -> Period | None:
    """The period of the other curves along one of them."""
    num = len(axis)
    even = np.arange(num, dtype=np.float64)
    if len(curves) < 2:  # nothing to lay out along the axis
        return None
    traces = np.array(
        [np.diff(np.interp(even, axis, curve)) for curve in curves if curve is not axis]
    )
    traces = np.sqrt(np.maximum(traces, 0))  # so that one pause does not outweigh all steps
    about = _about(traces)
    if about is None:
        return None
    pieces = _pieces(traces, max(1, round(num / max(_PERIODS * about, _SHORT_PIECE))))
    kept = [piece for piece in pieces if piece[2] and abs(np.log(piece[2] / about)) < _NEAR]
    if not kept:
        return None
    lags = np.array([lag for _, _, lag in kept])
    if sum((end - start) / lag for start, end, lag in kept) < _LEAST_STEPS:
        return None
    at_s = np.interp(even, axis, np.arange(num, dtype=np.float64)) * grid_s
    begins_s, steps_s = (
        np.concatenate(part) for part in zip(*(_spans(at_s, *piece) for piece in kept), strict=True)
    )
    is_step = steps_s <= _PAUSE * np.median(steps_s)
    begins_s, steps_s = begins_s[is_step], steps_s[is_step]
    period_s = float(steps_s.mean())
    num_steps = len(steps_s) / _PHASES
    doubt = max(
        float(steps_s.std() / period_s / np.sqrt(num_steps)),
        float(lags.std() / lags.mean() / np.sqrt(len(lags))) if len(lags) > 1 else _ONE_PIECE,
    )
    start, end = kept[0][0], kept[-1][1]
    wave = _autocorrelation(traces[:, start:end])
    lag = float(np.median(lags))
    height = _peak_near(wave, lag)[1]
    ratios = [
        ratio
        for ratio in (1 / 3, 1 / 2, 2, 3)
        if LEAST_LAG <= ratio * lag < len(wave) - 1
        and _peak_near(wave, ratio * lag)[1] > (1.05 if ratio > 1 else _AS_GOOD**2) * height
    ]
    return Period(
        period_s=period_s,
        low_s=period_s * max(0.0, 1 - 2 * doubt),
        high_s=period_s * (1 + 2 * doubt),
        strength=float(np.clip(height, 0, 1)),
        num_steps=round(num_steps),
        start_s=float(begins_s.min()),
        end_s=float((begins_s + steps_s).max()),
        ambiguous_s=tuple(ratio * period_s for ratio in ratios),
    )


def _spans(at_s: FloatArray, start: int, end: int, lag: float) -> tuple[FloatArray, FloatArray]:
    """Begin and length in seconds of each period of a piece of an axis, from several phases."""
    phases = np.arange(_PHASES) / _PHASES * lag
    whole = np.arange(len(at_s), dtype=np.float64)
    times = [np.interp(np.arange(start + phase, end - lag, lag), whole, at_s) for phase in phases]
    return (
        np.concatenate([own[:-1] for own in times]),
        np.concatenate([np.diff(own) for own in times]),
    )


def _about(traces: FloatArray) -> float | None:
    """The period of most pieces, longer pieces if short ones have none."""
    num = traces.shape[1]
    for count in range(min(_MOST_PIECES, num // LEAST_SAMPLES), 0, -3):
        known = [lag for _, _, lag in _pieces(traces, count) if lag > 0]
        if len(known) > count / 3:
            return float(np.median(known))
    return None


def _pieces(traces: FloatArray, count: int) -> list[tuple[int, int, float]]:
    """First sample, end and period (0: none) of equal pieces."""
    edges = np.linspace(0, traces.shape[1], count + 1).astype(int).tolist()
    return [(a, b, _own_period(traces[:, a:b])) for a, b in pairwise(edges)]


def _own_period(traces: FloatArray) -> float:
    """Period of a piece in samples; 0 without one."""
    wave = _autocorrelation(traces)
    most = len(traces[0]) // _LEAST_PERIODS
    if most <= LEAST_LAG + 1:
        return 0.0
    inner = wave[1 : most + 1]
    is_peak = (inner >= wave[:most]) & (inner > wave[2 : most + 2])
    lags = np.flatnonzero(is_peak) + 1
    # What follows the first dip: noise near lag 0 is no period.
    dips = np.flatnonzero(wave < 0)
    lags = lags[lags >= max(LEAST_LAG, dips[0] if len(dips) else len(wave))]
    if not len(lags) or wave[lags].max() < _WEAK:
        return 0.0
    best = wave[lags].max()
    lag = int(lags[wave[lags] >= _AS_GOOD * best][0])
    return _followed(wave, float(lag))


def _followed(wave: FloatArray, lag: float) -> float:
    """The lag by its multiples: the k-th peak gives it k times as exactly."""
    lag, height = _peak_near(wave, lag)
    best, multiple = lag, 2
    while multiple * best + 1 < len(wave) * 0.75:
        at, own = _peak_near(wave, multiple * best, width=max(2.0, 0.2 * lag))
        if own < _FOLLOWED * height:
            break
        best = at / multiple
        multiple += max(1, multiple // 4)
    return best


def _peak_near(wave: FloatArray, lag: float, width: float | None = None) -> tuple[float, float]:
    """The highest point near a lag, between samples by a parabola; its height."""
    width = max(1.0, 0.1 * lag) if width is None else width
    low, high = max(1, round(lag - width)), min(len(wave) - 2, round(lag + width))
    if high < low:
        return lag, 0.0
    at = low + int(np.argmax(wave[low : high + 1]))
    before, here, after = wave[at - 1 : at + 2]
    bend = before - 2 * here + after
    shift = 0.5 * (before - after) / bend if bend < 0 else 0.0
    return at + float(np.clip(shift, -0.5, 0.5)), float(here)


def _autocorrelation(traces: FloatArray) -> FloatArray:
    """Mean autocorrelation of the traces, shape [n]: 1 at lag 0, unbiased for later lags."""
    num = traces.shape[1]
    smooth = np.ones(3) / 3
    total, count = np.zeros(num), 0
    for trace in traces:
        centred = np.convolve(trace - trace.mean(), smooth, mode="same")
        power = np.abs(np.fft.rfft(centred, 2 * num)) ** 2
        own = np.fft.irfft(power)[:num]
        if own[0] <= 1e-12 * max(1.0, float(np.abs(trace).max()) ** 2) * num:
            continue
        total += own / own[0] * num / np.arange(num, 0, -1)
        count += 1
    mean: FloatArray = total / max(count, 1)
    return mean
