"""Sums of costs over groups and families of ops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.features import InputConfig, build_input
from driple.features.costs import COST_CONTEXT_NAMES, cost_context, group_costs
from driple.graph import read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import RemoteOps
from driple.graph.opkind import FAMILIES, PRODUCT_FAMILIES, family_of
from driple.graph.placement import server_bytes
from driple.graph.tf.op_kinds import kind_of_op_type

GRAPH = read_graph(Path(__file__).parents[2] / "datasets" / "examples" / "resnet50.pbtxt")
COST = cost_of_graph(GRAPH)


def test_groups_add_up_to_the_whole() -> None:
    """However the nodes are grouped; those left out are in no group."""
    groups = np.random.default_rng(0).integers(0, 7, GRAPH.num_nodes).astype(np.int32)
    sums = group_costs(COST, groups).sum(axis=0)
    runs = COST.executions.sum()
    left = COST.left_elements @ COST.executions
    assert sums == pytest.approx([COST.total_flops, COST.total_bytes, runs, left])
    groups[0] = -1
    assert group_costs(COST, groups)[:, 2].sum() == runs - COST.executions[0]


def test_families_add_up_to_the_whole() -> None:
    """FLOPs of products are nearly all of them; bytes and executions of all families are all."""
    values = dict(zip(COST_CONTEXT_NAMES, np.expm1(cost_context(GRAPH, COST)), strict=True))
    moved = sum(values[f"bytes_{family}"] for family in FAMILIES)
    assert moved == pytest.approx(values["total_bytes"])
    assert values["total_bytes"] == pytest.approx(COST.total_bytes)
    runs = sum(values[f"executions_{family}"] for family in FAMILIES)
    assert runs == pytest.approx(GRAPH.num_nodes + values["repeated_executions"])
    assert values["flops_convolution"] == pytest.approx(values["flops_filter_gradient"], rel=0.05)
    left = sum(values[f"left_elements_{family}"] for family in PRODUCT_FAMILIES)
    assert left == pytest.approx(COST.left_elements @ COST.executions)


def test_servers_are_told_from_what_runs_there() -> None:
    """ResNet-50 with momentum, synchronous: an accumulator and an update for each variable."""
    values = dict(zip(COST_CONTEXT_NAMES, np.expm1(cost_context(GRAPH, COST)), strict=True))
    assert values["accumulators"] == pytest.approx(161)
    assert values["updates"] == pytest.approx(161)
    assert values["accumulated_bytes"] == pytest.approx(GRAPH.sent_bytes)
    assert values["update_flops"] == pytest.approx(4 * 25_559_081)  # its parameters


def test_updates_behind_resource_handles_compute_as_much() -> None:
    """They have no outputs; the worker reads 161 variables, and moving averages besides."""
    hidden = tuple(
        replace(ops, op_type="ResourceApplyMomentum", tensor_bytes=0)
        if ops.kind == "update_momentum"
        else ops
        for ops in GRAPH.remote
    )
    values = dict(
        zip(COST_CONTEXT_NAMES, cost_context(replace(GRAPH, remote=hidden), COST), strict=True)
    )
    assert np.expm1(values["updates"]) == pytest.approx(161)
    assert np.expm1(values["update_flops"]) == pytest.approx(4 * 25_559_081, rel=0.01)
    sparse = RemoteOps.of_op_type("ResourceSparseApplyMomentum", num_nodes=1, tensor_bytes=0)
    more = cost_context(replace(GRAPH, remote=(*hidden, sparse)), COST)
    assert more[COST_CONTEXT_NAMES.index("update_flops")] == values["update_flops"]


def test_only_the_fullest_server_depends_on_the_number_of_servers() -> None:
    single, five = (np.expm1(cost_context(GRAPH, COST, servers)) for servers in (1, 5))
    changed = [name for name, a, b in zip(COST_CONTEXT_NAMES, single, five, strict=True) if a != b]
    assert changed == ["fullest_server_bytes"]
    fullest = COST_CONTEXT_NAMES.index("fullest_server_bytes")
    assert single[fullest] == pytest.approx(GRAPH.received_bytes)
    assert five[fullest] == pytest.approx(server_bytes(GRAPH.traffic.received_bytes, 5).max())


@pytest.mark.parametrize(
    ("op_type", "family"),
    [
        ("Conv2D", "convolution"),
        ("Conv2DBackpropFilter", "filter_gradient"),
        ("DepthwiseConv2dNativeBackpropInput", "input_gradient"),
        ("BatchMatMulV2", "matmul"),
        ("FusedBatchNormGradV3", "normalisation"),
        ("MaxPoolGrad", "pooling"),
        ("SparseSoftmaxCrossEntropyWithLogits", "softmax"),
        ("TensorArrayReadV3", "lists"),
        ("NextIteration", "control"),
        ("AddV2", "elementwise"),
        ("SomethingNew", "elementwise"),
    ],
)
def test_families(op_type: str, family: str) -> None:
    """By the part of the name that matters."""
    assert family_of(kind_of_op_type(op_type)) == family


def test_inputs_with_costs_are_the_others_and_more() -> None:
    """The first columns and entries stay what they were."""
    table = dict.fromkeys(GRAPH.op_types, 0.1)
    some = InputConfig(num_groups=10, features="log", context="sizes")
    more = InputConfig(num_groups=10, features="costs", context="costs")
    less, full = (build_input(GRAPH, table, config) for config in (some, more))
    np.testing.assert_array_equal(full.features[:, :3], less.features)
    assert full.features.shape[1] == len(more.feature_names) == 7
    np.testing.assert_array_equal(full.context[:9], less.context)
    assert len(full.context) == len(more.context_names)
    assert full.facts["flops"] == pytest.approx(COST.total_flops)
    assert full.facts["batch_size"] == 32 or full.facts["batch_size"] >= 1


def test_tokens_and_all_reduce_count_as_accumulators() -> None:
    """Workers that wait for each other by tokens are as synchronous as those with accumulators."""
    update = RemoteOps.of_op_type("ApplyGradientDescent", num_nodes=4, tensor_bytes=64)
    token = RemoteOps.of_op_type("QueueEnqueueV2", num_nodes=1, tensor_bytes=0)
    at = COST_CONTEXT_NAMES.index("accumulators")
    for changed, number in (
        (replace(GRAPH, remote=(update,)), 0),
        (replace(GRAPH, remote=(update, token)), 4),
        (replace(GRAPH, remote=(update,), layout="all_reduce"), 4),
    ):
        assert cost_context(changed, COST)[at] == pytest.approx(np.log1p(number))
