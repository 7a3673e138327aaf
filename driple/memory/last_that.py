"""The largest number that something holds for, such as the largest batch that fits."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["last_that"]


def last_that(holds: Callable[[int], bool], count: int, guess: int = -1) -> int:
    """The last of some numbers for which something holds that fails from some number on; or -1.

    Args:
        holds: what is asked of a number.
        count: how many numbers there are, from 0.
        guess: where the last one probably is, and is looked for first.
    """
    low, high = -1, count
    first = [number for number in (guess, guess + 1) if 0 <= number < count and guess >= 0]
    while high - low > 1:
        middle = first.pop(0) if first else (low + high) // 2
        if not low < middle < high:
            continue
        if holds(middle):
            low = middle
        else:
            high = middle
    return low
