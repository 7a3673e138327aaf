"""The error that one simulated answer states.

StatedError: what is expected of the answer, and the errors of the runs that this rests on
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypedDict

from driple.codec import json_field
from driple.estimate import GUESS_FACTOR
from driple.remarks import Remark

__all__ = ["StatedError", "StatedErrorJson", "TunedError"]

_EMPTY_FACTOR = 1000.0  # the same, from which on an interval says nothing and is not stated
_GUESS_PCT = 100.0  # median error, from which on it is one too

TunedError = Literal["median_pct", "p90_pct"]


class StatedErrorJson(TypedDict):
    """Error of the simulator that is expected of an answer, from published runs like it.

    Attributes:
        checked: whether there are such runs.
        runs: number of runs that the expected error rests on.
        of: what these runs are; without runs, why there are none.
        median_pct: expected of this answer, percent: that of the runs, adjusted to how unlike
            published jobs its ops are and how few the families of the runs are.
        p90_pct: 90th percentile that is expected of this answer, in the same way.
        runs_median_pct: median error of the runs themselves, each model family counted alike.
        runs_p90_pct: 90th percentile of the errors of the runs themselves.
        tuned: which of the expected errors are those of the runs that the device is tuned to, each
            left out of the tuning, as these are larger.
        low_factor: on the simulated time, to the lower end of its 90 % interval; null if none was
            calibrated.
        high_factor: to the upper end.
        nearest_because: why there are no runs of the answer's own kind, so that these are of the
            nearest kind and the interval is wider; null where they are of its own.
    """

    checked: bool
    runs: int
    of: Remark
    median_pct: float | None
    p90_pct: float | None
    runs_median_pct: float | None
    runs_p90_pct: float | None
    tuned: Sequence[TunedError]
    low_factor: float | None
    high_factor: float | None
    nearest_because: Remark | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedError:
    """Error that is expected of a simulated iteration time, from runs like the answer's.

    What is expected differs from the errors of these runs: it is scaled by how far the job's mix of
    ops is from those of published jobs, and widened, and drawn to those of the runs around them,
    where the runs are of few model families.

    Attributes:
        num_runs: how many; 0 if there are none.
        runs: what they are; without runs, why there are none.
        median_pct: expected of the answer, percent; None without runs.
        p90_pct: the 90th percentile that is expected of it; None without runs.
        runs_median_pct: median error of the runs themselves, each model family counted alike,
            percent; None without runs.
        runs_p90_pct: their 90th percentile; None without runs.
        tuned: names of the expected numbers that are those of the runs that the device was tuned
            to, as these were larger.
        short: what the runs are and what was left out of their fits; None without runs.
        low_factor: on the simulated time, to the lower end of its 90 % interval; None if no
            interval was calibrated.
        high_factor: to the upper end.
        nearest_because: why there are no runs of the answer's own kind, so that these are of the
            nearest kind and the interval is wider; None where they are of its own.
    """

    num_runs: int = field(default=0, metadata=json_field(name="runs"))
    runs: Remark = field(metadata=json_field(name="of"))
    median_pct: float | None = None
    p90_pct: float | None = None
    runs_median_pct: float | None = None
    runs_p90_pct: float | None = None
    tuned: tuple[TunedError, ...] = ()
    short: Remark | None = None
    low_factor: float | None = None
    high_factor: float | None = None
    nearest_because: Remark | None = None

    @property
    def is_checked(self) -> bool:
        """Whether runs of the answer's own kind were checked."""
        return self.num_runs > 0 and self.nearest_because is None

    @property
    def p90(self) -> float | None:
        """The 90th percentile as a share; None if it is not known."""
        return None if self.p90_pct is None else self.p90_pct / 100

    @property
    def is_guess(self) -> bool:
        """Whether the error expected of the answer is so large that it is but a guess."""
        if self.low_factor is None or self.high_factor is None or self.median_pct is None:
            return False
        wide = self.high_factor > GUESS_FACTOR * self.low_factor
        return wide or self.median_pct > _GUESS_PCT

    def interval_of(self, seconds: float) -> tuple[float, float] | None:
        """The 90 % interval of a simulated time; None if there is none, or it says nothing."""
        if self.low_factor is None or self.high_factor is None:
            return None
        if self.high_factor > _EMPTY_FACTOR * self.low_factor:
            return None
        return seconds * self.low_factor, seconds * self.high_factor

    def to_dict(self) -> StatedErrorJson:
        """As `--json` prints it."""
        return {
            "checked": self.is_checked,
            "runs": self.num_runs,
            "of": self.runs,
            "median_pct": self.median_pct,
            "p90_pct": self.p90_pct,
            "runs_median_pct": self.runs_median_pct,
            "runs_p90_pct": self.runs_p90_pct,
            "tuned": self.tuned,
            "low_factor": self.low_factor,
            "high_factor": self.high_factor,
            "nearest_because": self.nearest_because,
        }

    def of_nearest(self, reason: Remark, exponent: float) -> StatedError:
        """The error of the nearest kind, for an answer that no run is like.

        Args:
            reason: why there are none.
            exponent: on the factors of the interval; above 1.
        """
        low, high = self.low_factor, self.high_factor
        return replace(
            self,
            low_factor=None if low is None else low**exponent,
            high_factor=None if high is None else high**exponent,
            nearest_because=reason,
        )

    def no_surer_than(self, other: StatedError) -> StatedError:
        """The same with errors and an interval that are no smaller than others.

        Args:
            other: error of a part of the answer, such as one of several machines.
        """
        return replace(
            self,
            median_pct=_larger(self.median_pct, other.median_pct),
            p90_pct=_larger(self.p90_pct, other.p90_pct),
            low_factor=None
            if self.low_factor is None
            else min(self.low_factor, other.low_factor or self.low_factor),
            high_factor=_larger(self.high_factor, other.high_factor),
        )


def _larger(value: float | None, other: float | None) -> float | None:
    """The larger of two numbers, where both are known."""
    return value if value is None or other is None else max(value, other)
