"""A device's share by all degrees together is what each degree leaves of it."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from driple.cluster.schemes import Degrees
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.step.context_shard import context_shard
from driple.step.device_shard import DeviceShard, device_shard
from driple.step.expert_shard import expert_shard
from driple.step.plan import execution_order
from driple.step.tensor_shard import tensor_shard
from tests.step.mixtures import dense, mixture


def shard(graph: OpGraph, **degrees: Any) -> DeviceShard:
    return device_shard(graph, Degrees(**degrees), execution_order(graph))


def test_without_degrees_a_device_has_the_whole_step() -> None:
    whole = shard(dense())
    assert whole.graph is dense()
    assert whole.exchanges == ()
    assert (whole.node_share == 1.0).all()
    assert not whole.is_expert.any()
    assert len(whole.is_expert) == len(dense().parameters.names)


@pytest.mark.parametrize(
    ("degrees", "split"),
    [({"tensor": 2}, tensor_shard), ({"expert": 4}, expert_shard)],
)
def test_one_degree_is_its_own_split(degrees: dict[str, int], split) -> None:  # type: ignore[no-untyped-def]
    graph, (degree,) = mixture(), degrees.values()
    alone = split(graph, degree, execution_order(graph))
    together = shard(graph, **degrees)
    assert together.exchanges == alone.exchanges
    assert together.graph.parameters.nbytes.tolist() == alone.graph.parameters.nbytes.tolist()
    assert together.node_share.tolist() == alone.node_share.tolist()


def test_shares_of_degrees_are_multiplied() -> None:
    graph = dense()
    both, tensor, context = (
        shard(graph, **degrees)
        for degrees in ({"tensor": 2, "context": 4}, {"tensor": 2}, {"context": 4})
    )
    assert np.allclose(both.node_share, tensor.node_share * context.node_share)
    assert both.graph.parameters.nbytes.tolist() == tensor.graph.parameters.nbytes.tolist()
    assert context.graph.parameters.nbytes.tolist() == graph.parameters.nbytes.tolist()


def test_what_a_tensor_group_shares_is_exchanged_in_shares() -> None:
    """Heads of a ring are a tensor group's; tokens of its own sums are a context group's."""
    graph = dense()
    alone = context_shard(graph, 4).exchanges
    both = shard(graph, tensor=2, context=4).exchanges
    ring = [one for one in both if one.group == "context"]
    assert [one.nbytes for one in ring] == [one.nbytes / 2 for one in alone]
    assert both[: len(ring)] == tuple(ring)
    sums = [one for one in both if one.group == "tensor"]
    whole = tensor_shard(graph, 2, execution_order(graph)).exchanges
    assert [one.nbytes for one in sums] == [one.nbytes / 4 for one in whole]


@pytest.mark.parametrize("degrees", [{"tensor": 2}, {"context": 2}, {"tensor": 2, "context": 4}])
def test_devices_of_a_replica_compute_as_much_together(degrees: dict[str, int]) -> None:
    """Products of all devices have the FLOPs of the whole step."""
    graph = dense()
    own = shard(graph, **degrees).graph
    products = np.array([kind in {"matmul", "batch_matmul"} for kind in graph.kinds])
    whole, part = (cost_of_graph(one).flops[products].sum() for one in (graph, own))
    assert prod(degrees.values()) * part == pytest.approx(whole)


def test_experts_are_looked_for_where_a_degree_shares_them() -> None:
    """Or leaves them whole on each device of a tensor group."""
    names = mixture().parameters.names
    wanted = ["experts" in name for name in names]
    assert any(wanted)
    for degrees in ({"expert": 2}, {"tensor": 2}, {"tensor": 2, "expert": 4}):
        assert shard(mixture(), **degrees).is_expert.tolist() == wanted
    assert not shard(mixture(), context=2).is_expert.any()
