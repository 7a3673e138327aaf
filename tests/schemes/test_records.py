"""Records of workers: mean step time, and what counters read, made when it is asked for."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.errors import ConfigError
from driple.schemes.records import Computing, Use, WorkerRecord, check_rate

SEGMENT = Computing(0.0, 1.0, 0.5, 0.25)


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=20), st.floats(0, 100))
def test_a_step_takes_the_mean_of_all_after_the_first(steps: list[float], first: float) -> None:
    ends = [first]
    for seconds in steps:
        ends.append(ends[-1] + seconds)
    record = WorkerRecord(step_ends_s=ends)
    assert record.iteration_time_s == pytest.approx(sum(steps) / len(steps))


def test_one_step_takes_as_long_as_it_ends() -> None:
    assert WorkerRecord(step_ends_s=[3.0]).iteration_time_s == 3.0
    assert WorkerRecord(step_ends_s=[3.0, 5.0]).iteration_time_s == 2.0


def test_what_counters_read_is_made_once_and_only_if_asked_for() -> None:
    readings = []

    def use(begin: int, end: int) -> Use:
        readings.append((begin, end))
        return [SEGMENT], [(0.0, 5.0)], [(0.0, 7.0)]

    record = WorkerRecord(step_ends_s=[1.0], make_use=use)
    assert record.iteration_time_s == 1.0
    assert not readings
    assert (record.computing, record.tx, record.rx) == ([SEGMENT], [(0.0, 5.0)], [(0.0, 7.0)])
    assert readings == [(0, 1)]


def test_beside_a_step_its_neighbours_are_made() -> None:
    ranges = []

    def use(begin: int, end: int) -> Use:
        ranges.append((begin, end))
        return [], [], []

    record = WorkerRecord(step_ends_s=[1.0, 2.0, 3.0, 4.0], make_use=use)
    for number in range(4):
        record.use_beside(number)
    assert ranges == [(0, 2), (0, 3), (1, 4), (2, 4)]


def test_records_are_equal_by_content_however_they_were_made() -> None:
    plain = WorkerRecord(step_ends_s=[1.0], computing=[SEGMENT], tx=[(0.0, 5.0)], rx=[(0.0, 7.0)])
    late = WorkerRecord(
        step_ends_s=[1.0], make_use=lambda _, __: ([SEGMENT], [(0.0, 5.0)], [(0.0, 7.0)])
    )
    assert plain == late
    assert plain != WorkerRecord(
        step_ends_s=[2.0], computing=[SEGMENT], tx=[(0.0, 5.0)], rx=[(0.0, 7.0)]
    )
    assert plain != WorkerRecord(step_ends_s=[1.0], computing=[SEGMENT], tx=[(0.0, 5.0)])
    assert plain != "record"
    empty = WorkerRecord()
    assert (empty.computing, empty.tx, empty.rx, empty.step_ends_s) == ([], [], [], [])
    with pytest.raises(TypeError):
        hash(plain)


@pytest.mark.parametrize("value", [0.0, -1.0, nan])
def test_a_rate_is_above_0_or_without_limit(value: float) -> None:
    with pytest.raises(ConfigError, match="link must be above 0"):
        check_rate("link", value)
    check_rate("link", inf)
    check_rate("link", 1e-9)
