"""How the error of a transfer falls with the number of measured workloads, and where it would go.

    sizes n1 < n2 < ... of the labels -> a transfer each -> errors on one test part
    log error = a - b log n, least squares -> errors at larger sizes

Entry point: `learning_curve`. So that a user knows when measuring more is no longer worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driple.training.metrics import Scores

__all__ = ["CurvePoint", "LearningCurve", "curve_sizes", "learning_curve"]

LEAST_SIZE = 12
WORTH_IT = 0.05  # relative gain of twice the labels below which measuring is said to be done


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
    """Errors at growing sizes, and the line through them.

    Attributes:
        points: by size; the last one is of all labels.
        slope: b of log error = a - b log n; 0 where more labels do not help.
        level: a.
    """

    points: tuple[CurvePoint, ...]
    slope: float
    level: float

    @classmethod
    def through(cls, points: Sequence[CurvePoint]) -> LearningCurve:
        """The least-squares line through two points or more."""
        logs = np.log([[point.size, point.scores.mean_nrmse] for point in points])
        slope, level = np.polyfit(logs[:, 0], logs[:, 1], 1)
        if slope > 0:  # more labels did not help, so none are promised to
            slope, level = 0.0, float(logs[:, 1].mean())
        return cls(points=tuple(points), slope=-float(slope), level=float(level))

    def nrmse_at(self, size: int) -> float:
        """The average NRMSE that the line gives for so many labels; an estimate."""
        return float(np.exp(self.level - self.slope * np.log(size)))

    @property
    def gain_of_doubling(self) -> float:
        """By which share the error falls with twice the labels, as the line has it."""
        return float(1 - 2.0**-self.slope)

    @property
    def worth_measuring_more(self) -> bool:
        """Whether twice the labels would bring 5 % or more."""
        return self.gain_of_doubling >= WORTH_IT

    def to_json_dict(self) -> dict[str, Any]:
        """Points, line and estimates."""
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
                {"workloads": size, "nrmse": self.nrmse_at(size)} for size in (2 * last, 4 * last)
            ],
            "gain_of_doubling": self.gain_of_doubling,
            "worth_measuring_more": self.worth_measuring_more,
        }


def learning_curve(run: Callable[[int], CurvePoint], last: CurvePoint) -> LearningCurve | None:
    """The curve up to a transfer that is done already; None if there are too few labels for one.

    Args:
        run: transfers on so many labels, and scores as `last` was scored.
        last: the transfer on all labels, which is done.
    """
    sizes = curve_sizes(last.size)
    if not sizes:
        return None
    return LearningCurve.through([*(run(size) for size in sizes), last])


def curve_sizes(size: int) -> list[int]:
    """Sizes below this one: its eighth, quarter and half, as far as they are large enough."""
    return [size // part for part in (8, 4, 2) if size // part >= LEAST_SIZE]
