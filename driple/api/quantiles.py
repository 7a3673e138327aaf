"""Quantiles of an estimate, which follow from its interval.

Estimate with an interval of a known level --quantiles_of--> Quantiles(p10, p50, p90)

The simulator's interval is made on the logarithm of the time: its ends are factors on the value,
from residuals whose size is the scale of a Laplace distribution (`driple.answers.error_scale`). So
the logarithm of the true value is taken to have a Laplace tail on each side of the value, each with
the width of its own side of the interval:

    P(true < value * (low / value)^x)   = 0.5 * tail^x,   tail = P(true < low) / 0.5
    x of p10 = ln(0.5 / 0.1) / ln(0.5 / ((1 - level) / 2));   0.699 for a level of 0.9

p50 is the value itself. An interval that other causes widen, such as a slow host, is taken the same
way: its quantiles are as cautious as its ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from driple.estimate import Estimate

__all__ = ["Quantiles", "quantiles_of"]

_TAIL = 0.1  # of p10 and of p90


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantiles:
    """Quantiles of the true value, in the unit of the value.

    Attributes:
        p10: one of ten true values is below it.
        p50: the value itself.
        p90: nine of ten are below it; null if the error has no upper bound.
    """

    p10: float
    p50: float
    p90: float | None


def quantiles_of(number: Estimate | None) -> Quantiles | None:
    """Its quantiles; None where it has no interval of a known level.

    The ends of an interval whose level is 0.8 are the quantiles themselves; one of a lower level
    has none within it.
    """
    interval = None if number is None else number.interval
    if number is None or interval is None or interval.level is None or number.value <= 0:
        return None
    tail = (1 - interval.level) / 2
    if not 0 < tail <= _TAIL or interval.low <= 0:
        return None
    share = log(0.5 / _TAIL) / log(0.5 / tail)
    low, value = min(interval.low, number.value), number.value
    high = None if interval.high is None else max(interval.high, value)
    return Quantiles(
        p10=value * (low / value) ** share,
        p50=value,
        p90=None if high is None else value * (high / value) ** share,
    )
