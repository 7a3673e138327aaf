"""One answer with its interval, its method and its source: the number of every result.

{"value": 0.31, "interval": {"low": 0.28, "high": 0.34, "level": 0.9},
 "method": "simulator", "source": "simulated"}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from driple.errors import ConfigError

__all__ = [
    "GUESS_FACTOR",
    "LEVEL",
    "NEAREST_KIND_WIDER",
    "Estimate",
    "Interval",
    "Method",
    "Source",
    "estimate",
    "optional_estimate",
]

LEVEL = 0.9
"""Share of true values in the intervals that are stated."""
GUESS_FACTOR = 6.0
"""Upper over lower end of an interval, from which on a number is called a guess."""
NEAREST_KIND_WIDER = 1.25
"""On the logarithms of an interval's ends, where runs of the nearest kind stand in."""

Method = Literal["inspector", "simulator", "zhang", "zeng-repaired", "zeng", "measured"]
Source = Literal["measured", "simulated", "published"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """Where the true value is expected, in the unit of the value.

    Attributes:
        low: lower end.
        high: upper end; None if the error has no upper bound.
        level: share of true values within it; None if that is unknown.
    """

    low: float
    high: float | None
    level: float | None = None

    def __post_init__(self) -> None:
        """Refuse ends that are not finite or in the wrong order."""
        ends = [self.low, *(() if self.high is None else (self.high,))]
        if not all(isfinite(end) for end in ends) or ends[-1] < self.low:
            raise ConfigError(
                f"an interval needs finite ends in order, got {self.low} to {self.high}"
            )

    @property
    def width(self) -> float:
        """Upper over lower end; infinite where there is no upper bound, or the lower end is 0."""
        return self.high / self.low if self.high is not None and self.low > 0 else inf

    @classmethod
    def of(cls, ends: Sequence[float] | None, level: float | None) -> Interval | None:
        """From a pair of ends, whose upper one may be infinite; None of None."""
        if ends is None:
            return None
        low, high = (float(end) for end in ends)
        return cls(low=low, high=high if isfinite(high) else None, level=level)


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A number that Driple answers.

    Attributes:
        value: the number, in the unit that its name states.
        interval: where the true value is expected; None if the error is unknown.
        method: what computed it: `inspector`, `simulator`, a closed form (`zhang`,
            `zeng-repaired`, `zeng`), or `measured`.
        source: what it rests on: `measured`, `simulated` or `published` numbers.
    """

    value: float
    interval: Interval | None = None
    method: Method
    source: Source = "simulated"

    def __post_init__(self) -> None:
        """Refuse a value that is not finite."""
        if not isfinite(self.value):
            raise ConfigError(f"the {self.method} gives {self.value}, a finite number is needed")

    @property
    def is_guess(self) -> bool:
        """Whether the interval is so wide that the value alone would mislead."""
        return self.interval is not None and self.interval.width > GUESS_FACTOR


def estimate(
    value: float,
    method: Method,
    source: Source = "simulated",
    *,
    ends: Sequence[float] | None = None,
    level: float | None = None,
) -> Estimate:
    """A number with its interval.

    Args:
        value: the number.
        method: that answered.
        source: what the number rests on.
        ends: of the interval, whose upper one may be infinite; None if the error is not known.
        level: share of true values within it; None if that is not known.
    """
    interval = Interval.of(ends, level)
    return Estimate(value=value, interval=interval, method=method, source=source)


def optional_estimate(
    value: float | None, method: Method, source: Source = "simulated"
) -> Estimate | None:
    """A number without an interval; None of None.

    Args:
        value: the number, where there is one.
        method: that answered.
        source: what the number rests on.
    """
    return None if value is None else estimate(value, method, source)
