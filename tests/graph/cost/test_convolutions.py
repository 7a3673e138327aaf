"""Facts of convolutions are those of the modules that they come from."""

from __future__ import annotations

import pytest

from driple.graph.cost.convolutions import conv_facts
from driple.graph.signature import OpSignature, Tensor

FLOAT = 1


def op(
    kind: str, *inputs: tuple[int, ...], out: tuple[int, ...], **numbers: tuple[int, ...]
) -> OpSignature:
    return OpSignature(
        kind,
        tuple(Tensor(shape, FLOAT) for shape in inputs),
        (Tensor(out, FLOAT),),
        tuple(sorted(numbers.items())),
    )


IMAGE, WINDOW, MADE = (8, 56, 28, 64), (3, 3, 16, 128), (8, 28, 14, 128)
SIZES = (4,)


@pytest.mark.parametrize(
    ("signature", "direction"),
    [
        (op("conv", IMAGE, WINDOW, out=MADE), "forward"),
        (op("conv_input_gradient", SIZES, WINDOW, MADE, out=IMAGE), "input"),
        (op("conv_filter_gradient", IMAGE, SIZES, MADE, out=WINDOW), "filter"),
    ],
)
def test_a_convolution_and_its_gradients_say_the_same(
    signature: OpSignature, direction: str
) -> None:
    """Channels last, as TensorFlow has them; four groups, stride 2."""
    facts = conv_facts(signature)
    assert facts is not None
    assert facts.direction == direction
    assert (facts.groups, facts.in_per_group, facts.out_per_group) == (4, 16, 32)
    assert (facts.window, facts.strides, facts.dilations) == ((3, 3), (2, 2), (1, 1))
    assert (facts.batch, facts.image, facts.output) == (8, (56, 28), (28, 14))
    assert facts.out_pixels == 28 * 14
    assert facts.channels_last
    assert not facts.transposed


def test_a_depthwise_filter_holds_channels_and_multiplier() -> None:
    facts = conv_facts(op("depthwise_conv", (2, 32, 9, 9), (3, 3, 32, 2), out=(2, 64, 9, 9)))
    assert facts is not None
    assert facts.is_depthwise
    assert (facts.groups, facts.in_per_group, facts.out_per_group) == (32, 1, 2)
    assert not facts.channels_last


@pytest.mark.parametrize(
    ("before", "side", "after", "stride"),
    [(224, 7, 112, 2), (224, 16, 14, 16), (7, 7, 1, 1), (56, 1, 28, 2), (149, 3, 147, 1),
     (35, 3, 17, 2), (14, 3, 14, 1), (8, 2, 4, 2), (224, 4, 56, 4)],
)  # fmt: skip
def test_sizes_give_the_stride(before: int, side: int, after: int, stride: int) -> None:
    """With padding or without: nothing states either."""
    convolution = op("conv", (2, 3, before, before), (side, side, 3, 64), out=(2, 64, after, after))
    facts = conv_facts(convolution)
    assert facts is not None
    assert facts.strides == (stride, stride)


def test_what_the_graph_states_holds() -> None:
    convolution = op(
        "conv", (2, 3, 8, 8), (3, 3, 3, 4), out=(2, 4, 1, 1),
        strides=(1, 1, 5, 5), dilations=(1, 1, 3, 3),
    )  # fmt: skip
    facts = conv_facts(convolution)
    assert facts is not None
    assert (facts.strides, facts.dilations) == ((5, 5), (3, 3))


def test_all_else_has_no_facts() -> None:
    assert conv_facts(op("relu", IMAGE, out=IMAGE)) is None
    unknown = OpSignature("conv", (Tensor(None, FLOAT),) * 2, (Tensor(None, FLOAT),))
    assert conv_facts(unknown) is None
