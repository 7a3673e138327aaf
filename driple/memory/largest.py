"""The largest batches of a device that fit: by the estimate, and by the upper end of its interval.

batch size -> MemoryEstimate --largest_batches--> LargestBatches
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from driple.memory.estimate import MemoryEstimate
from driple.memory.last_that import last_that

__all__ = ["MOST_BATCH", "LargestBatches", "largest_batches"]

MOST_BATCH = 2**20  # that is looked for


@dataclass(frozen=True, kw_only=True, slots=True)
class LargestBatches:
    """Samples of a device, the most that fit; 0 if not even one does.

    Attributes:
        expected: by the estimate itself.
        sure: by the upper end of its interval, which nineteen of twenty runs stay below; None where
            the estimate has no upper end.
    """

    expected: int
    sure: int | None


def largest_batches(at: Callable[[int], MemoryEstimate], start: int = 1) -> LargestBatches:
    """The largest batches that fit, where a larger one needs more.

    Args:
        at: memory by batch size, from 1 on.
        start: where the largest one is looked for first.
    """
    known = cache(at)
    expected = _last(lambda size: known(size).fits == "yes", MOST_BATCH, start)
    if known(max(expected, 1)).has_upper_end is False:
        return LargestBatches(expected=expected, sure=None)
    sure = _last(lambda size: known(size).surely_fits, expected, start)
    return LargestBatches(expected=expected, sure=sure)


def _last(holds: Callable[[int], bool], most: int, start: int) -> int:
    """The last number from 1 to `most` for which something holds that fails later on, or 0."""
    high = max(1, min(start, most))
    while high < most and holds(high):
        high = min(2 * high, most)
    return 1 + last_that(lambda number: holds(number + 1), high)
