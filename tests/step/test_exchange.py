"""What a worker without servers exchanges: nothing is lost in buckets, blocks and passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.step.exchange import (
    BUCKETS,
    MIB,
    ExchangeRule,
    grouped,
    passes_of,
    plan_exchange,
)
from driple.step.plan import Message, OpTimes, StepPlan
from tests.step.layered import layered

IntArray = npt.NDArray[np.int64]
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def times_of(graph: OpGraph) -> OpTimes:
    seconds = np.arange(1, graph.num_nodes + 1, dtype=np.float64)
    return OpTimes(duration_s=seconds, busy_s=seconds / 2, memory_s=seconds / 4)


def planned(graph: OpGraph, rule: ExchangeRule, groups: IntArray | None = None) -> StepPlan:
    return plan_exchange(graph, times_of(graph), rule, np.arange(graph.num_nodes), groups)


def sent(plan: StepPlan) -> list[Message]:
    return [message for segment in plan.segments for message in segment.sends]


def buckets(graph: OpGraph, rule: ExchangeRule) -> list[tuple[int, Message]]:
    return grouped(graph, np.arange(graph.num_nodes), rule)


def test_a_bucket_ends_with_the_gradient_that_fills_it() -> None:
    """Gradients of 4 x 4 fp32, 64 bytes each, the last layer's first: 1, then 2 at a time."""
    graph = layered([4] * 7)
    rule = ExchangeRule(grouping="buckets", first_bytes=64, most_bytes=128)
    assert buckets(graph, rule) == [
        (7, Message(0, 64, 1)), (9, Message(0, 128, 2)), (11, Message(0, 128, 2)),
        (12, Message(0, 64, 1)),
    ]  # fmt: skip
    rule = ExchangeRule(grouping="buckets", first_bytes=65, most_bytes=128.5)
    assert [message.tensors for _, message in buckets(graph, rule)] == [2, 3, 1]
    each = ExchangeRule(grouping="tensors")
    assert buckets(graph, each) == [(7 + i, Message(0, 64, 1)) for i in range(6)]


@given(SIZES, st.floats(0, 5000), st.floats(0, 5000))
def test_buckets_hold_all_gradients_in_order(widths: list[int], first: float, most: float) -> None:
    graph = layered([5, *widths])
    rule = ExchangeRule(grouping="buckets", first_bytes=first, most_bytes=most)
    messages = buckets(graph, rule)
    assert sum(message.nbytes for _, message in messages) == graph.sent_bytes
    assert sum(message.tensors for _, message in messages) == len(widths)
    assert [at for at, _ in messages] == sorted({at for at, _ in messages})
    for number, (_, message) in enumerate(messages[:-1]):
        assert message.nbytes >= (most if number else first)
    larger = ExchangeRule(grouping="buckets", first_bytes=2 * first, most_bytes=2 * most)
    assert len(buckets(graph, larger)) <= len(messages)


@given(SIZES, st.data())
def test_gradients_of_each_group_travel_by_themselves(
    widths: list[int], data: st.DataObject
) -> None:
    graph = layered([5, *widths])
    count = len(widths)
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    messages = grouped(graph, np.arange(2 * count), BUCKETS, groups)
    for group in range(3):
        own = [message for _, message in messages if message.server == group]
        assert sum(each.tensors for each in own) == int((groups == group).sum())
        assert sum(each.nbytes for each in own) == graph.parameters.nbytes[groups == group].sum()
    assert [at for at, _ in messages] == sorted(at for at, _ in messages)


def test_buckets_of_pytorch_are_of_25_mib_and_the_first_of_one() -> None:
    assert (BUCKETS.first_bytes, BUCKETS.most_bytes, BUCKETS.each_pass) == (
        2**20,
        25 * 2**20,
        False,
    )
    assert MIB == 2**20
    with pytest.raises(ConfigError, match="most_bytes of buckets"):
        ExchangeRule(grouping="buckets", most_bytes=-1)
    ExchangeRule(grouping="buckets", first_bytes=0, most_bytes=0)


@pytest.mark.parametrize("grouping", ["tensors", "buckets", "blocks"])
@pytest.mark.parametrize("each_pass", [False, True])
@pytest.mark.parametrize("passes", [1, 2, 5])
def test_a_step_computes_as_long_however_it_exchanges(
    grouping: str, each_pass: bool, passes: int
) -> None:
    """All passes together take the times of the ops; gradients leave once, or in every pass."""
    graph = layered([3, 4, 5, 6, 7], passes=passes)
    rule = ExchangeRule(grouping=grouping, first_bytes=1, most_bytes=200, each_pass=each_pass)  # type: ignore[arg-type]
    plan = planned(graph, rule)
    assert plan.compute_s == pytest.approx(36.0)
    assert sum(each.busy_s for each in plan.segments) == pytest.approx(18.0)
    assert sum(each.memory_s for each in plan.segments) == pytest.approx(9.0)
    turns = passes if each_pass else 1
    assert sum(message.nbytes for message in sent(plan)) == turns * graph.sent_bytes
    assert plan.passes == turns
    assert plan.segments[-1].sends
    pulled = sum(message.nbytes for message in plan.pulls)
    assert pulled == (2 * passes * graph.parameters.nbytes.sum() if grouping == "blocks" else 0)
    assert plan.segments[-1].needs == len(plan.pulls)
    needs = [each.needs for each in plan.segments]
    assert needs == sorted(needs)


def test_passes_that_send_nothing_are_one_segment() -> None:
    """Of three passes of buckets the first two take two thirds of the time, at once."""
    once, thrice = (planned(layered([3, 4, 5], passes=passes), BUCKETS) for passes in (1, 3))
    alone, *last = thrice.segments
    assert alone.duration_s == pytest.approx(10 * 2 / 3)
    assert alone.busy_s == pytest.approx(5 * 2 / 3)
    assert alone.memory_s == pytest.approx(2.5 * 2 / 3)
    assert (alone.needs, alone.sends) == (0, ())
    assert [each.sends for each in last] == [each.sends for each in once.segments]
    assert sum(each.duration_s for each in last) == pytest.approx(10 / 3)


def test_exchanges_within_a_segment_are_repeated_with_it() -> None:
    graph = layered([3, 4, 5], passes=3)
    times = replace(
        times_of(graph), sent_bytes=np.full(4, 30.0), phases=graph.phases.astype(np.int64)
    )
    plan = plan_exchange(graph, times, BUCKETS, np.arange(4))
    assert sum(each.sent_bytes for each in plan.segments) == pytest.approx(120)
    assert plan.segments[0].sent_bytes == pytest.approx(80)
    words = [part.phase for part in plan.segments[0].parts]
    assert words == ["forward", "backward"] * 2
    for each in plan.segments:
        assert sum(part.duration_s for part in each.parts) == pytest.approx(each.duration_s)


def test_a_block_comes_before_its_ops_and_its_gradients_leave_after_them() -> None:
    """Layers 0 and 1 as blocks: gathered before nodes 0 and 1, and again before 2 and 3."""
    graph = layered([3, 4, 5])
    rule = ExchangeRule(grouping="blocks", each_pass=True)
    plan = planned(graph, rule)
    assert [message.nbytes for message in plan.pulls] == [48, 80, 80, 48]
    assert [(each.needs, each.duration_s) for each in plan.segments] == [
        (1, 1), (2, 2), (3, 3), (4, 4)]  # fmt: skip
    assert [[message.nbytes for message in each.sends] for each in plan.segments] == [
        [], [], [80], [48]]  # fmt: skip
    frozen = planned(layered([3, 4, 5], frozen=[0]), rule)
    assert [message.nbytes for message in sent(frozen)] == [80]
    assert len(frozen.pulls) == 4
    other = planned(graph, rule, np.array([7, 0]))
    assert [message.server for message in other.pulls] == [7, 0, 0, 7]
    assert [message.server for message in sent(other)] == [0, 7]


def test_passes_are_the_least_that_a_forward_op_runs() -> None:
    graph = layered([3, 4, 5], passes=4)
    assert passes_of(graph) == 4
    looped = replace(graph, executions=np.array([4, 40, 1, 1]))
    assert passes_of(looped) == 4
    assert passes_of(replace(graph, executions=np.array([0, 4, 4, 4]))) == 1
    assert passes_of(replace(graph, phases=np.zeros(0, dtype=np.int8))) == 1
    assert passes_of(replace(graph, executions=np.zeros(0, dtype=np.int64))) == 1
    backward = np.full(4, 1, dtype=np.int8)
    assert passes_of(replace(graph, phases=backward)) == 1
