"""Period of a job's traces: the length of a step where nothing marks steps.

    traces [k, n] -> autocorrelation -> smallest lag that is as good as any -> its multiples -> period

Pure: no clock, no files. A period may be a part of a step (two like bursts in each) or several
steps (validation after each tenth); `ambiguous_s` names such lags where they fit nearly as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

__all__ = ["Period", "find_period"]

FloatArray = npt.NDArray[np.float64]

_LEAST_LAG = 4  # samples; shorter steps do not show
_LEAST_PERIODS = 4  # in a piece, for its own period
_MOST_PIECES = 10
_PIECE_SAMPLES = 300  # a piece has at least
_WEAK = 0.25  # a lower peak of the autocorrelation is no period
_AS_GOOD = 0.85  # of the highest peak: the smallest such lag is the period
_NEAR = 0.5  # logarithm: pieces that are slower or faster than that have another period
_PERIODS, _SHORT_PIECE = 20, 150  # in a piece of the window: periods, and samples at least
_FOLLOWED = 0.4  # of the first peak: multiples of the period are followed down to this height


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """A period with its doubt.

    Attributes:
        period_s: mean over the window, seconds.
        low_s: lower end of its doubt: two standard errors over pieces of the window.
        high_s: upper end.
        strength: autocorrelation at the period, up to 1.
        start: first sample of the window in which the traces repeat.
        end: sample after the last.
        ambiguous_s: other lags that fit nearly as well, such as twice the period; seconds.
    """

    period_s: float
    low_s: float
    high_s: float
    strength: float
    start: int
    end: int
    ambiguous_s: tuple[float, ...]


def find_period(traces: FloatArray, grid_s: float) -> Period | None:
    """The period that traces of several resources share; None if they do not repeat.

    Args:
        traces: shape [k, n], evenly spaced; any units.
        grid_s: seconds between two samples.
    """
    num = traces.shape[1]
    for pieces in range(min(_MOST_PIECES, num // _PIECE_SAMPLES), 0, -3):
        known = [lag for _, _, lag in _pieces(traces, 0, num, pieces) if lag > 0]
        if len(known) > pieces / 3:
            return _refined(traces, grid_s, float(np.median(known)))
    return None


def _refined(traces: FloatArray, grid_s: float, about: float) -> Period | None:
    """The period of the window that repeats, from pieces of about as many periods each.

    A piece may be faster or slower than others, as steps of a shared machine are; the mean counts
    the periods of every piece.
    """
    num = traces.shape[1]
    pieces = _pieces(traces, 0, num, max(1, round(num / max(_PERIODS * about, _SHORT_PIECE))))
    agree = np.array([abs(np.log(lag / about)) < _NEAR if lag else False for _, _, lag in pieces])
    if not agree.any():
        return None
    places = np.flatnonzero(agree)
    start, end = pieces[int(places[0])][0], pieces[int(places[-1])][1]
    kept = [piece for piece, fits in zip(pieces, agree, strict=True) if fits]
    lags = np.array([lag for _, _, lag in kept])
    samples = np.array([last - first for first, last, _ in kept])
    lag = float(samples.sum() / (samples / lags).sum())
    doubt = float(lags.std() / np.sqrt(len(lags))) if len(lags) > 1 else 0.1 * lag
    wave = _autocorrelation(traces[:, start:end])
    height = _peak_near(wave, lag)[1]
    others = [
        other
        for other in (lag / 3, lag / 2, 2 * lag, 3 * lag)
        if _LEAST_LAG <= other < len(wave) - 1
        and _peak_near(wave, other)[1] > (1.05 if other > lag else _AS_GOOD**2) * height
    ]
    return Period(
        period_s=lag * grid_s,
        low_s=(lag - 2 * doubt) * grid_s,
        high_s=(lag + 2 * doubt) * grid_s,
        strength=float(np.clip(height, 0, 1)),
        start=start,
        end=end,
        ambiguous_s=tuple(other * grid_s for other in others),
    )


def _pieces(
    traces: FloatArray, start: int, end: int, num: int
) -> list[tuple[int, int, float]]:
    """First sample, end and period (0: none) of equal pieces."""
    edges = np.linspace(start, end, num + 1).astype(int).tolist()
    return [(a, b, _own_period(traces[:, a:b])) for a, b in pairwise(edges)]


def _own_period(traces: FloatArray) -> float:
    """Period of a piece in samples; 0 without one."""
    wave = _autocorrelation(traces)
    most = len(traces[0]) // _LEAST_PERIODS
    if most <= _LEAST_LAG + 1:
        return 0.0
    inner = wave[1 : most + 1]
    is_peak = (inner >= wave[:most]) & (inner > wave[2 : most + 2])
    lags = np.flatnonzero(is_peak) + 1
    # What follows the first dip: noise near lag 0 is no period.
    dips = np.flatnonzero(wave < 0)
    lags = lags[lags >= max(_LEAST_LAG, dips[0] if len(dips) else len(wave))]
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
