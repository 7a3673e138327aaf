"""Facts of ops that decide how well their kernels do."""

from __future__ import annotations

import numpy as np
import pytest

from driple.graph.signature import OpSignature, Tensor
from driple.simulate.gpu_kernels import INPUTS, Library, Runtime, kernel_inputs
from driple.simulate.op_facts import FACTS, OpFacts, channel_elements, op_facts

BFLOAT16, FLOAT16, FLOAT32 = 14, 19, 1
HALF = BFLOAT16


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


def batch_norm(
    images: int, weights: int = FLOAT32, *, kind: str = "batch_norm", batch: int = 8,
    numbers: tuple[tuple[str, tuple[int, ...]], ...] = (),
) -> OpSignature:  # fmt: skip
    """A batch norm of 64 channels with images and weights of some types, or its gradient."""
    image = Tensor((batch, 64, 32, 32), images)
    weight = Tensor((64,), weights, is_parameter=True)
    read = (image, image) if kind.endswith("gradient") else (image,)
    return OpSignature(kind=kind, inputs=(*read, weight, weight), outputs=(image,), numbers=numbers)


@pytest.mark.parametrize(
    ("images", "weights", "native"),
    [(FLOAT32, FLOAT32, 0), (FLOAT16, FLOAT32, 0), (BFLOAT16, FLOAT32, 1), (FLOAT16, FLOAT16, 1)],
)
def test_cudnn_computes_batch_norms_of_float16_and_pytorch_those_of_bfloat16(
    images: int, weights: int, native: int
) -> None:
    """And those with weights in half precision, or of more elements than cuDNN counts."""
    for kind in ("batch_norm", "batch_norm_gradient"):
        op = batch_norm(images, weights, kind=kind)
        assert facts_of(op).values[0, FACTS.index("native_norm")] == native
        large = batch_norm(images, weights, kind=kind, batch=2**15)
        assert facts_of(large).values[0, FACTS.index("native_norm")] == 1
        inference = batch_norm(images, weights, kind=kind, numbers=(("inference", (1,)),))
        assert facts_of(inference).values[0, FACTS.index("native_norm")] == 0


def test_a_block_of_a_batch_norm_moves_the_elements_of_one_channel() -> None:
    """Read and written, in the gradient two read; none where channels are last or not averaged."""
    assert channel_elements(batch_norm(FLOAT32)) == 2 * 8 * 32 * 32
    assert channel_elements(batch_norm(FLOAT16, kind="batch_norm_gradient")) == 3 * 8 * 32 * 32
    for number in ("channels_last", "inference"):
        assert channel_elements(batch_norm(FLOAT32, numbers=((number, (1,)),))) == 0
    add = Tensor((8, 64, 32, 32), FLOAT32)
    assert channel_elements(OpSignature(kind="add", inputs=(add, add), outputs=(add,))) == 0


@pytest.mark.parametrize(
    ("library", "first"),
    [("torch1", 1), ("torch2.1", 1), ("torch2.7", 0), ("torch2", 0), ("tensorflow", 0)],
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


@pytest.mark.parametrize(
    ("library", "first"),
    [("torch1", 1), ("torch2.1", 1), ("torch2.7", 1), ("torch2", 0), ("tensorflow", 0)],
)
def test_gradients_of_layer_norms_have_another_kernel_from_pytorch_2_8_on(
    library: Library, first: int
) -> None:
    rows = Tensor((8, 1024, 768), FLOAT32)
    weight = Tensor((768,), FLOAT32, is_parameter=True)
    gradient = OpSignature("layer_norm_gradient", (rows, rows, weight), (rows, weight))
    batch = batch_norm(FLOAT32, kind="batch_norm_gradient")
    both = op_facts([gradient, batch], [None, None])
    column = kernel_inputs(both, Runtime(library))[:, INPUTS.index("first_layer_norm_gradient")]
    assert np.array_equal(column, [first, 0])


def test_a_convolution_of_few_groups_is_nearly_a_dense_one() -> None:
    """Among the inputs of the network, groups count by how many they are; the rest stays."""
    image = Tensor((8, 64, 28, 28), FLOAT16)

    def inputs_of(groups: int) -> dict[str, float]:
        weight = Tensor((3, 3, 64 // groups, 64), FLOAT16, is_parameter=True)
        op = OpSignature("conv", (image, weight), (image,))
        row = kernel_inputs(facts_of(op), Runtime())[0].tolist()
        return dict(zip(INPUTS, row, strict=True))

    for groups in (1, 2, 32):
        inputs = inputs_of(groups)
        assert inputs["grouped_convolution"] == pytest.approx(1 - 1 / groups)
        assert inputs["half_grouped"] == pytest.approx(1 - 1 / groups)
        assert inputs["convolution"] + inputs["grouped_convolution"] == pytest.approx(1)
