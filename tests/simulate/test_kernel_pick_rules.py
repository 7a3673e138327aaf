"""Where the rules of ATen and cuDNN end: windows, channels and formats at each limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.graph.cost.convolutions import ConvFacts, Direction
from driple.graph.cost.products import Product
from driple.graph.signature import OpSignature, Tensor
from driple.simulate.kernel_picks import HALF_PICKS, PICKS, TURNS, picks_of, turns_of

BFLOAT16, FLOAT16, FLOAT32 = 14, 19, 1
DEPTHWISE = ConvFacts(
    groups=64, in_per_group=1, out_per_group=1, window=(3, 3), strides=(1, 1), dilations=(1, 1),
    batch=8, image=(28, 28), output=(28, 28), direction="forward", transposed=False,
    channels_last=False,
)  # fmt: skip
DENSE = replace(DEPTHWISE, groups=1, in_per_group=64, out_per_group=64)


def op_of(dtype: int, kind: str = "conv") -> OpSignature:
    """An op with one output of a type."""
    return OpSignature(kind, (), (Tensor((4, 4), dtype),))


def picked(facts: ConvFacts, dtype: int) -> dict[str, float]:
    """What a convolution picks, without what is 0."""
    row = picks_of(op_of(dtype), facts, None, by_channel=True)
    return {name: value for name, value in zip(PICKS, row, strict=True) if value}


def test_picks_of_half_precision_are_those_of_either_format() -> None:
    names = {name for name, half in zip(PICKS, HALF_PICKS, strict=True) if half}
    assert names == {
        "native_depthwise_bfloat16", "half_depthwise_apart", "half_depthwise_apart_gradient",
        "small_window_last_half", "few_channels_half", "misfit_last_half", "odd_side_half",
        "batch_norm_float16",
    }  # fmt: skip


@pytest.mark.parametrize(
    "facts",
    [
        DEPTHWISE,
        replace(DEPTHWISE, window=(1, 1)),
        replace(DEPTHWISE, window=(5, 5)),
        replace(DEPTHWISE, groups=32),
        replace(DEPTHWISE, image=(28, 7)),
        replace(DEPTHWISE, image=(6, 28)),
        replace(DEPTHWISE, strides=(2, 2)),
        replace(DEPTHWISE, strides=(), dilations=()),
    ],
)
def test_cudnn_takes_small_windows_with_channels_apart(facts: ConvFacts) -> None:
    """Square, of 1, 3 or 5 pixels, over 32 channels or more and images 7 wide or wider."""
    assert picked(facts, FLOAT16) == {"half_depthwise_apart": 1.0}
    gradient = replace(facts, direction="filter")
    both = {"half_depthwise_apart": 1.0, "half_depthwise_apart_gradient": 1.0}
    assert picked(gradient, FLOAT16) == both
    assert picked(facts, FLOAT32) == {"native_depthwise": 1.0}


@pytest.mark.parametrize(
    "facts",
    [
        replace(DEPTHWISE, window=(2, 2)),
        replace(DEPTHWISE, window=(4, 4)),
        replace(DEPTHWISE, window=(6, 6)),
        replace(DEPTHWISE, window=(7, 7)),
        replace(DEPTHWISE, window=(3, 5)),
        replace(DEPTHWISE, window=(3,), image=(28,)),
        replace(DEPTHWISE, window=(3, 3, 3), image=(28, 28, 28)),
        replace(DEPTHWISE, groups=31),
        replace(DEPTHWISE, image=(28, 6)),
        replace(DEPTHWISE, dilations=(1, 2)),
        replace(DEPTHWISE, strides=(1, 3)),
    ],
)
def test_pytorch_takes_the_other_depthwise_convolutions_with_channels_apart(
    facts: ConvFacts,
) -> None:
    assert picked(facts, FLOAT16) == {"native_depthwise": 1.0}
    gradient = replace(facts, direction="input")
    both = {"native_depthwise": 1.0, "native_depthwise_gradient": 1.0}
    assert picked(gradient, FLOAT16) == both
    own = {**both, "native_depthwise_bfloat16": 1.0}
    assert picked(gradient, BFLOAT16) == own


@pytest.mark.parametrize(
    ("window", "dtype", "direction", "picks"),
    [
        ((3, 3), FLOAT32, "forward", {"small_window_last_single"}),
        ((3, 3), FLOAT32, "input", set()),
        ((7, 7), FLOAT32, "forward", {"small_window_last_single"}),
        ((7, 7), FLOAT32, "filter", {"widest_window_last_gradient"}),
        ((7,), FLOAT32, "filter", {"widest_window_last_gradient"}),
        ((6, 6), FLOAT32, "filter", set()),
        ((7, 7), FLOAT16, "filter", {"small_window_last_half"}),
        ((3, 3), BFLOAT16, "input", {"small_window_last_half"}),
        ((8, 8), FLOAT32, "forward", {"other_window_last"}),
        ((3, 5), FLOAT16, "filter", {"other_window_last"}),
        ((8, 7), FLOAT32, "input", {"other_window_last"}),
    ],
)
def test_with_channels_last_the_window_decides(
    window: tuple[int, ...], dtype: int, direction: Direction, picks: set[str]
) -> None:
    facts = replace(DEPTHWISE, window=window, direction=direction, channels_last=True)
    assert picked(facts, dtype) == dict.fromkeys(picks, 1.0)


@pytest.mark.parametrize(
    ("inner", "outer", "few"),
    [
        (64, 64, 0.0), (128, 256, 0.0), (32, 64, 0.5), (64, 16, 1.0), (8, 64, 1.5), (7, 64, 0.0),
        (7, 32, 0.5), (64, 8, 1.5), (64, 4, 1.5), (64, 2, 1.5), (9, 1, 1.5),
    ],
)  # fmt: skip
def test_each_halving_of_the_channels_below_64_counts_half(
    inner: int, outer: int, few: float
) -> None:
    """Down to 8; images of a first layer, with fewer than 8 channels, are filled up."""
    for window in ((3, 3), (1, 2)):
        facts = replace(DENSE, in_per_group=inner, out_per_group=outer, window=window)
        for dtype, name in ((FLOAT16, "half"), (BFLOAT16, "half"), (FLOAT32, "single")):
            expected = {f"few_channels_{name}": few} if few else {}
            assert picked(facts, dtype) == pytest.approx(expected)
    pixel = replace(DENSE, in_per_group=inner, out_per_group=outer, window=(1, 1))
    assert picked(pixel, FLOAT16) == {}


@pytest.mark.parametrize(
    ("inner", "outer", "misfit"),
    [(64, 64, 0), (8, 8, 0), (8, 12, 1), (12, 8, 1), (9, 8, 1), (7, 12, 0), (12, 12, 1)],
)
def test_channels_of_either_side_must_fill_vectors(inner: int, outer: int, misfit: int) -> None:
    facts = replace(
        DENSE, in_per_group=inner, out_per_group=outer, window=(1, 1), channels_last=True
    )
    expected = {"misfit_last_half": 1.0} if misfit else {}
    assert picked(facts, FLOAT16) == expected
    assert picked(facts, FLOAT32) == picked(replace(facts, channels_last=False), FLOAT16) == {}
    grouped = replace(facts, groups=2)
    assert picked(grouped, FLOAT16) == {}


@pytest.mark.parametrize(
    ("kind", "product", "dtype", "picks"),
    [
        ("matmul", Product(8, 8, 32769), FLOAT16, {"odd_side_half"}),
        ("matmul", Product(8, 32769, 8), BFLOAT16, {"odd_side_half"}),
        ("matmul", Product(32769, 8, 8), BFLOAT16, {"odd_side_half"}),
        ("matmul", Product(32767, 8, 8), FLOAT16, set()),
        ("matmul", Product(32770, 8, 8), FLOAT16, set()),
        ("matmul", Product(32769, 8, 8), FLOAT32, set()),
        ("add", Product(32769, 8, 8), FLOAT16, {"batch_norm_float16"}),
        ("matmul", None, BFLOAT16, set()),
    ],
)
def test_picks_of_other_ops(
    kind: str, product: Product | None, dtype: int, picks: set[str]
) -> None:
    """Odd sides count in products alone; batch norms by channel in float16 alone."""
    row = picks_of(op_of(dtype, kind), None, product, by_channel=kind == "add")
    assert row == [float(name in picks) for name in PICKS]
    single = picks_of(op_of(FLOAT32, "batch_norm"), None, None, by_channel=True)
    assert not any(single)


def test_an_op_without_outputs_picks_nothing() -> None:
    op = OpSignature("matmul", (), ())
    assert not any(picks_of(op, None, Product(8, 8, 32769), by_channel=True))


@pytest.mark.parametrize(
    ("facts", "groups"),
    [
        (replace(DENSE, groups=2, window=(1, 1)), 2.0),
        (replace(DENSE, groups=5, window=(1, 1), channels_last=True), 2.5),
        (replace(DENSE, groups=2, window=(1, 2)), 0.0),
        (replace(DENSE, window=(1, 1)), 0.0),
        (replace(DEPTHWISE, window=(1, 1)), 0.0),
    ],
)
def test_turns_of_groups(facts: ConvFacts, groups: float) -> None:
    """Kernels of groups of one pixel follow one another; half each with channels last."""
    turns = dict(zip(TURNS, turns_of(op_of(FLOAT16), facts), strict=True))
    assert turns == {"groups": groups, "cells": 0.0}


def test_turns_of_an_op_without_groups_or_cells() -> None:
    assert turns_of(op_of(FLOAT16, "add"), None) == [0.0, 0.0]
