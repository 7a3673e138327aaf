"""From a graph to segments and messages: nothing is lost, and the order is that of execution."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from driple.errors import SimulationError
from driple.graph.opgraph import OpGraph, Traffic
from driple.step.plan import MOST_MESSAGES, OpTimes, StepPlan, execution_order, plan_step
from tests.dataset.examples import chain_graph


def times(graph: OpGraph) -> OpTimes:
    seconds = np.arange(1, graph.num_nodes + 1, dtype=np.float64) / 1000
    return OpTimes(duration_s=seconds, busy_s=seconds / 2, memory_s=seconds / 4)


def with_traffic(
    graph: OpGraph, received: list[tuple[int, int]], sent: list[tuple[int, int]]
) -> OpGraph:
    """(bytes, reader) of each parameter and (bytes, maker) of each gradient."""
    return replace(
        graph,
        traffic=Traffic(
            received_bytes=np.array([n for n, _ in received], dtype=np.int64),
            readers=np.array(
                [[i, at] for i, (_, at) in enumerate(received)], dtype=np.int32
            ).reshape(-1, 2),
            sent_bytes=np.array([n for n, _ in sent], dtype=np.int64),
            senders=np.array([at for _, at in sent], dtype=np.int32),
        ),
    )


def test_segments_lie_between_arrivals_and_departures() -> None:
    graph = with_traffic(chain_graph(6), [(100, 0), (200, 3)], [(300, 1), (400, 5)])
    plan = plan_step(graph, times(graph), pulled_from=[0, 1], pushed_to=[1, 0])
    assert [(m.server, m.nbytes) for m in plan.pulls] == [(0, 100), (1, 200)]
    segments = [
        (s.needs, round(s.duration_s * 1000), [m.nbytes for m in s.sends]) for s in plan.segments
    ]
    assert segments == [(1, 1 + 2, [300]), (1, 3, []), (2, 4 + 5 + 6, [400])]
    assert plan.compute_s == pytest.approx(0.021)


def test_what_many_small_tensors_weigh_is_kept_in_few_messages() -> None:
    size = 1000
    graph = with_traffic(
        chain_graph(size), [(7, i) for i in range(size)], [(9, i) for i in range(size)]
    )
    servers = (np.arange(size) % 3).tolist()
    plan = plan_step(graph, times(graph), servers, servers)
    sent = [message for segment in plan.segments for message in segment.sends]
    for messages, each in ((plan.pulls, 7), (sent, 9)):
        assert len(messages) <= 3 * (MOST_MESSAGES + 1)  # neighbours, those of each server
        for server in range(3):
            total = sum(m.nbytes for m in messages if m.server == server)
            assert total == each * servers.count(server)
    assert plan.compute_s == pytest.approx(float(times(graph).duration_s.sum()))
    assert [s.needs for s in plan.segments] == sorted(s.needs for s in plan.segments)


def test_a_step_without_servers_is_one_segment() -> None:
    graph = replace(chain_graph(5), traffic=Traffic())
    plan = plan_step(graph, times(graph), [], [])
    assert plan.pulls == ()
    assert len(plan.segments) == 1


def test_execution_follows_edges_whatever_the_order_of_the_file() -> None:
    graph = chain_graph(9)
    turned = replace(graph, edges=graph.num_nodes - 1 - graph.edges)
    assert execution_order(graph).tolist() == list(range(9))
    assert execution_order(turned).tolist() == list(range(9))[::-1]


def test_neighbours_do_not_depend_on_how_many_servers_there_are() -> None:
    """What leaves when, over all servers, is the same: more of them make no message wait."""
    graph = with_traffic(chain_graph(60), [(7, i) for i in range(60)], [(9, i) for i in range(60)])
    plans = [
        plan_step(graph, times(graph), servers, servers)
        for servers in ([0] * 60, [i % 5 for i in range(60)])
    ]
    for direction in ("pulls", "segments"):
        single, many = (getattr(plan, direction) for plan in plans)
        assert len(single) <= len(many) <= 5 * len(single)
    one_s, many_s = (np.cumsum([s.duration_s for s in p.segments if s.sends]) for p in plans)
    assert one_s[-1] == many_s[-1]
    assert min(np.diff(one_s)) <= min(np.diff(many_s)) * 60


@pytest.mark.parametrize("num_servers", [1, 3])
def test_the_times_of_segments_are_those_of_their_ops(num_servers: int) -> None:
    """All add up, segment by segment, and no share of the device is above 100 %."""
    graph = with_traffic(chain_graph(6), [(100, 0), (200, 3)], [(300, 1), (400, 5)])
    servers = [i % num_servers for i in range(2)]
    op_times = times(graph)
    plan = plan_step(graph, op_times, servers, servers)
    ends = [0, 2, 3, 6]
    for name in ("duration_s", "busy_s", "memory_s"):
        values = getattr(op_times, name)
        wanted = [float(values[a:b].sum()) for a, b in pairwise(ends)]
        assert [getattr(s, name) for s in plan.segments] == pytest.approx(wanted)
    for segment in plan.segments:
        assert 0 < segment.memory_s <= segment.busy_s <= segment.duration_s


@pytest.mark.parametrize(
    "more",
    [
        {"memory_s": 0.6},  # more than its kernels run
        {"busy_s": 1.2},  # more than it lasts
        {"memory_s": -0.1},
    ],
)
def test_a_share_of_a_device_above_100_pct_is_refused(more: dict[str, float]) -> None:
    """A fault in the times of ops ends in an error, not in a use of memory of 662 %."""
    seconds = {"duration_s": 1.0, "busy_s": 0.5, "memory_s": 0.2, **more}
    graph = replace(chain_graph(4), traffic=Traffic())
    odd = OpTimes(**{name: np.full(4, value) for name, value in seconds.items()})
    with pytest.raises(SimulationError, match="segment 0 of a simulated step lasts 4 s"):
        plan_step(graph, odd, [], [])


def test_a_node_waits_for_all_that_it_reads() -> None:
    """0 -> 3, 1 -> 2 -> 3: the last node comes last, though its first input is done at once."""
    graph = replace(
        chain_graph(4),
        edges=np.array([[0, 3], [1, 2], [2, 3]], dtype=np.int32),
        is_control=np.zeros(3, dtype=np.bool_),
    )
    assert execution_order(graph).tolist() == [0, 1, 2, 3]
    first_last = replace(graph, edges=np.array([[3, 0], [1, 2], [2, 0]], dtype=np.int32))
    assert execution_order(first_last).tolist() == [1, 2, 3, 0]


def test_a_given_order_is_that_of_the_step() -> None:
    """Backwards: the gradient of the first node leaves at the end."""
    graph = with_traffic(chain_graph(4), [(100, 3)], [(300, 0)])
    backwards = np.arange(4)[::-1]
    plan = plan_step(graph, times(graph), [0], [0], order=backwards)
    assert [len(segment.sends) for segment in plan.segments] == [1]
    assert plan.segments[0].needs == 1


@pytest.mark.parametrize("last", [False, True])
def test_equal_tensors_make_as_many_messages_as_are_wanted(last: bool) -> None:
    """400 tensors in 40 messages of 10, each of which is due with its first, or last, tensor."""
    count = 10 * MOST_MESSAGES
    tensors = [(7, i) for i in range(count)]
    graph = with_traffic(chain_graph(count), [] if last else tensors, tensors if last else [])
    servers = [0] * count
    plan = plan_step(graph, times(graph), [] if last else servers, servers if last else [])
    messages = [m for s in plan.segments for m in s.sends] if last else list(plan.pulls)
    assert (
        [(m.nbytes, m.tensors) for m in messages] == [(70, 10)] * MOST_MESSAGES == [(70, 10)] * 40
    )
    seconds = times(graph).duration_s.reshape(MOST_MESSAGES, 10).sum(axis=1)
    assert [s.duration_s for s in plan.segments] == pytest.approx(seconds)


def test_tensors_that_nobody_reads_are_needed_at_the_end() -> None:
    graph = with_traffic(chain_graph(3), [(100, 0), (50, 1)], [])
    readers = graph.traffic.readers[:1]
    graph = replace(graph, traffic=replace(graph.traffic, readers=readers))
    plan = plan_step(graph, times(graph), [0, 0], [])
    assert [m.nbytes for m in plan.pulls] == [100, 50]
    assert [s.needs for s in plan.segments] == [1]


def test_a_parameter_with_several_readers_is_due_with_the_first() -> None:
    graph = with_traffic(chain_graph(4), [(100, 3)], [])
    readers = np.array([[0, 3], [0, 1], [0, 2]], dtype=np.int32)
    graph = replace(graph, traffic=replace(graph.traffic, readers=readers))
    plan = plan_step(graph, times(graph), [0], [])
    assert [s.needs for s in plan.segments] == [0, 1]
    assert plan.segments[0].duration_s == pytest.approx(0.001)


@pytest.mark.parametrize(("size", "count"), [(1, 400), (1, 3)])
def test_messages_of_single_bytes(size: int, count: int) -> None:
    """Ten tensors of a byte each where there are 400, one where there are three."""
    graph = with_traffic(chain_graph(count), [(size, i) for i in range(count)], [])
    plan = plan_step(graph, times(graph), [0] * count, [])
    each = max(count // 40, 1)
    assert [(m.nbytes, m.tensors) for m in plan.pulls] == [(each, each)] * (count // each)


def test_tensors_that_are_due_together_travel_together() -> None:
    """1, 100 and 100 bytes of the nodes 0, 1 and 1: what is due with its first tensor is due at 0
    and then at 1, what is due with its last is due once, after 1.
    """
    tensors = [(1, 0), (100, 1), (100, 1)]
    graph = with_traffic(chain_graph(3), tensors, tensors)
    plan = plan_step(graph, times(graph), [0] * 3, [0] * 3)
    assert [m.nbytes for m in plan.pulls] == [101, 100]
    assert [[m.nbytes for m in s.sends] for s in plan.segments] == [[], [201], []]


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_shares_of_100_pct_pass_and_all_above_rounding_is_refused(scale: float) -> None:
    """However long the step: a part in 10^10 is rounding, one in 10^8 is not."""
    graph = replace(chain_graph(4), traffic=Traffic())
    seconds = np.full(4, scale)

    def plan(excess: float) -> StepPlan:
        busy = seconds * (1 + excess)
        full = OpTimes(duration_s=seconds, busy_s=busy, memory_s=busy)
        return plan_step(graph, full, [], [])

    for excess in (0.0, 1e-10):
        (segment,) = plan(excess).segments
        assert segment.memory_s == segment.busy_s == pytest.approx(4 * scale)
    with pytest.raises(SimulationError):
        plan(1e-8)


def test_a_step_that_takes_no_time_has_no_share_to_refuse() -> None:
    """Its length is refused by the job, with the reason."""
    graph, nothing = replace(chain_graph(4), traffic=Traffic()), np.zeros(4)
    plan = plan_step(graph, OpTimes(duration_s=nothing, busy_s=nothing, memory_s=nothing), [], [])
    assert plan.compute_s == 0.0
