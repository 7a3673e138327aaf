"""Split a trace into burst and idle samples, and those into runs (paper, sections 2.3 to 3.3).

    amount  __###__###  -> two_means ->  FFTTTFFTTT  -> runs ->  2 idle, 3 burst, 2 idle ...

Pure: no clock, no files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["BoolArray", "FloatArray", "Runs", "runs", "two_means"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Lloyd's algorithm in one dimension moves a threshold; it settles within a few dozen steps.
_MAX_STEPS = 200


def two_means(amount: FloatArray) -> BoolArray:
    """Mask of the burst samples, by 2-means on the amounts (paper, section 2.4).

    In one dimension 2-means is a threshold half-way between the two cluster means. It starts
    half-way between the 1st and the 99th percentile, which is robust to outliers.

    Args:
        amount: shape [n], n >= 1, any unit.

    Returns:
        Shape [n], true for a burst sample; all false if all amounts are equal.
    """
    low, high = (float(value) for value in np.percentile(amount, (1, 99)))
    if low == high:
        low, high = float(amount.min()), float(amount.max())
    burst = np.zeros(len(amount), dtype=np.bool_)
    if low == high:
        return burst
    for _ in range(_MAX_STEPS):
        split = amount > (low + high) / 2
        if (split == burst).all() or split.all() or not split.any():
            break
        burst = split
        low, high = float(amount[~burst].mean()), float(amount[burst].mean())
    return burst


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """Runs of equal samples, in order.

    Attributes:
        length: shape [r], int64, samples in each run.
        is_burst: shape [r], bool.
    """

    length: npt.NDArray[np.int64]
    is_burst: BoolArray


def runs(is_burst: BoolArray, *, drop_cut: bool = True) -> Runs:
    """The runs of burst and of idle samples.

    Args:
        is_burst: shape [n], n >= 1.
        drop_cut: leave out the first and the last run, which the ends of the trace cut short, as
            long as a whole burst and a whole idle gap remain.
    """
    edges = np.flatnonzero(np.diff(is_burst)) + 1
    starts = np.concatenate(([0], edges))
    length = np.diff(np.concatenate((starts, [len(is_burst)])))
    kind = is_burst[starts]
    if drop_cut and len(length) >= 4:
        length, kind = length[1:-1], kind[1:-1]
    return Runs(length=length.astype(np.int64), is_burst=kind)
