"""Period of a job's traces: the length of a step where nothing marks steps.

    traces [k, n] -> autocorrelation -> smallest lag that is as good as any -> its multiples -> period

Pure: no clock, no files. A period may be a part of a step (two like bursts in each) or several
steps (validation after each tenth); `ambiguous_s` names such lags where they fit nearly as well.
"""

from __future__ import annotations

from dataclasses import dataclass

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
_NEAR = 0.12  # relative difference of pieces with the same period
_FOLLOWED = 0.4  # of the first peak: multiples of the period are followed down to this height


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """A period with its doubt.

    Attributes:
        period_s: mean over the window, seconds.
        low_s: 10th percentile of the periods of pieces of the window.
        high_s: 90th percentile.
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
        edges = np.linspace(0, num, pieces + 1).astype(int)
        own = [_own_period(traces[:, a:b]) for a, b in zip(edges[:-1], edges[1:], strict=True)]
        known = [lag for lag, _ in own if lag > 0]
        if len(known) <= pieces / 3:
            continue
        middle = float(np.median(known))
        agree = np.array([lag > 0 and abs(lag / middle - 1) < _NEAR for lag, _ in own])
        first, last = _longest_run(agree)
        start, end = int(edges[first]), int(edges[last])
        if end - start >= _LEAST_PERIODS * middle:
            return _refined(traces, grid_s, start, end, middle)
    return None


def _refined(
    traces: FloatArray, grid_s: float, start: int, end: int, about: float
) -> Period:
    """The period of a window, from multiples of it as far as they can be followed."""
    wave = _autocorrelation(traces[:, start:end])
    lag = _followed(wave, about)
    num = max(1, min(_MOST_PIECES, int((end - start) / (_LEAST_PERIODS * 2 * lag))))
    edges = np.linspace(start, end, num + 1).astype(int)
    own = [
        _followed(_autocorrelation(traces[:, a:b]), lag)
        for a, b in zip(edges[:-1], edges[1:], strict=True)
    ]
    low, high = np.percentile([*own, lag], (10, 90))
    at = round(lag)
    others = [
        other
        for other in (lag / 3, lag / 2, 2 * lag, 3 * lag)
        if _LEAST_LAG <= other < len(wave) - 1
        and _peak_near(wave, other)[1] > (1 if other > lag else _AS_GOOD**2) * wave[at]
    ]
    return Period(
        period_s=lag * grid_s,
        low_s=float(low) * grid_s,
        high_s=float(high) * grid_s,
        strength=float(wave[at]),
        start=start,
        end=end,
        ambiguous_s=tuple(other * grid_s for other in others),
    )


def _own_period(traces: FloatArray) -> tuple[float, float]:
    """Lag of a piece in samples and its height; lag 0 without a period."""
    wave = _autocorrelation(traces)
    most = len(traces[0]) // _LEAST_PERIODS
    if most <= _LEAST_LAG + 1:
        return 0.0, 0.0
    inner = wave[1 : most + 1]
    is_peak = (inner >= wave[:most]) & (inner > wave[2 : most + 2])
    lags = np.flatnonzero(is_peak) + 1
    # What follows the first dip: noise near lag 0 is no period.
    dips = np.flatnonzero(wave < 0)
    lags = lags[lags >= max(_LEAST_LAG, dips[0] if len(dips) else len(wave))]
    if not len(lags) or wave[lags].max() < _WEAK:
        return 0.0, 0.0
    best = wave[lags].max()
    lag = int(lags[wave[lags] >= _AS_GOOD * best][0])
    return _peak_near(wave, float(lag))


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


def _longest_run(mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """First and last-but-one place of the longest run of true values."""
    best = (0, 0)
    start = None
    for place, value in enumerate([*mask.tolist(), False]):
        if value and start is None:
            start = place
        elif not value and start is not None:
            if place - start > best[1] - best[0]:
                best = (start, place)
            start = None
    return best
