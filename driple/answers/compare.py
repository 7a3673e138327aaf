"""Iteration times of one job by several methods, and where they cannot all be right.

MethodTime, MethodTime, ... -> Disagreement, ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

__all__ = ["Disagreement", "MethodTime", "disagreements", "p90_of"]

# Of normal errors, the 90th percentile of their size over its mean, or its median.
_P90_OF_MEAN, _P90_OF_MEDIAN = 2.06, 2.44


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodTime:
    """What one method says of an iteration.

    Attributes:
        method: its name.
        iteration_time_s: seconds.
        p90: size of its error, as a share, that nine of ten stay below; 0 of a measurement; none
            where the error is not known.
        calibrated_s: ends of an interval that was calibrated, in place of what `p90` comes to.
    """

    method: str
    iteration_time_s: float
    p90: float | None
    calibrated_s: tuple[float, float] | None = None

    @property
    def interval_s(self) -> tuple[float, float] | None:
        """Where the true time lies nine times out of ten; none where the error is not known."""
        if self.calibrated_s is not None or self.p90 is None:
            return self.calibrated_s
        least = self.iteration_time_s / (1 + self.p90)
        most = self.iteration_time_s / (1 - self.p90) if self.p90 < 1 else float("inf")
        return least, most


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two methods whose intervals have nothing in common."""

    one: MethodTime
    other: MethodTime

    @property
    def factor(self) -> float:
        """The longer time over the shorter one."""
        times = sorted((self.one.iteration_time_s, self.other.iteration_time_s))
        return times[1] / times[0]


def disagreements(estimates: Sequence[MethodTime]) -> list[Disagreement]:
    """All pairs of methods that differ by more than their known errors, the furthest first."""
    found = []
    for one, other in combinations(estimates, 2):
        first, second = one.interval_s, other.interval_s
        if first is None or second is None:
            continue
        if first[0] > second[1] or second[0] > first[1]:
            found.append(Disagreement(one, other))
    return sorted(found, key=lambda item: -item.factor)


def p90_of(error: Mapping[str, float]) -> float | None:
    """The 90th percentile of a method's errors, as a share; from mean or median if need be."""
    for name, factor in (
        ("p90_pct", 1.0),
        ("mean_pct", _P90_OF_MEAN),
        ("median_pct", _P90_OF_MEDIAN),
    ):
        if name in error:
            return factor * error[name] / 100
    return None
