"""Which kernels PyTorch's present libraries pick, by the rules of ATen and cuDNN."""

from __future__ import annotations

import pytest

from driple.graph.cost.convolutions import CHANNELS_LAST
from driple.graph.cost.products import Product
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.kernel_picks import PICKS, TURNS
from driple.simulate.op_facts import OpFacts, op_facts

BFLOAT16, FLOAT16, FLOAT32 = 14, 19, 1
BATCH, SIDE = 8, 28


def convolution(
    kind: str, window: tuple[int, int], inner: int, outer: int, *, dtype: int, last: bool = False,
    groups: int = 1,
) -> OpSignature:  # fmt: skip
    """A convolution that keeps the size of its images."""
    image = Tensor((BATCH, inner * groups, SIDE, SIDE), dtype)
    output = Tensor((BATCH, outer * groups, SIDE, SIDE), dtype)
    sides = (inner, outer * groups) if kind == "conv" else (groups, 1)
    weights = Tensor((*window, *sides), dtype)
    numbers = (("groups", (groups,)), *((CHANNELS_LAST,) if last else ()))
    return OpSignature(kind, (image, weights), (output,), numbers)


def depthwise(side: int, dtype: int, *, last: bool = False, other: int = 0) -> OpFacts:
    """Facts of a depthwise convolution of 64 channels."""
    window = (side, other or side)
    op = convolution("depthwise_conv", window, 1, 1, dtype=dtype, last=last, groups=64)
    return op_facts([op], [None])


def picked(facts: OpFacts) -> dict[str, float]:
    """What is not 0."""
    row = zip(PICKS, facts.picks[0].tolist(), strict=True)
    return {name: value for name, value in row if value}


@pytest.mark.parametrize(
    ("facts", "names"),
    [
        (depthwise(3, BFLOAT16), {"native_depthwise", "native_depthwise_bfloat16"}),
        (depthwise(3, FLOAT32), {"native_depthwise"}),
        (depthwise(3, FLOAT16), {"half_depthwise_apart"}),
        (depthwise(7, FLOAT16), {"native_depthwise"}),
        (depthwise(7, BFLOAT16, last=True), {"small_window_last_half"}),
        (depthwise(7, FLOAT32, last=True), {"small_window_last_single"}),
        (depthwise(9, BFLOAT16, last=True), {"other_window_last"}),
        (depthwise(1, BFLOAT16, last=True, other=11), {"other_window_last"}),
    ],
)
def test_format_layout_and_window_pick_the_kernel_of_a_depthwise_convolution(
    facts: OpFacts, names: set[str]
) -> None:
    assert set(picked(facts)) == names


@pytest.mark.parametrize(
    ("window", "inner", "outer", "few"),
    [(3, 16, 16, 1.0), (3, 32, 64, 0.5), (3, 64, 64, 0.0), (1, 16, 16, 0.0), (3, 3, 64, 0.0)],
)
def test_a_window_over_few_channels_leaves_its_tile_empty(
    window: int, inner: int, outer: int, few: float
) -> None:
    op = convolution("conv", (window, window), inner, outer, dtype=FLOAT16)
    assert picked(op_facts([op], [None])).get("few_channels_half", 0.0) == pytest.approx(few)


def test_channels_that_fill_no_vector_are_a_misfit_with_channels_last_alone() -> None:
    for last in (True, False):
        op = convolution("conv", (1, 1), 54, 128, dtype=BFLOAT16, last=last)
        assert ("misfit_last_half" in picked(op_facts([op], [None]))) == last


@pytest.mark.parametrize(
    ("vocabulary", "dtype", "odd"),
    [(50257, BFLOAT16, True), (50264, BFLOAT16, False), (50257, FLOAT32, False),
     (197, BFLOAT16, False)],
)  # fmt: skip
def test_a_vocabulary_of_odd_size_is_odd_in_half_precision(
    vocabulary: int, dtype: int, odd: bool
) -> None:
    rows, width = 8192, 768
    op = OpSignature(
        "matmul",
        (Tensor((rows, width), dtype), Tensor((width, vocabulary), dtype)),
        (Tensor((rows, vocabulary), dtype),),
    )
    product = Product(rows, vocabulary, width, 1)
    assert ("odd_side_half" in picked(op_facts([op], [product]))) == odd


@pytest.mark.parametrize(
    ("window", "last", "turns"), [(1, False, 27), (1, True, 13.5), (3, True, 0)]
)
def test_groups_of_a_window_of_one_pixel_are_convolved_one_after_another(
    window: int, last: bool, turns: float
) -> None:
    op = convolution("conv", (window, window), 16, 16, dtype=FLOAT16, last=last, groups=27)
    facts = op_facts([op], [None])
    assert facts.turns[0, TURNS.index("groups")] == turns
    assert facts.turns[0, TURNS.index("cells")] == 0
