"""Facts of a convolution that decide which algorithm a library runs it by.

OpSignature of a convolution or of one of its gradients -> ConvFacts

A gradient, and a transposed convolution, is described by the convolution that it belongs to: what
that reads is its image, whichever of the three tensors the op itself computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from driple.graph.cost.complete import completed
from driple.graph.cost.shapes import numbers_of
from driple.graph.signature import OpSignature

__all__ = ["CHANNELS_LAST", "TRANSPOSED", "ConvFacts", "Direction", "conv_facts"]

Direction = Literal["forward", "input", "filter"]

# Numbers of a signature: the image is dense in memory with its channels last, whatever the order of
# its sizes; the op is a transposed convolution or belongs to one.
CHANNELS_LAST = ("channels_last", (1,))
TRANSPOSED = ("transposed", (1,))

_MIN_RANK = 3  # batch, channels, one dimension of space
_DEPTHWISE = "depthwise_conv"
_DIRECTIONS: tuple[tuple[str, Direction], ...] = (
    ("", "forward"), ("_input_gradient", "input"), ("_filter_gradient", "filter"),
)  # fmt: skip
_DIRECTION_OF = {
    f"{prefix}{end}": direction for prefix in ("conv", _DEPTHWISE) for end, direction in _DIRECTIONS
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvFacts:
    """One convolution, in numbers that do not depend on the order of its tensors' sizes.

    Attributes:
        groups: channels are cut into so many parts, each convolved by itself.
        in_per_group: channels that each output channel reads.
        out_per_group: output channels of each group.
        window: sides of the window.
        strides: pixels between two positions of the window, by dimension of space; as the graph
            states them, or the least that the sizes allow.
        dilations: pixels between two points of the window; 1 where the graph states none.
        batch: examples.
        image: sides of the image that the convolution reads.
        output: sides of the image that it makes.
        direction: what the op computes: `forward` the result, `input` the gradient by the image (or
            the result of a transposed convolution), `filter` the gradient by the filter.
        transposed: whether it is part of a transposed convolution, where the graph says so.
        channels_last: whether the channels of one pixel lie side by side in memory.
    """

    groups: int
    in_per_group: int
    out_per_group: int
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    batch: int
    image: tuple[int, ...]
    output: tuple[int, ...]
    direction: Direction
    transposed: bool
    channels_last: bool

    @property
    def out_pixels(self) -> int:
        """Pixels that the convolution makes of one example."""
        return prod(self.output)

    @property
    def is_depthwise(self) -> bool:
        """Whether each output channel reads one channel of several."""
        return self.groups > 1 and self.in_per_group == 1


def conv_facts(op: OpSignature) -> ConvFacts | None:
    """The facts of a convolution, a depthwise one, or a gradient of either.

    Args:
        op: signature; shapes that its other shapes determine are filled in.

    Returns:
        None if the op is no convolution, or its graph does not state its shapes.
    """
    direction = _DIRECTION_OF.get(op.kind)
    if direction is None:
        return None
    op = completed(op)
    image, output, window = _image(op, direction), _made(op, direction), _window(op, direction)
    if image is None or output is None or window is None or len(image) != len(window):
        return None
    if (
        len(image) < _MIN_RANK
        or len(output) != len(image)
        or not all(n > 0 for n in (*image, *output, *window))
    ):
        return None
    inner, outer = window[-2:]
    channels = inner * (numbers_of(op, "groups") or (0,))[0]
    if op.kind.startswith(_DEPTHWISE):  # its filter is [window..., channels, out channels of each]
        channels, inner, outer = inner, 1, inner * outer
    place = _place_of_channels(op, image, output, (inner, outer), channels)
    groups = max(image[place] // inner, 1)
    sides = _without(image, place), _without(output, place)
    dilations = _by_side(op, "dilations", place) or (1,) * len(sides[0])
    strides = _by_side(op, "strides", place) or tuple(
        map(_least_stride, sides[0], sides[1], window, dilations)
    )
    return ConvFacts(
        groups=groups,
        in_per_group=inner,
        out_per_group=max(outer // groups, 1),
        window=window[:-2],
        strides=strides,
        dilations=dilations,
        batch=image[0],
        image=sides[0],
        output=sides[1],
        direction=direction,
        transposed=TRANSPOSED in op.numbers,
        channels_last=place > 1 or CHANNELS_LAST in op.numbers,
    )


def _image(op: OpSignature, direction: Direction) -> tuple[int, ...] | None:
    """What the convolution reads, or the gradient by it."""
    tensors = op.outputs if direction == "input" else op.inputs
    return tensors[0].shape if tensors else None


def _made(op: OpSignature, direction: Direction) -> tuple[int, ...] | None:
    """What the convolution makes, or the gradient by it."""
    tensors, position = (op.outputs, 0) if direction == "forward" else (op.inputs, 2)
    return tensors[position].shape if position < len(tensors) else None


def _window(op: OpSignature, direction: Direction) -> tuple[int, ...] | None:
    """The filter, or the gradient by it, as [window..., channels in, channels out]."""
    tensors, position = (op.outputs, 0) if direction == "filter" else (op.inputs, 1)
    return tensors[position].shape if position < len(tensors) else None


def _place_of_channels(
    op: OpSignature,
    image: tuple[int, ...],
    output: tuple[int, ...],
    per_filter: tuple[int, int],
    channels: int,
) -> int:
    """Position of the channels: second in PyTorch, last by default in TensorFlow.

    `channels` are those of the image, 0 if the graph does not state them; `per_filter` those that a
    filter reads, and those that all make.

    Where the sizes fit both, they say the same of either, but for the number of groups: then one
    without groups holds.
    """
    second, last = 1, len(image) - 1
    strides = numbers_of(op, "strides")
    if len(strides) == len(image):
        if strides[second] != 1:
            return last
        if strides[last] != 1:
            return second
    inner, outer = per_filter
    fits = [
        place
        for place in (second, last)
        if output[place] == outer
        and (image[place] == channels if channels else image[place] % inner == 0)
    ]
    fits = [one for one in fits if _shrinks(image, output, one)] or fits or [second]
    return min(fits, key=lambda one: image[one] != inner)


def _shrinks(image: tuple[int, ...], output: tuple[int, ...], place: int) -> bool:
    """Whether all sides become about smaller, if channels are there: padding adds few pixels."""
    sides = zip(_without(image, place), _without(output, place), strict=True)
    return all(after <= 2 * before for before, after in sides)


def _without(shape: Sequence[int], place: int) -> tuple[int, ...]:
    """The sizes of a shape's dimensions of space."""
    return tuple(size for i, size in enumerate(shape) if i not in {0, place})


def _by_side(op: OpSignature, name: str, place: int) -> tuple[int, ...]:
    """An attribute with a number for each dimension, for those of space; empty if not stated."""
    numbers = numbers_of(op, name)
    return _without(numbers, place) if len(numbers) > place else ()


def _least_stride(before: int, after: int, side: int, dilation: int) -> int:
    """The stride that makes a side of an image another; 1 if that needs no more than padding."""
    reach = (side - 1) * dilation + 1
    if after >= before - reach + 1:
        return 1
    return max(round(before / after), 1)
