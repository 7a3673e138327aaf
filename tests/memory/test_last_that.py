"""The last number for which something holds, asked no more often than halving asks."""

from __future__ import annotations

from math import log2

from hypothesis import given
from hypothesis import strategies as st

from driple.memory.last_that import last_that

COUNTS = st.integers(0, 1000)


@given(COUNTS, st.integers(-1, 1100), st.integers(-1, 1100))
def test_the_last_is_found_whatever_is_guessed(count: int, last: int, guess: int) -> None:
    asked: list[int] = []

    def holds(number: int) -> bool:
        asked.append(number)
        return number <= last

    assert last_that(holds, count, guess) == min(last, count - 1)
    assert all(0 <= number < count for number in asked)
    assert len(asked) == len(set(asked))
    assert len(asked) <= (log2(count) + 1 if count else 0) + 2


@given(st.integers(2, 10**6), st.data())
def test_a_good_guess_is_two_questions(count: int, data: st.DataObject) -> None:
    last = data.draw(st.integers(0, count - 1))
    asked: list[int] = []

    def holds(number: int) -> bool:
        asked.append(number)
        return number <= last

    assert last_that(holds, count, last) == last
    assert asked == [last, last + 1][: count - last]
