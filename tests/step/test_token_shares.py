"""Ops on a share of the tokens: fewer rows, whole matrices, and gradients that are whole sums."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.step.step_flow import StepFlow
from driple.step.token_shares import made_share, on_tokens
from tests.step.layered import FLOAT, layered

ROWS = 12
GRAPH = layered([4, 5, 7], rows=ROWS)


def flow(graph: OpGraph = GRAPH) -> StepFlow:
    return StepFlow(graph, "tokens")


def shapes(op: OpSignature) -> tuple[list[object], list[object]]:
    return [one.shape for one in op.inputs], [one.shape for one in op.outputs]


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_a_product_has_fewer_rows_and_whole_weights(degree: int) -> None:
    rows = ROWS // degree
    assert shapes(on_tokens(flow(), 0, degree)) == ([(rows, 4), (4, 5)], [(rows, 5)])
    assert shapes(on_tokens(flow(), 1, degree)) == ([(rows, 5), (5, 7)], [(rows, 7)])


def test_the_gradient_of_a_matrix_is_a_whole_sum_over_fewer_tokens() -> None:
    """A.T of 7 x 12 by 12 x 5: the inner dimension is that of the tokens."""
    left, right = Tensor((5, ROWS), FLOAT), Tensor((ROWS, 7), FLOAT)
    ops = list(GRAPH.signatures)
    ops[2] = OpSignature("matmul", (left, right), (Tensor((5, 7), FLOAT),))
    graph = replace(GRAPH, signatures=tuple(ops))
    assert shapes(on_tokens(flow(graph), 2, 3)) == ([(5, 4), (4, 7)], [(5, 7)])


@pytest.mark.parametrize("degree", [2, 3, 4, 6, 12])
def test_devices_of_a_group_compute_as_much_together(degree: int) -> None:
    """Multiply-adds of each product, forward and backward."""
    whole = flow()
    for node, op in enumerate(whole.ops[:2]):
        own = on_tokens(whole, node, degree)
        assert degree * own.outputs[0].elements == op.outputs[0].elements
        assert own.inputs[1] == op.inputs[1]


def elementwise(kind: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> StepFlow:
    """The step with another op in the place of the second layer."""
    ops = list(GRAPH.signatures)
    ops[1] = OpSignature(kind, inputs, outputs)
    return flow(replace(GRAPH, signatures=tuple(ops)))


def test_other_ops_cut_rows_and_no_parameters() -> None:
    """Not what is a parameter, nor what has the size of one that the op reads."""
    activations, bias = Tensor((ROWS, 7), FLOAT), Tensor((7,), FLOAT, is_parameter=True)
    copied = Tensor((5, 7), FLOAT)  # of the size of the parameter that node 1 reads
    own = on_tokens(elementwise("add", (activations, bias, copied), (activations,)), 1, 4)
    assert shapes(own) == ([(3, 7), (7,), (5, 7)], [(3, 7)])
    assert own.kind == "add"


def test_gradients_that_are_handed_on_stay_whole() -> None:
    """Node 2 completes the gradient of the second layer, 5 x 7; a cast of it is as large."""
    ops = list(GRAPH.signatures)
    ops[2] = OpSignature("cast", (Tensor((5, 7), FLOAT),), (Tensor((5, 7), FLOAT),))
    own = on_tokens(flow(replace(GRAPH, signatures=tuple(ops))), 2, 7)
    assert shapes(own) == ([(5, 7)], [(5, 7)])


def test_a_product_of_two_activations_keeps_the_right_one_whole() -> None:
    """As the keys that all queries meet: 12 rows of them on every device."""
    left, right = Tensor((ROWS, ROWS), FLOAT), Tensor((ROWS, 7), FLOAT)
    own = on_tokens(elementwise("matmul", (left, right), (Tensor((ROWS, 7), FLOAT),)), 1, 4)
    assert shapes(own) == ([(3, ROWS), (ROWS, 7)], [(3, 7)])


def test_the_tokens_of_a_gradient_are_its_inner_dimension_in_batches_too() -> None:
    graph = layered([4, 4, 7], rows=ROWS)
    left, right = Tensor((1, 4, ROWS), FLOAT), Tensor((1, ROWS, 7), FLOAT)
    ops = list(graph.signatures)
    ops[2] = OpSignature("batch_matmul", (left, right), (Tensor((1, 4, 7), FLOAT),))
    own = on_tokens(flow(replace(graph, signatures=tuple(ops))), 2, 2)
    assert shapes(own) == ([(1, 4, 6), (1, 6, 7)], [(1, 4, 7)])


def op_with(*sizes: int) -> OpSignature:
    return OpSignature("add", (), tuple(Tensor((size,), FLOAT) for size in sizes))


def test_a_share_counts_what_is_cut() -> None:
    assert made_share(op_with(12), op_with(3), 4) == 0.25
    assert made_share(op_with(12), op_with(12), 4) == 1.0
    assert made_share(op_with(12, 36), op_with(12, 9), 4) == pytest.approx((12 + 9) / 48)
    assert made_share(op_with(10), op_with(4), 3) == pytest.approx(1 / 3)  # 4 is rounded up
    assert made_share(op_with(), op_with(), 4) == 1.0
    with pytest.raises(ValueError, match="zip"):
        made_share(op_with(1), op_with(), 2)
