"""Workers of many steps at once compute as one by one: in order, each with what it waits for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.schemes.lane_workers import LaneWorkers
from driple.step.plan import Message, Segment, StepPlan

COPY_S = 0.25  # of each byte


def plan_of(rows: list[tuple[int, float, list[float]]], pulls: int) -> StepPlan:
    """Segments: parameters needed, seconds, bytes of the gradients at the end."""
    segments = tuple(
        Segment(needs=needs, duration_s=seconds, busy_s=0.0, memory_s=0.0,
                sends=tuple(Message(0, nbytes) for nbytes in sizes))
        for needs, seconds, sizes in rows
    )  # fmt: skip
    return StepPlan(pulls=tuple(Message(0, 1.0) for _ in range(pulls)), segments=segments)


def by_hand(
    plan: StepPlan, usable_s: list[float], slowness: float
) -> tuple[list[float], list[float]]:
    """Ends of the segments, and when each gradient can be sent."""
    free_s, ends, ready = 0.0, [], []
    for segment in plan.segments:
        begin_s = max([free_s, *usable_s[: segment.needs]])
        free_s = begin_s + slowness * segment.duration_s
        ends.append(free_s)
        ready += [free_s + COPY_S * message.nbytes for message in segment.sends]
    return ends, ready


PLANS = st.lists(
    st.tuples(st.integers(0, 3), st.floats(0, 5), st.lists(st.floats(1, 9), max_size=2)),
    min_size=1, max_size=5,
).map(lambda rows: plan_of(sorted(rows, key=lambda row: row[0]), 3))  # fmt: skip


@given(PLANS, PLANS, st.lists(st.floats(0, 9), min_size=12, max_size=12), st.randoms())
def test_lanes_compute_as_workers_by_themselves(
    first: StepPlan, other: StepPlan, usable_s: list[float], random: object
) -> None:
    """Two lanes of two workers, whose parameters come in any order."""
    slowness = np.array([[1.0, 2.0], [0.5, 3.0]])
    workers = LaneWorkers([first, other], slowness, np.array([COPY_S, COPY_S]))
    workers.compute(np.arange(4))
    places = [(row, number) for row in range(4) for number in range(3)]
    random.shuffle(places)  # type: ignore[attr-defined]
    for row, number in places:
        workers.receive(np.array([row]), np.array([number]), np.array([usable_s[3 * row + number]]))
    for row in range(4):
        plan = (first, other)[row % 2]
        ends, ready = by_hand(plan, usable_s[3 * row : 3 * row + 3], slowness.ravel()[row])
        count = len(plan.segments)
        assert workers.ends_s[row, :count] == pytest.approx(ends)
        assert workers.free_s[row] == pytest.approx(ends[-1])
        order = np.argsort(ready, kind="stable")
        assert workers.ready_s[row, : len(ready)] == pytest.approx(np.array(ready)[order])
        assert np.isinf(workers.ready_s[row, len(ready) :]).all()


def test_a_segment_waits_for_all_parameters_before_its_own() -> None:
    """The second came first, and is of no use without the first."""
    plan = plan_of([(1, 1.0, []), (2, 1.0, [4.0])], 2)
    workers = LaneWorkers([plan], np.ones((1, 1)), np.array([COPY_S]))
    row = np.array([0])
    assert len(workers.receive(row, np.array([1]), np.array([2.0]))) == 0
    assert workers.free_s.tolist() == [0.0]
    assert workers.receive(row, np.array([0]), np.array([5.0])).tolist() == [0]
    assert workers.begins_s[0, :2].tolist() == [5.0, 6.0]
    assert workers.ends_s[0, :2].tolist() == [6.0, 7.0]
    assert workers.ready_s[0, 0] == 8.0
    assert workers.message[0, 0] == 0


def test_what_needs_no_parameters_is_computed_at_once() -> None:
    plan = plan_of([(0, 2.0, [4.0, 1.0]), (1, 1.0, [])], 1)
    workers = LaneWorkers([plan], np.ones((1, 1)), np.array([COPY_S]))
    assert workers.compute(np.array([0])).tolist() == [0]
    assert workers.ends_s[0, 0] == 2.0
    assert workers.ready_s[0, :2].tolist() == [2.25, 3.0]
    assert workers.message[0, :2].tolist() == [1, 0]
