"""Shapes of an op that its other shapes determine: what the graph leaves out of one of them.

    OpSignature with unknown dimensions --completed--> the same op, with fewer of them

The reader infers shapes along the graph; this holds for any signature, also of stored graphs. A
convolution's gradient by its input, if its output is unknown, has the batch of the gradient that it
reads, the channels of its filter and, with strides, about that gradient's height and width times
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from types import MappingProxyType

from driple.graph.cost.elementwise import SAME_SHAPE
from driple.graph.cost.shapes import numbers_of
from driple.graph.signature import OpSignature, Tensor

__all__ = ["completed"]

_Shape = tuple[int, ...] | None
_UNKNOWN = -1
_MIN_RANK = 3  # of a convolution's image: batch, channels, one dimension of space


def completed(op: OpSignature) -> OpSignature:
    """The op with the unknown dimensions filled in that its other inputs and outputs determine."""
    if op.outputs and not any(_is_open(tensor.shape) for tensor in (*op.inputs, *op.outputs)):
        return op
    rule = _RULES.get(op.kind)
    return op if rule is None else rule(op)


def _is_open(shape: _Shape) -> bool:
    return shape is None or _UNKNOWN in shape


def _shape(tensors: Sequence[Tensor], position: int) -> _Shape:
    return tensors[position].shape if position < len(tensors) else None


def _merged(first: _Shape, second: _Shape) -> _Shape:
    """Shape as far as either is known; the first holds where they differ."""
    if first is None or second is None:
        return second if first is None else first
    if len(first) != len(second):
        return first
    return tuple(b if a == _UNKNOWN else a for a, b in zip(first, second, strict=True))


def _with_input(op: OpSignature, position: int, shape: _Shape) -> OpSignature:
    tensors = _replaced(op.inputs, position, shape)
    return op if tensors is op.inputs else replace(op, inputs=tensors)


def _with_output(op: OpSignature, shape: _Shape) -> OpSignature:
    tensors = _replaced(op.outputs, 0, shape)
    return op if tensors is op.outputs else replace(op, outputs=tensors)


def _with_an_output(op: OpSignature) -> OpSignature:
    """The op with an output, of the second input's type, where the graph states none at all."""
    if op.outputs or len(op.inputs) < 2:
        return op
    return replace(op, outputs=(Tensor(None, op.inputs[1].dtype),))


def _replaced(tensors: tuple[Tensor, ...], position: int, shape: _Shape) -> tuple[Tensor, ...]:
    if position >= len(tensors) or not _is_open(tensors[position].shape):
        return tensors
    known = _merged(tensors[position].shape, shape)
    replaced = replace(tensors[position], shape=known)
    return (*tensors[:position], replaced, *tensors[position + 1 :])


# Element-wise ops.


def _broadcast(op: OpSignature) -> OpSignature:
    """The output has the larger of all inputs' sizes in each dimension."""
    shapes = [tensor.shape for tensor in op.inputs]
    ranks = [len(shape) for shape in shapes if shape is not None]
    if len(ranks) < len(shapes) or not ranks:
        return op
    rank = max(ranks)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes if shape is not None]
    sizes = zip(*padded, strict=True)
    return _with_output(op, tuple(max(size, key=_breadth) for size in sizes))


def _breadth(size: int) -> tuple[bool, bool, int]:
    """Order of sizes in a broadcast dimension: known ones over 1, unknown, 1."""
    return (size > 1 or size == 0, size == _UNKNOWN, size)


def _as_input(position: int) -> Callable[[OpSignature], OpSignature]:
    """The output has the shape of one of the inputs, and that input the shape of the output."""

    def rule(op: OpSignature) -> OpSignature:
        forward = _with_output(op, _shape(op.inputs, position))
        return _with_input(forward, position, _shape(forward.outputs, 0))

    return rule


# Convolutions.


def _conv(op: OpSignature) -> OpSignature:
    op = _with_an_output(op)
    op = _with_output(op, _made(_shape(op.inputs, 0), _shape(op.inputs, 1), op))
    return _with_input(op, 0, _image(_shape(op.outputs, 0), _shape(op.inputs, 1), op))


def _conv_input_gradient(op: OpSignature) -> OpSignature:
    op = _with_an_output(op)
    if len(_shape(op.inputs, 0) or ()) > 1:  # the first versions are given images, not their sizes
        op = _with_output(op, _shape(op.inputs, 0))
    op = _with_output(op, _image(_shape(op.inputs, 2), _shape(op.inputs, 1), op))
    return _with_input(op, 2, _made(_shape(op.outputs, 0), _shape(op.inputs, 1), op))


def _conv_filter_gradient(op: OpSignature) -> OpSignature:
    op = _with_an_output(op)
    if len(_shape(op.inputs, 1) or ()) > 1:
        op = _with_output(op, _shape(op.inputs, 1))
    window = _shape(op.outputs, 0)
    op = _with_input(op, 2, _made(_shape(op.inputs, 0), window, op))
    return _with_input(op, 0, _image(_shape(op.inputs, 2), window, op))


def _made(image: _Shape, window: _Shape, op: OpSignature) -> _Shape:
    """Known part of a convolution's output: batch, channels, and size of the input / strides."""
    return _other_side(image, window, op, to_image=False)


def _image(output: _Shape, window: _Shape, op: OpSignature) -> _Shape:
    """Known part of a convolution's input: batch, channels, and size of the output x strides."""
    return _other_side(output, window, op, to_image=True)


def _other_side(given: _Shape, window: _Shape, op: OpSignature, *, to_image: bool) -> _Shape:
    """The image of a convolution from what it makes, or the other way round.

    Sizes are those of padding `SAME`: a signature does not hold the padding, and without one they
    differ by less than a window.
    """
    if given is None or window is None or len(given) != len(window) or len(given) < _MIN_RANK:
        return None
    inner, outer = window[-2:]
    if op.kind.startswith("depthwise") and _UNKNOWN not in (inner, outer):
        outer = inner * outer
    here, there = (outer, inner) if to_image else (inner, outer)
    strides = numbers_of(op, "strides") or (1,) * len(given)
    if len(strides) != len(given) or 0 in strides:
        return None
    channels = _channels(given, here, strides)
    if channels is None:
        return (given[0], *(_UNKNOWN,) * (len(given) - 1))
    sizes = [
        size if size == _UNKNOWN else size * stride if to_image else ceil(size / stride)
        for size, stride in zip(given, strides, strict=True)
    ]
    sizes[channels] = there
    return tuple(sizes)


def _channels(given: tuple[int, ...], size: int, strides: tuple[int, ...]) -> int | None:
    """Position of the channels, last or second; None if it is unknown which of the two."""
    last, second = len(given) - 1, 1
    if strides[last] != 1:
        return second
    if strides[second] != 1:
        return last
    fits = [position for position in (last, second) if given[position] == size != _UNKNOWN]
    if len(fits) == 1 or (fits and given[second] == given[last]):
        return fits[0]
    return None


# Products.


def _matmul(op: OpSignature) -> OpSignature:
    """[..., m, k] x [..., k, n]; factors may be turned (`transpose_a`, `adj_x`, and so on)."""
    op = _with_an_output(op)
    left, right, output = _shape(op.inputs, 0), _shape(op.inputs, 1), _shape(op.outputs, 0)
    by_left, by_right = (
        _is_turned(op, "transpose_a", "adj_x"),
        _is_turned(op, "transpose_b", "adj_y"),
    )
    m = _side(left, by_left), _size(output, -2)
    k = _side(left, not by_left), _side(right, by_right)
    n = _side(right, not by_right), _size(output, -1)
    rows, inner, columns = (max(pair) for pair in (m, k, n))
    batch = _batch_of(left, right, output)
    if batch is not None:
        op = _with_output(op, (*batch, rows, columns))
    if inner == _UNKNOWN and (left is None or right is None):
        return op  # a factor of unknown rank stays so, rather than count 1 for its inner side
    own = left[:-2] if left is not None else batch
    if own is not None:
        op = _with_input(op, 0, (*own, *((inner, rows) if by_left else (rows, inner))))
    own = right[:-2] if right is not None else batch
    if own is not None:
        op = _with_input(op, 1, (*own, *((columns, inner) if by_right else (inner, columns))))
    return op


def _is_turned(op: OpSignature, *names: str) -> bool:
    return any(any(numbers_of(op, name)) for name in names)


def _size(shape: _Shape, position: int) -> int:
    return shape[position] if shape is not None and len(shape) >= 2 else _UNKNOWN


def _side(shape: _Shape, last: bool) -> int:
    return _size(shape, -1 if last else -2)


def _batch_of(left: _Shape, right: _Shape, output: _Shape) -> _Shape:
    """The dimensions of a product before its last two; None if their number is unknown."""
    if output is not None and _UNKNOWN not in output[:-2]:
        return output[:-2]
    known = [shape[:-2] for shape in (left, right) if shape is not None]
    if output is not None:
        known = [shape for shape in known if len(shape) == len(output) - 2]
    if not known:
        return None if output is None else output[:-2]
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(max(size, key=_breadth) for size in zip(*padded, strict=True))


_Rule = Callable[[OpSignature], OpSignature]
_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        **dict.fromkeys(SAME_SHAPE, _broadcast),
        **dict.fromkeys(
            (
                "bias_add",
                "batch_norm",
                "batch_norm_gradient",
                "max_pool_gradient",
                "dropout",
                "local_response_norm",
            ),
            _as_input(0),
        ),
        **dict.fromkeys(("select", "fake_quantize_range_gradient"), _as_input(1)),
        **dict.fromkeys(("conv", "depthwise_conv"), _conv),
        **dict.fromkeys(
            ("conv_input_gradient", "depthwise_conv_input_gradient"), _conv_input_gradient
        ),
        **dict.fromkeys(
            ("conv_filter_gradient", "depthwise_conv_filter_gradient"), _conv_filter_gradient
        ),
        **dict.fromkeys(("matmul", "batch_matmul"), _matmul),
    }
)
