"""Windows that slide over images: where axes are, and how many positions a window has."""

from __future__ import annotations

from collections.abc import Sequence

from driple.graph.tf.shape_call import OpCall

__all__ = ["Layout", "axis_of", "window"]


class Layout:
    """Positions of batch, channels and spatial axes of an activation."""

    __slots__ = ("channel", "spatial")

    def __init__(self, call: OpCall, num_spatial: int) -> None:
        is_first = call.text("data_format", "N").startswith("NC")
        self.channel = 1 if is_first else num_spatial + 1
        first = 2 if is_first else 1
        self.spatial = tuple(range(first, first + num_spatial))

    def shape(self, batch: int, spatial: Sequence[int], channels: int) -> tuple[int, ...]:
        """A shape of that layout."""
        if self.channel == 1:
            return (batch, channels, *spatial)
        return (batch, *spatial, channels)


def window(
    call: OpCall, axis: int, size: int, *, kernel: int, stride: int, dilation: int = 1
) -> int:
    """Positions of a window along an axis of an image; -1 if unknown.

    Args:
        call: a node with the attributes `padding` and `explicit_paddings`.
        axis: number of the axis.
        size: size of the image along it, -1 if unknown.
        kernel: size of the window, -1 if unknown.
        stride: elements between two positions.
        dilation: elements between two elements of the window.
    """
    padding = call.text("padding", "VALID")
    if size < 0 or stride < 1:
        return -1
    if padding == "SAME":
        return -(-size // stride)
    if kernel < 0:
        return -1
    around = 0
    if padding == "EXPLICIT":
        explicit = call.numbers("explicit_paddings")
        around = sum(explicit[2 * axis : 2 * axis + 2])
    return max(0, (size + around - ((kernel - 1) * max(dilation, 1) + 1)) // stride + 1)


def axis_of(values: Sequence[int], axis: int) -> int:
    """The entry of a list attribute for an axis; 1 where the list is shorter."""
    return values[axis] if axis < len(values) else 1
