"""The largest batches of a device that fit: by the estimate, and by the upper end of its interval.

batch size -> MemoryEstimate --largest_batches--> LargestBatches
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from driple.memory.calibration import shipped_memory_calibration
from driple.memory.last_that import last_that
from driple.memory.memory_estimate import MemoryEstimate

__all__ = ["MOST_BATCH", "LargestBatches", "largest_batches"]

MOST_BATCH = 2**20  # that is looked for
_LINES = 3


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
        at: memory by batch size, from 1 on, which grows nearly in proportion.
        start: a batch size to begin with.
    """
    known = cache(at)
    expected = _last(lambda size: known(size).fits == "yes", _guess(known, start, _left))
    if not known(max(expected, 1)).has_upper_end:
        return LargestBatches(expected=expected, sure=None)
    sure = _last(lambda size: known(size).surely_fits, _guess(known, start, _surely_left))
    return LargestBatches(expected=expected, sure=sure)


def _left(memory: MemoryEstimate) -> float:
    """Bytes that are left up to where a job still fits; a little more may be refused, or fit."""
    known = shipped_memory_calibration()
    unsure = (known.no_above - known.yes_below) * (memory.usable_bytes or 0.0)
    return (memory.margin_bytes or 0.0) - unsure


def _surely_left(memory: MemoryEstimate) -> float:
    """Bytes that are left by the upper end of the interval; by the estimate if there is none."""
    needed, room = memory.needed, memory.capacity_bytes
    if needed is None or needed.upper is None or room is None:
        return _left(memory)
    return room - needed.upper


def _guess(
    at: Callable[[int], MemoryEstimate], start: int, left: Callable[[MemoryEstimate], float]
) -> int:
    """The batch size at which nothing is left, by lines through sizes that come ever nearer."""
    size, first = 2 * start, left(at(start))
    for _ in range(_LINES):
        slope = (first - left(at(size))) / (size - start)
        if slope <= 0:
            return size
        nearer = max(1, min(int(start + first / slope), MOST_BATCH))
        if nearer in {size, start}:
            return nearer
        size = nearer
    return size


def _last(holds: Callable[[int], bool], guess: int) -> int:
    """The last number from 1 on for which something holds that fails later on, near a guess; or 0.

    It is looked for in steps that double, away from the guess.
    """
    step = 1
    if holds(guess):
        low = guess
        while low + step <= MOST_BATCH and holds(low + step):
            low, step = low + step, 2 * step
        return low + 1 + last_that(lambda number: holds(low + 1 + number), step - 1)
    high = guess
    while high > 1 and not holds(max(high - step, 1)):
        high, step = max(high - step, 1), 2 * step
    low = max(high - step, 0)
    return low + 1 + last_that(lambda number: holds(low + 1 + number), high - low - 1)
