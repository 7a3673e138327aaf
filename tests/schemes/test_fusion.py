"""Fusion of gradients: nothing is lost, no message leaves before it is made, buffers hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.schemes.fusion import BUFFER_BYTES, CYCLE_S, fused_plans
from driple.step.plan import Message, Segment, StepPlan

FloatArray = npt.NDArray[np.float64]
ROWS = st.lists(st.tuples(st.floats(0, 10), st.lists(st.floats(1, 100), max_size=3)), min_size=1,
                max_size=8)  # fmt: skip


def plan_of(rows: list[tuple[float, list[float]]]) -> StepPlan:
    """Segments of some seconds, after which messages of some bytes are ready."""
    segments = tuple(
        Segment(needs=0, duration_s=seconds, busy_s=0.0, memory_s=0.0,
                sends=tuple(Message(0, nbytes) for nbytes in sizes))
        for seconds, sizes in rows
    )  # fmt: skip
    return StepPlan(pulls=(), segments=segments)


def fused_plan(
    plan: StepPlan,
    seconds_of: Callable[[FloatArray], FloatArray],
    *,
    cycle_s: float = CYCLE_S,
    buffer_bytes: float = BUFFER_BYTES,
) -> StepPlan:
    """The plan of one worker alone."""
    (fused,) = fused_plans([plan], seconds_of, cycle_s=cycle_s, buffer_bytes=buffer_bytes)
    return fused


def sent(plan: StepPlan) -> list[tuple[int, Message]]:
    return [(place, one) for place, each in enumerate(plan.segments) for one in each.sends]


def taking(seconds: float) -> Callable[[FloatArray], FloatArray]:
    return lambda sizes: np.full(len(sizes), seconds)


@given(ROWS, st.floats(0, 5), st.just(0.0) | st.floats(1e-6, 3), st.floats(50, 300))
def test_fused_messages_hold_all_tensors_in_order(
    rows: list[tuple[float, list[float]]], took_s: float, cycle_s: float, buffer_bytes: float
) -> None:
    plan = plan_of(rows)
    fused = fused_plan(plan, taking(took_s), cycle_s=cycle_s, buffer_bytes=buffer_bytes)
    before, after = sent(plan), sent(fused)
    assert sum(one.tensors for _, one in after) == len(before)
    done = 0
    for place, message in after:
        tensors = before[done : done + message.tensors]
        done += message.tensors
        assert message.nbytes == pytest.approx(sum(one.nbytes for _, one in tensors))
        assert place == tensors[-1][0]
        assert message.nbytes <= buffer_bytes or message.tensors == 1
    assert fused.compute_s == plan.compute_s


def test_what_is_ready_while_a_message_is_on_its_way_travels_together() -> None:
    """Tensors each second; a message takes 2.5 s: the first alone, then three, then the rest."""
    plan = plan_of([(1.0, [10.0])] * 6)
    fused = fused_plan(plan, taking(2.5), cycle_s=0.0)
    assert [(place, one.tensors) for place, one in sent(fused)] == [(0, 1), (2, 2), (5, 3)]
    quick = fused_plan(plan, taking(0.5), cycle_s=0.0)
    assert [one.tensors for _, one in sent(quick)] == [1] * 6


def test_without_cycles_a_tensor_leaves_as_soon_as_it_is_ready() -> None:
    plan = plan_of([(0.1, [10.0])] * 3)
    assert [one.tensors for _, one in sent(fused_plan(plan, taking(0.05), cycle_s=0.0))] == [1] * 3


def test_a_turn_is_no_sooner_than_a_cycle_after_the_last() -> None:
    """Turns at multiples of 2 s from the first tensor on."""
    plan = plan_of([(1.0, [10.0])] * 6)
    fused = fused_plan(plan, taking(0.0), cycle_s=2.0)
    assert [(place, one.tensors) for place, one in sent(fused)] == [(1, 2), (3, 2), (5, 2)]


def test_a_buffer_is_never_overfull_but_by_one_tensor() -> None:
    plan = plan_of([(1.0, [40.0, 30.0, 30.0, 200.0, 10.0])])
    fused = fused_plan(plan, taking(1.0), cycle_s=0.0, buffer_bytes=100.0)
    assert [one.nbytes for _, one in sent(fused)] == [100.0, 200.0, 10.0]
    assert [one.nbytes for _, one in sent(fused_plan(plan, taking(1.0)))] == [310.0]
    assert (BUFFER_BYTES, CYCLE_S) == (64 * 1024 * 1024, 0.001)


def test_all_workers_send_the_messages_of_the_slowest() -> None:
    quick = plan_of([(0.5, [10.0])] * 4)
    slow = plan_of([(1.0, [10.0])] * 4)
    first, other, same = fused_plans([quick, slow, quick], taking(2.5))
    alone = fused_plan(slow, taking(2.5))
    assert sent(first) == sent(other) == sent(alone)
    assert first is same
    assert first.compute_s == pytest.approx(2.0)
    assert other == alone
    (only,) = fused_plans([quick], taking(0.1))
    assert sent(only) == sent(fused_plan(quick, taking(0.1)))


def test_messages_keep_their_server() -> None:
    plan = plan_of([(1.0, [10.0])])
    (segment,) = plan.segments
    to_three = replace(plan, segments=(replace(segment, sends=(Message(3, 10.0),)),))
    assert sent(fused_plan(to_three, taking(1.0))) == [(0, Message(3, 10.0))]
