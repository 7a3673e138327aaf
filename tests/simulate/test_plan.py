"""From a graph to segments and messages: nothing is lost, and the order is that of execution."""

from dataclasses import replace

import numpy as np
import pytest

from driple.graph.opgraph import OpGraph, Traffic
from driple.simulate.plan import MOST_MESSAGES, OpTimes, execution_order, plan_step
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
            readers=np.array([[i, at] for i, (_, at) in enumerate(received)], dtype=np.int32),
            sent_bytes=np.array([n for n, _ in sent], dtype=np.int64),
            senders=np.array([at for _, at in sent], dtype=np.int32),
        ),
    )


def test_segments_lie_between_arrivals_and_departures() -> None:
    graph = with_traffic(chain_graph(6), [(100, 0), (200, 3)], [(300, 1), (400, 5)])
    plan = plan_step(graph, times(graph), pulled_from=[0, 1], pushed_to=[1, 0])
    assert [(m.server, m.nbytes) for m in plan.pulls] == [(0, 100), (1, 200)]
    found = [
        (s.needs, round(s.duration_s * 1000), [m.nbytes for m in s.sends]) for s in plan.segments
    ]
    assert found == [(1, 1 + 2, [300]), (1, 3, []), (2, 4 + 5 + 6, [400])]
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
        assert len(messages) <= MOST_MESSAGES + 3
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
