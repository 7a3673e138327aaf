"""What a kernel computes on, from the shapes of its op."""

from __future__ import annotations

import numpy as np

from driple.graph.signature import OpSignature, Tensor
from driple.simulate.optable import MEMORY_KINDS, PRODUCT_KINDS, OpTable

FLOAT, INT, HALF = 1, 3, 19


def op(
    op_type: str,
    *inputs: tuple[int, ...],
    out: tuple[int, ...],
    dtype: int = FLOAT,
) -> OpSignature:
    return OpSignature.of_op_type(
        op_type,
        tuple(Tensor(shape, dtype) for shape in inputs),
        (Tensor(out, dtype),),
        (),
    )


IMAGE, WINDOW, MADE = (8, 28, 28, 64), (3, 3, 64, 128), (8, 14, 14, 128)
CONV = op("Conv2D", IMAGE, WINDOW, out=MADE)
TO_INPUT = op("Conv2DBackpropInput", (4,), WINDOW, MADE, out=IMAGE)
TO_FILTER = op("Conv2DBackpropFilter", IMAGE, (4,), MADE, out=WINDOW)
SAME = op("Conv2D", IMAGE, (3, 3, 64, 64), out=IMAGE)


def test_kinds() -> None:
    table = OpTable.of(
        [
            CONV,
            SAME,
            TO_INPUT,
            op("Conv2D", IMAGE, (1, 7, 64, 64), out=IMAGE),
            op("Conv2D", (8, 224, 224, 3), (11, 11, 3, 64), out=(8, 55, 55, 64)),
            op("MatMul", (32, 64), (64, 10), out=(32, 10), dtype=HALF),
            op("Relu", IMAGE, out=IMAGE),
            op("MaxPool", IMAGE, out=MADE),
        ]
    )
    kinds = [PRODUCT_KINDS[i] for i in table.product_kind[:6]]
    assert kinds == ["window3", "window3", "window3", "oblong", "first", "matmul"]
    assert table.gradient.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    # Of a 3 x 3 window, 36 points of tiles of 4 x 4 are left; a stride saves none.
    assert table.saved_sides[1].tolist() == [8 * 7 * 7, 64, 64, 36]
    assert not np.delete(table.saved_sides, 1, axis=0).any()
    assert table.half.tolist() == [False] * 5 + [True] + [False] * 2
    memory = [MEMORY_KINDS[i] for i in table.memory_kind]
    assert memory == ["product"] * 6 + ["elementwise", "pool"]
    assert table.windowed.tolist() == [True] * 5 + [False] * 2 + [True]
    np.testing.assert_array_equal(table.sides[6:], 0.0)
