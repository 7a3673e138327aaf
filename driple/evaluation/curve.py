"""Learning curve of a transfer: error by number of measured workloads, and its extrapolation.

    sizes n1 < n2 < ... of the labels -> a transfer each -> errors on one test part
    log error = a - b log n, b drawn to that of the shipped settings -> from the last error on

Entry point: `learning_curve`. It shows whether more measurements would reduce the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from driple.training.metrics import Scores

if TYPE_CHECKING:
    from driple.evaluation.json_types import LearningCurveJson

__all__ = ["CurvePoint", "LearningCurve", "curve_sizes", "learning_curve", "why_no_curve"]

# Of 25 transfers with 12 labels three were 70 times worse than with 24, and a line through such
# points promises what no label brings. From 20 on no doubling changed an error over 1.4 times.
LEAST_SIZE = 20
WORTH_IT = 0.05  # relative gain of twice the labels below which measuring is not recommended
# Of the 25 curves in scripts/studies/transfer (decision 0008): the mean slope; what it weighs
# against a curve's own slope, in squared doublings; and how far four of five forecasts of the next
# doubling are off at most, in slope.
TYPICAL_SLOPE = 0.12
TYPICAL_WEIGHT = 1.0
SPREAD = 0.13


@dataclass(frozen=True, kw_only=True, slots=True)
class CurvePoint:
    """One transfer.

    Attributes:
        size: labels it learned from, training and validation together.
        scores: errors on the test part.
        seconds: wall time of its epochs.
    """

    size: int
    scores: Scores
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningCurve:
    """Errors at growing sizes, and how they are expected to go on.

    Attributes:
        points: points by size; the last one is of all labels.
        slope: b of log error = a - b log n; 0 where more labels do not help.
    """

    points: tuple[CurvePoint, ...]
    slope: float

    @classmethod
    def through(cls, points: Sequence[CurvePoint]) -> LearningCurve:
        """Curve through two points or more: least-squares slope b, with w * (b - typical)^2 added.

        One curve's points are so uncertain that its own slope alone forecasts worse than the
        typical one (decision 0008).
        """
        doublings, logs = np.log2([[one.size, one.scores.mean_nrmse] for one in points]).T
        doublings -= doublings.mean()
        own = -doublings @ logs  # the least-squares slope, times the next
        weight = doublings @ doublings
        slope = (own + TYPICAL_WEIGHT * TYPICAL_SLOPE) / (weight + TYPICAL_WEIGHT)
        return cls(points=tuple(points), slope=max(float(slope), 0.0))

    def nrmse_at(self, size: int) -> float:
        """Expected average NRMSE with this many labels; an estimate, from the last point on."""
        return self._continued(size, self.slope)

    def nrmse_range(self, size: int) -> tuple[float, float]:
        """Range that is expected to contain four of five such estimates."""
        low, high = self._slopes
        return self._continued(size, high), self._continued(size, low)

    @property
    def gain_of_doubling(self) -> float:
        """Share by which the error is expected to fall with twice the labels."""
        return _gain(self.slope)

    @property
    def gain_range(self) -> tuple[float, float]:
        """Range expected to contain four of five gains of twice the labels; never below 0."""
        low, high = self._slopes
        return _gain(low), _gain(high)

    @property
    def worth_measuring_more(self) -> bool:
        """Whether twice the labels are expected to bring 5 % or more."""
        return self.gain_of_doubling >= WORTH_IT

    @property
    def advice(self) -> str:
        """Advice, as certain as the range allows."""
        if self.gain_range[0] >= WORTH_IT:
            return "measuring more is worth it"
        if self.worth_measuring_more:
            return "measuring more is probably worth it"
        return "more would probably bring little"

    def to_json_dict(self) -> LearningCurveJson:
        """Points and estimates."""
        last = self.points[-1].size
        return {
            "points": [
                {
                    "workloads": point.size,
                    "nrmse": point.scores.mean_nrmse,
                    "smape_pct": point.scores.mean_smape_pct,
                    "iteration_time_mape_pct": point.scores.iteration_time_mape_pct,
                    "seconds": point.seconds,
                }
                for point in self.points
            ],
            "estimates": [
                {
                    "workloads": size,
                    "nrmse": self.nrmse_at(size),
                    "nrmse_range": self.nrmse_range(size),
                }
                for size in (2 * last, 4 * last)
            ],
            "gain_of_doubling": self.gain_of_doubling,
            "gain_of_doubling_range": self.gain_range,
            "worth_measuring_more": self.worth_measuring_more,
            "advice": self.advice,
        }

    @property
    def _slopes(self) -> tuple[float, float]:
        return max(self.slope - SPREAD, 0.0), self.slope + SPREAD

    def _continued(self, size: int, slope: float) -> float:
        last = self.points[-1]
        return float(last.scores.mean_nrmse * (size / last.size) ** -slope)


def learning_curve(run: Callable[[int], CurvePoint], last: CurvePoint) -> LearningCurve | None:
    """The curve up to a transfer that is done already; None if there are too few labels for one.

    Args:
        run: transfers on this many labels, and scores as `last` was scored.
        last: the transfer on all labels, which is done.
    """
    sizes = curve_sizes(last.size)
    if not sizes:
        return None
    return LearningCurve.through([*(run(size) for size in sizes), last])


def curve_sizes(size: int) -> list[int]:
    """Sizes below this one: its eighth, quarter and half, as far as they are large enough."""
    return [size // part for part in (8, 4, 2) if size // part >= LEAST_SIZE]


def why_no_curve(size: int) -> str:
    """Replacement for the curve of a transfer with too few labels."""
    return (
        f"no learning curve: it takes {2 * LEAST_SIZE} workloads to learn from, here are {size}; "
        f"elsewhere twice the workloads brought {100 * _gain(TYPICAL_SLOPE):.0f} % less error"
    )


def _gain(slope: float) -> float:
    return float(1 - 2.0**-slope)
