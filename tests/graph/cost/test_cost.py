"""Costs of a whole graph by hand: each number of each node, and sums over loops and families."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph.cost import SignatureCosts, cost_by_family, cost_of_graph
from driple.graph.cost.formulas import cost_of_op
from driple.graph.cost.products import product_of
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import FAMILIES
from driple.graph.signature import OpSignature, Tensor
from tests.dataset.examples import chain_graph

FLOAT = 1
# [4, 6] x [6, 5], whose second factor is a variable; 20 numbers; 7 numbers by what nobody knows.
PRODUCT = OpSignature.of_op_type(
    "MatMul", (Tensor((4, 6), FLOAT), Tensor((6, 5), FLOAT, True)), (Tensor((4, 5), FLOAT),)
)
RELU = OpSignature.of_op_type("Relu", (Tensor((4, 5), FLOAT),), (Tensor((4, 5), FLOAT),))
OWN = OpSignature.of_op_type("MyOwnKernel", (Tensor((3,), FLOAT),), (Tensor((7,), FLOAT),))


def graph() -> OpGraph:
    """Product, Relu, own kernel, product; they run 1, 3, 2 and 5 times."""
    kinds = (PRODUCT, RELU, OWN)
    numbers = np.array([0, 1, 2, 0], dtype=np.int32)
    return replace(
        chain_graph(4),
        op_types=tuple(kinds[i].stored_name for i in numbers),
        signatures=kinds,
        signature_of=numbers,
        executions=np.array([1, 3, 2, 5], dtype=np.int64),
    )


def test_each_node_has_the_cost_of_its_signature() -> None:
    cost = cost_of_graph(graph())
    assert cost.flops.tolist() == [240, 20, 0, 240]
    assert cost.bytes_read.tolist() == [4 * (24 + 30), 80, 12, 4 * (24 + 30)]
    assert cost.bytes_written.tolist() == [80, 80, 28, 80]
    assert cost.parameters.tolist() == [30, 0, 0, 30]
    assert cost.left_elements.tolist() == [24, 0, 0, 24]
    assert cost.executions.tolist() == [1, 3, 2, 5]
    assert cost.unknown == {"MyOwnKernel": 1}
    assert cost.without_formula == {"MyOwnKernel"}


def test_a_step_counts_each_node_as_often_as_it_runs() -> None:
    cost = cost_of_graph(graph())
    assert cost.per_step.tolist() == [
        [240, 296, 1, 24],
        [60, 480, 3, 0],
        [0, 80, 2, 0],
        [1200, 1480, 5, 120],
    ]
    assert cost.total_flops == 240 + 60 + 1200
    assert cost.total_bytes == 296 + 480 + 80 + 1480


def test_sums_over_families_are_those_of_their_nodes() -> None:
    sums = cost_by_family(graph(), cost_of_graph(graph()))
    assert sums.shape == (4, len(FAMILIES))
    assert sums[:, FAMILIES.index("matmul")].tolist() == [1440, 1776, 6, 144]
    assert sums[:, FAMILIES.index("elementwise")].tolist() == [60, 560, 5, 0]
    assert sums.sum() == pytest.approx(cost_of_graph(graph()).per_step.sum())


def test_costs_of_signatures_are_those_of_single_ops() -> None:
    costs = SignatureCosts.of((PRODUCT, RELU, OWN))
    assert cost_of_graph(graph()).by_signature == costs
    for signature, cost, product in zip(costs.signatures, costs.costs, costs.products, strict=True):
        assert cost == cost_of_op(signature)
        assert product == product_of(signature, cost.flops)


def test_a_graph_without_signatures_is_refused() -> None:
    bare = replace(graph(), signatures=(), signature_of=np.zeros(0, dtype=np.int32))
    with pytest.raises(GraphError, match="read it from its GraphDef again"):
        cost_of_graph(bare)
