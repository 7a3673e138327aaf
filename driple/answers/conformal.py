"""Intervals around a simulated time, from the errors of runs that were held out.

    logarithms of simulated over published, distances, cells --ErrorSpread--> Spread of one answer

Conformal prediction with a local scale (Lei et al., JASA 2018; Mondrian cells: Vovk et al., 2005):
a residual is divided by the size of residuals at its distance, which does not fall as the distance
grows, and quantiles of what remains are taken within the cell of the answer. A cell with few
families is drawn towards the cell that contains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.estimate import LEVEL

__all__ = ["ErrorSpread", "Spread", "error_quantiles"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

_MOST_BINS = 6  # of distances, each with the same weight
_FAMILIES_OF_BIN = 5  # at least: errors of fewer would pass for errors of their distance
_SHRINK = 4.0  # families that the cell around a cell counts as
# Beyond the distances of all runs, residuals are taken to double after this distance, and to grow
# no more after twice as far: two mixes are at most 1 apart.
_DOUBLES, _MOST_BEYOND = 0.3, 2.0
_LEAST_SCALE = 0.01  # of a logarithm: repeated runs differ by as much


@dataclass(frozen=True, slots=True)
class Spread:
    """Errors that belong to one answer.

    Attributes:
        low: factor on the simulated time to the lower end of its interval, at most 1.
        high: to the upper end, at least 1.
        median: of |simulated - true| / true.
        p90: its 90th percentile.
    """

    low: float
    high: float
    median: float
    p90: float

    def at_least(self, other: Spread) -> Spread:
        """Errors no smaller than others, nor the interval narrower at either end."""
        return Spread(
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            median=max(self.median, other.median),
            p90=max(self.p90, other.p90),
        )


class ErrorSpread:
    """Residuals of runs of one kind, and what they state of an answer at a distance.

    Args:
        logs: shape [n], ln(simulated / published).
        distances: shape [n], of each run's job from those that its fit had seen.
        weights: shape [n], not negative, not all 0.
        families: of the runs; runs of one family are no independent evidence.
    """

    def __init__(
        self,
        logs: FloatArray,
        distances: FloatArray,
        weights: FloatArray,
        families: Sequence[object],
    ) -> None:
        self.logs, self.weights = logs, weights
        self._families = np.unique(np.array([repr(one) for one in families]), return_inverse=True)[
            1
        ]
        bins = int(self._families.max() + 1) // _FAMILIES_OF_BIN
        self._at, self._sizes = _monotone(
            np.abs(logs), distances, weights, bins=min(max(bins, 1), _MOST_BINS)
        )
        scales = self.scale(distances)
        self._scaled = logs / scales
        self._errors = np.abs(np.expm1(logs)) / scales

    def scale(self, distances: FloatArray) -> FloatArray:
        """Size of residuals at some distances; it grows with the distance beyond all runs."""
        last = self._at[-1]
        inside = np.interp(distances, self._at, self._sizes)
        beyond = np.minimum(np.maximum(distances - last, 0.0) / _DOUBLES, _MOST_BEYOND)
        scales: FloatArray = np.maximum(inside * (1 + beyond), _LEAST_SCALE)
        return scales

    def spread(self, distance: float, cells: Sequence[BoolArray]) -> Spread:
        """Errors of an answer.

        Args:
            distance: of its job from those that the fit has seen.
            cells: shape [n] each, runs of a cell, each cell within the one before.
        """
        size = float(self.scale(np.array([distance]))[0])
        tail = (1 - LEVEL) / 2
        low, high = self._shrunk(self._scaled, cells, (tail, 1 - tail))
        median, p90 = self._shrunk(self._errors, cells, (0.5, LEVEL))
        return Spread(
            low=min(float(np.exp(-high * size)), 1.0),
            high=max(float(np.exp(-low * size)), 1.0),
            median=median * size,
            p90=p90 * size,
        )

    def _shrunk(
        self, values: FloatArray, cells: Sequence[BoolArray], shares: Sequence[float]
    ) -> list[float]:
        """Quantiles in the last cell, drawn towards those of the cells around it."""
        found = [_conformal(values, self.weights, self._families, share) for share in shares]
        for cell in cells:
            if not cell.any():
                break
            own = self._families[cell]
            count = len(np.unique(own))
            trust = count / (count + _SHRINK)
            inner = [_conformal(values[cell], self.weights[cell], own, share) for share in shares]
            found = [
                trust * one + (1 - trust) * around for one, around in zip(inner, found, strict=True)
            ]
        return found


def error_quantiles(logs: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Median and 90th percentile of |simulated - true| / true of some runs, as they are.

    Neither scaled by distance nor widened for few families: a description of these runs.

    Args:
        logs: shape [n], ln(simulated / published), n of at least 1.
        weights: shape [n], above 0.
    """
    errors = np.abs(np.expm1(logs))
    ordered, middle = _ordered(errors, weights)
    median, p90 = np.interp((0.5, LEVEL), middle, ordered)
    return float(median), float(p90)


def _ordered(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values, rising, and the share of the weights up to the middle of each."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return values[order], (reached - weights[order] / 2) / reached[-1]


def _conformal(
    values: FloatArray, weights: FloatArray, families: npt.NDArray[np.intp], share: float
) -> float:
    """A weighted quantile, as far out as the number of families asks for.

    With n exchangeable values, the one of rank (n + 1) share holds for the next; below the median
    the same from the other side. A few families hardly show the tails: their distance from the
    median is lengthened as Student's t is beyond the normal distribution.
    """
    ordered, middle = _ordered(values, weights)
    median = float(np.interp(0.5, middle, ordered))
    if share == 0.5:
        return median
    count = len(np.unique(families))
    found = float(np.interp(share + (share - 0.5) / count, middle, ordered))
    return median + (found - median) * _lengthened(count)


def _lengthened(count: int) -> float:
    """The 95 % quantile of a prediction by so many normal values, over that of the normal
    distribution (Cornish and Fisher's expansion of Student's t).
    """
    z, free = 1.6449, max(count - 1, 3)
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return float((1 + first / z / free + second / z / free**2) * (1 + 1 / count) ** 0.5)


def _monotone(
    sizes: FloatArray, distances: FloatArray, weights: FloatArray, *, bins: int
) -> tuple[FloatArray, FloatArray]:
    """Mean size in bins of distance, made not to fall (pool adjacent violators).

    Returns:
        Distances, rising, and sizes at them.
    """
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(weights[order])
    middle = (reached - weights[order] / 2) / reached[-1]
    bin_of = np.minimum((bins * middle).astype(int), bins - 1)
    blocks: list[list[float]] = []  # distance, size, weight
    for number in range(bins):
        some = order[bin_of == number]
        mass = float(weights[some].sum())
        if mass <= 0:
            continue
        blocks.append([
            float(np.average(distances[some], weights=weights[some])),
            float(np.average(sizes[some], weights=weights[some])),
            mass,
        ])  # fmt: skip
        while len(blocks) > 1 and blocks[-2][1] >= blocks[-1][1]:
            after, before = blocks.pop(), blocks.pop()
            both = before[2] + after[2]
            blocks.append([
                (before[0] * before[2] + after[0] * after[2]) / both,
                (before[1] * before[2] + after[1] * after[2]) / both,
                both,
            ])  # fmt: skip
    return np.array([one[0] for one in blocks]), np.array([one[1] for one in blocks])
