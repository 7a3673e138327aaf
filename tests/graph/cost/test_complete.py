"""Shapes that an op's other shapes determine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driple.graph import read_graph
from driple.graph.cost import cost_of_graph, cost_of_op
from driple.graph.cost.complete import completed
from driple.graph.cost.products import product_of
from driple.graph.signature import OpSignature
from driple.simulate.optable import OpTable
from tests.graph.cost.ops import op

CASES = Path(__file__).parents[2] / "data" / "cases"
OPEN4 = (-1, -1, -1, -1)
IMAGE, WINDOW, MADE = (8, 28, 28, 64), (3, 3, 64, 128), (8, 14, 14, 128)
STRIDES = (1, 2, 2, 1)


def pairs() -> list[tuple[OpSignature, OpSignature]]:
    """Ops with all their shapes, and the same ops with one of them unknown."""
    pairs_of_ops = []
    first, second = (8, 64, 28, 28), (8, 128, 14, 14)
    turned = {"strides": (1, 1, 2, 2)}
    for unknown in (None, OPEN4, (8, -1, -1, -1)):
        plain = {"strides": STRIDES}
        pairs_of_ops += [
            (op("Conv2D", IMAGE, WINDOW, out=MADE, **plain),
             op("Conv2D", IMAGE, WINDOW, out=unknown, **plain)),
            (op("Conv2D", IMAGE, WINDOW, out=MADE, **plain),
             op("Conv2D", unknown, WINDOW, out=MADE, **plain)),
            (op("Conv2D", first, WINDOW, out=second, **turned),
             op("Conv2D", first, WINDOW, out=unknown, **turned)),
            (op("Conv2DBackpropInput", (4,), WINDOW, MADE, out=IMAGE, **plain),
             op("Conv2DBackpropInput", (4,), WINDOW, MADE, out=unknown, **plain)),
            (op("Conv2DBackpropInput", (4,), WINDOW, MADE, out=IMAGE, **plain),
             op("Conv2DBackpropInput", (4,), WINDOW, unknown, out=IMAGE, **plain)),
            (op("Conv2DBackpropInputV2", IMAGE, WINDOW, MADE, out=IMAGE, **plain),
             op("Conv2DBackpropInputV2", IMAGE, WINDOW, MADE, out=unknown, **plain)),
            (op("Conv2DBackpropFilter", IMAGE, (4,), MADE, out=WINDOW, **plain),
             op("Conv2DBackpropFilter", IMAGE, (4,), unknown, out=WINDOW, **plain)),
            (op("FusedBatchNormV3", IMAGE, (64,), (64,), (64,), (64,), out=IMAGE),
             op("FusedBatchNormV3", IMAGE, (64,), (64,), (64,), (64,), out=unknown)),
            (op("MaxPoolGrad", IMAGE, MADE, MADE, out=IMAGE, ksize=(1, 2, 2, 1)),
             op("MaxPoolGrad", IMAGE, MADE, MADE, out=unknown, ksize=(1, 2, 2, 1))),
            (op("Relu", IMAGE, out=IMAGE), op("Relu", IMAGE, out=unknown)),
            (op("AddV2", IMAGE, (64,), out=IMAGE), op("AddV2", IMAGE, (64,), out=unknown)),
            (op("BiasAdd", first, (64,), out=first), op("BiasAdd", first, (64,), out=unknown)),
        ]  # fmt: skip
    for unknown in (None, (-1, -1), (-1, 10), (32, -1)):
        for name, left in (("", (32, 64)), ("transpose_a", (64, 32))):
            numbers = {name: 1} if name else {}
            pairs_of_ops.append(
                (op("MatMul", left, (64, 10), out=(32, 10), **numbers),
                 op("MatMul", left, (64, 10), out=unknown, **numbers))
            )  # fmt: skip
    dense = op("MatMul", (32, 64), (64, 10), out=(32, 10))
    pairs_of_ops += [
        (dense, op("MatMul", None, (64, 10), out=(32, 10))),
        (dense, op("MatMul", (-1, 64), None, out=(32, 10))),
        (op("Conv2DBackpropFilterV2", IMAGE, WINDOW, MADE, out=WINDOW),
         op("Conv2DBackpropFilterV2", IMAGE, WINDOW, MADE, out=OPEN4)),
        (op("BatchMatMulV2", (4, 8, 16), (4, 32, 16), out=(4, 8, 32), adj_y=1),
         op("BatchMatMulV2", (4, 8, 16), (4, 32, 16), out=None, adj_y=1)),
        (op("Conv3D", (8, 4, 28, 28, 64), (1, 3, 3, 64, 128), out=(8, 4, 28, 28, 128)),
         op("Conv3D", (8, 4, 28, 28, 64), (1, 3, 3, 64, 128), out=None)),
        (op("DepthwiseConv2dNative", IMAGE, (3, 3, 64, 2), out=(8, 28, 28, 128)),
         op("DepthwiseConv2dNative", IMAGE, (3, 3, 64, 2), out=None)),
    ]  # fmt: skip
    return pairs_of_ops


@pytest.mark.parametrize(("whole", "partly"), pairs())
def test_an_unknown_shape_changes_neither_cost_nor_product(
    whole: OpSignature, partly: OpSignature
) -> None:
    """FLOPs, bytes and the sides of the product are those of the op with all its shapes."""
    cost = cost_of_op(whole)
    assert cost.known
    assert cost_of_op(partly) == cost
    assert product_of(partly, cost.flops) == product_of(whole, cost.flops)
    tables = [OpTable.of([one]) for one in (whole, partly)]
    for name in set(OpTable.__dataclass_fields__) - {"facts"}:
        np.testing.assert_array_equal(getattr(tables[0], name), getattr(tables[1], name))
    assert tables[0].facts.kinds == tables[1].facts.kinds
    np.testing.assert_array_equal(tables[0].facts.values, tables[1].facts.values)


def test_an_output_that_the_graph_does_not_state_is_added() -> None:
    bare = OpSignature.of_op_type("Conv2D", op("Conv2D", IMAGE, WINDOW, out=MADE).inputs, ())
    assert completed(bare).outputs == op("Conv2D", IMAGE, WINDOW, out=(8, 28, 28, 128)).outputs


def test_what_nothing_determines_stays_unknown() -> None:
    window = op("Conv2DBackpropFilter", IMAGE, (4,), MADE, out=None)
    assert completed(window).outputs[0].shape is None
    assert not cost_of_op(window).known
    assert not cost_of_op(op("MatMul", None, None, out=(32, 10))).known
    assert not cost_of_op(op("Conv2D", IMAGE, OPEN4, out=MADE)).known
    assert not cost_of_op(op("Conv2D", IMAGE, None, out=MADE)).known
    assert not cost_of_op(op("AddV2", IMAGE, None, out=None)).known


def test_an_unknown_batch_counts_as_one() -> None:
    """Also in the gradient by the weights, whose inner side is the batch."""
    forward = op("MatMul", (-1, 64), (64, 10), out=(-1, 10))
    by_weights = op("MatMul", (-1, 64), (-1, 10), out=(64, 10), transpose_a=1)
    convolution = op("Conv2D", (-1, 28, 28, 64), WINDOW, out=(-1, 14, 14, 128))
    assert cost_of_op(forward).flops == cost_of_op(by_weights).flops == 2 * 64 * 10
    assert cost_of_op(convolution).flops == 2 * 14 * 14 * 128 * 9 * 64


def test_known_shapes_stay_as_they_are() -> None:
    known = op("Conv2D", IMAGE, WINDOW, out=MADE)
    assert completed(known) is known


def test_a_gradient_by_the_input_does_not_depend_on_its_own_shape() -> None:
    """Case 16 of issue 38: 9.75 s and 0.0102 s with equal FLOPs."""
    tables = []
    for name in ("16_backprop_input_shape_unknown", "16b_backprop_input_shape_known"):
        graph = read_graph(CASES / f"{name}.pbtxt")
        tables.append(OpTable.of([s for s in graph.signatures if s.kind.startswith("conv")]))
    np.testing.assert_array_equal(tables[0].sides, tables[1].sides)
    np.testing.assert_array_equal(tables[0].moved, tables[1].moved)


def test_three_dimensions_of_space() -> None:
    """Case 10 of issue 38: 33.3 GFLOP."""
    cost = cost_of_graph(read_graph(CASES / "10_conv3d.pbtxt"))
    assert cost.total_flops == pytest.approx(33.3e9, rel=0.001)
    assert not cost.unknown
