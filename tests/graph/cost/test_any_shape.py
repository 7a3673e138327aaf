"""No shape of a file, however odd, ends in an error, a negative cost or one that is not finite."""

from __future__ import annotations

import random
from math import isfinite

import numpy as np

from driple.graph.cost import cost_of_op
from driple.graph.cost.formulas import _FLOPS
from driple.graph.cost.moves import MOVES
from driple.graph.cost.products import product_of
from driple.graph.cost.updates import UPDATES
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.optable import OpTable

SIZES = (-1, -1, 0, 1, 1, 2, 3, 7, 64)
TEXTS = ("", "lstm", "ab,bc->ac", "bidirectional", "\0->")


def drawn(draw: random.Random, op_type: str) -> OpSignature:
    """An op with a random number of inputs and outputs, of any rank and size."""

    def tensors(most: int) -> tuple[Tensor, ...]:
        return tuple(
            Tensor(
                draw.choice((None, *(tuple(draw.choices(SIZES, k=n)) for n in range(6)))),
                draw.choice((0, 1, 3, 9, 19)),
            )
            for _ in range(draw.randrange(most))
        )

    numbers = {
        name: tuple(draw.choices((0, 1, 1, 2, 3), k=draw.randrange(6)))
        for name in ("ksize", "strides", "transpose_a", "adj_y", "depth_radius", "num_proj")
        if draw.random() < 0.5
    }
    for name in ("equation", "rnn_mode", "direction", "input_mode"):
        numbers[name] = tuple(map(ord, draw.choice(TEXTS)))
    return OpSignature.of_op_type(op_type, tensors(8), tensors(5), tuple(sorted(numbers.items())))


def test_costs_are_finite_and_not_negative() -> None:
    draw = random.Random(38)
    ops = [drawn(draw, name) for name in sorted({*_FLOPS, *MOVES, *UPDATES}) for _ in range(40)]
    for op in ops:
        cost = cost_of_op(op)
        for number in (cost.flops, cost.bytes_read, cost.bytes_written, cost.parameters):
            assert isfinite(number), op
            assert number >= 0, op
        product = product_of(op, cost.flops)
        if product is not None:
            for side in (product.m, product.n, product.k, product.count):
                assert isfinite(side), op
                assert side > 0, op
    table = OpTable.of(ops)
    columns = {name: getattr(table, name) for name in OpTable.__dataclass_fields__}
    for name, column in {**columns, "facts": table.facts.values}.items():
        assert np.isfinite(column).all(), name
        assert (column >= 0).all(), name
