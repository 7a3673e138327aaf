"""Facts of ops that decide how well their kernels do."""

from __future__ import annotations

import numpy as np
import pytest

from driple.graph.signature import OpSignature, Tensor
from driple.simulate.gpu_kernels import INPUTS, Library, Runtime, kernel_inputs
from driple.simulate.op_facts import FACTS, OpFacts, op_facts

HALF = 14


def facts_of(op: OpSignature) -> OpFacts:
    """Facts of one op."""
    return op_facts([op], [None])


def test_cudnn_computes_a_convolution_along_one_dimension_as_of_images_of_one_row() -> None:
    line = OpSignature(
        kind="conv",
        inputs=(Tensor((8, 500, 64), HALF), Tensor((3, 64, 128), HALF)),
        outputs=(Tensor((8, 500, 128), HALF),),
    )
    image = OpSignature(
        kind="conv",
        inputs=(Tensor((8, 1, 500, 64), HALF), Tensor((1, 3, 64, 128), HALF)),
        outputs=(Tensor((8, 1, 500, 128), HALF),),
    )
    values = [
        dict(zip(FACTS, facts_of(op).values[0].tolist(), strict=True)) for op in (line, image)
    ]
    assert values[0]["oblong"] == 1
    assert values[0] == values[1]


@pytest.mark.parametrize(
    ("library", "first"), [("torch1", 1), ("torch2.1", 1), ("torch2", 0), ("tensorflow", 0)]
)
def test_flash_attention_came_in_its_second_version_after_pytorch_2_1(
    library: Library, first: int
) -> None:
    query = Tensor((8, 16, 1024, 64), HALF)
    attention = OpSignature(kind="attention", inputs=(query, query, query), outputs=(query,))
    add = OpSignature(kind="add", inputs=(query, query), outputs=(query,))
    both = op_facts([attention, add], [None, None])
    column = kernel_inputs(both, Runtime(library))[:, INPUTS.index("first_flash")]
    assert np.array_equal(column, [first, 0])
