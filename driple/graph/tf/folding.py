"""Values of small tensors that do not depend on data: sizes, axes, permutations, lengths of loops.

    Shape -> StridedSlice -> Pack -> Reshape        Const -> Sub -> Range        Fill of a size

An element that depends on an unknown dimension is None, so that [?, 299, 299, 3] still gives its
three known sizes. Nothing over `MAX_VALUES` elements is folded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from driple.graph.datatypes import BOOL, BYTES_OF, NUMBER_OF
from driple.graph.tf.raw import MAX_VALUES, Shape
from driple.graph.tf.shape_call import OpCall, Value, broadcast
from driple.graph.tf.shape_rules_arrays import strided_ranges

__all__ = ["FOLDS", "Fold", "Number", "first_shape", "fold", "folds", "picked"]

Number = int | float | None
_FLOATS = frozenset(NUMBER_OF[f"DT_{name}"] for name in ("FLOAT", "DOUBLE", "HALF", "BFLOAT16"))

Fold = Callable[[OpCall, Sequence[Shape]], Sequence[Value | None]]
FOLDS: dict[str, Fold] = {}


def fold(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    """Values of the outputs of a node whose op type is in `FOLDS`; None where unknown."""
    return FOLDS[call.node.op](call, shapes)


def folds(*ops: str) -> Callable[[Fold], Fold]:
    """Register a folding for op types."""

    def register(function: Fold) -> Fold:
        for op in ops:
            FOLDS[op] = function
        return function

    return register


def _small(shape: Shape) -> bool:
    return shape is not None and -1 not in shape and prod(shape) <= MAX_VALUES


def first_shape(shapes: Sequence[Shape]) -> tuple[int, ...] | None:
    """Shape of the first output, if it is small and known."""
    shape = shapes[0] if shapes else None
    return shape if shape is not None and _small(shape) else None


def _sizes_of(shape: Shape) -> Value | None:
    if shape is None or len(shape) > MAX_VALUES:
        return None
    return (len(shape),), tuple(None if n < 0 else n for n in shape)


@folds("Const")
def _constant(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    constant = call.node.constant
    if constant is None or constant.shape is None or constant.values is None:
        return (None,)
    return ((constant.shape, constant.values),)


@folds("Shape", "VariableShape")
def _shape(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    if call.node.op == "VariableShape":
        holder = call.holder(0)
        return (None if holder is None else _sizes_of(holder.read()),)
    return (_sizes_of(call.shape(0)),)


@folds("ShapeN")
def _shape_n(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return [_sizes_of(shape) for shape in call.shapes]


@folds("Size")
def _size(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    shape = call.shape(0)
    return (None if shape is None or -1 in shape else ((), (prod(shape),)),)


@folds("Rank")
def _rank(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    shape = call.shape(0)
    return (None if shape is None else ((), (len(shape),)),)


@folds("TensorArraySizeV3", "TensorListLength")
def _length(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    holder = call.holder(0)
    return (None if holder is None or holder.length is None else ((), (holder.length,)),)


@folds("TensorListElementShape")
def _element_shape(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    holder = call.holder(0)
    return (None if holder is None else _sizes_of(holder.read()),)


@folds("TensorListPopBack", "StackPopV2", "StackPop")
def _popped(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    """Value that a forward loop stored in every turn, such as the shape of an operand."""
    holder = call.holder(0)
    value = None if holder is None else holder.value
    return (None, value) if call.node.op == "TensorListPopBack" else (value,)


@folds(
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "Enter", "RefEnter", "EnsureShape",
    "PlaceholderWithDefault_", "GuaranteeConst", "Bitcast_", "LoopCond", "CheckNumerics",
)  # fmt: skip
def _identity(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return (call.value(0),)


@folds("IdentityN")
def _identities(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return [call.value(number) for number in range(len(call.reads))]


@folds("Switch", "RefSwitch")
def _switch(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return (call.value(0),) * 2


@folds("Merge")
def _merge(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    """Values that all branches of a condition agree on; none in a loop, where a value changes."""
    values = [call.value(number) for number in range(len(call.reads))]
    nodes = call.tables.nodes
    if not values or any(nodes[source].op == "NextIteration" for source, _ in call.reads):
        return (None, None)
    return (values[0] if all(value == values[0] for value in values) else None, None)


@folds("If", "StatelessIf")
def _if(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    count = len(shapes)
    results = [call.value(number) for number in range(1, len(call.reads))]
    if call.node.functions or len(results) != 2 * count:
        return (None,) * count
    return [a if a == b else None for a, b in zip(results[:count], results[count:], strict=True)]


@folds("While", "StatelessWhile")
def _while(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    """Value that a body returns in every turn: its argument, or a constant of its own."""
    first = 1 if call.node.starts else len(call.reads)
    values = [
        call.value(number) for number in range(first, min(len(call.reads), first + len(shapes)))
    ]
    return [*values, *[None] * (len(shapes) - len(values))]


@folds("Cast")
def _cast(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    value = call.value(0)
    kind = call.node.types.get("DstT", (0,))[0]
    if value is None or kind not in BYTES_OF:
        return (None,)
    if kind == BOOL:
        return ((value[0], tuple(None if n is None else int(bool(n)) for n in value[1])),)
    if kind in _FLOATS:
        return (value,)
    return (
        (value[0], tuple(None if n is None or not math.isfinite(n) else int(n) for n in value[1])),
    )


@folds("Reshape", "Squeeze", "ExpandDims")
def _reshape(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), first_shape(shapes)
    if value is None or shape is None or prod(shape) != len(value[1]):
        return (None,)
    return ((shape, value[1]),)


@folds("Pack")
def _pack(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape = first_shape(shapes)
    if shape is None:
        return (None,)
    values = [call.value(number) for number in range(len(call.reads))]
    if all(value is None for value in values) or call.number("axis") not in (0, -len(shape)):
        return (None,)
    each = prod(shape[1:])
    parts = [(None,) * each if value is None else value[1] for value in values]
    if any(len(part) != each for part in parts):
        return (None,)
    return ((shape, tuple(n for part in parts for n in part)),)


@folds("Unpack")
def _unpack(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, count = call.value(0), len(shapes)
    if value is None or not value[0] or value[0][0] != count or call.number("axis"):
        return (None,) * count
    each = prod(value[0][1:])
    return [(value[0][1:], value[1][i * each : (i + 1) * each]) for i in range(count)]


@folds("Concat", "ConcatV2")
def _concat(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    """Vectors, or tensors joined along their first axis; an unknown part of known length counts."""
    shape = first_shape(shapes)
    numbers = list(range(len(call.reads)))
    is_old = call.node.op == "Concat"
    axis = call.scalar(0 if is_old else -1)
    numbers = numbers[1:] if is_old else numbers[:-1]
    if shape is None or not shape or axis is None or axis % len(shape):
        return (None,)
    values = [call.value(number) for number in numbers]
    if all(value is None for value in values):
        return (None,)
    result: list[Number] = []
    for number, value in zip(numbers, values, strict=True):
        part = call.shape(number)
        if value is None and (part is None or -1 in part):
            return (None,)
        result += value[1] if value is not None else (None,) * prod(part or ())
    return ((shape, tuple(result)) if len(result) == prod(shape) else None,)


@folds("ConcatOffset")
def _concat_offset(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    axis, sizes = call.scalar(0), [call.value(i) for i in range(1, len(call.reads))]
    if axis is None:
        return (None,) * len(shapes)
    offset: Number = 0
    result: list[Value | None] = []
    for value in sizes:
        if value is None or not value[1]:
            return (None,) * len(shapes)
        at = axis % len(value[1])
        result.append((value[0], tuple(offset if i == at else 0 for i in range(len(value[1])))))
        size = value[1][at]
        offset = None if offset is None or size is None else offset + size
    return result


@folds("Fill")
def _fill(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape, value = first_shape(shapes), call.value(1)
    if shape is None or value is None or len(value[1]) != 1:
        return (None,)
    return ((shape, value[1] * prod(shape)),)


@folds("ZerosLike", "OnesLike")
def _like(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape = first_shape(shapes)
    return (None if shape is None else (shape, (int(call.node.op == "OnesLike"),) * prod(shape)),)


@folds("Range")
def _range(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape, start, delta = first_shape(shapes), call.value(0), call.value(2)
    if shape is None or start is None or delta is None or not start[1] or not delta[1]:
        return (None,)
    first, step = start[1][0], delta[1][0]
    if first is None or step is None:
        return (None,)
    return ((shape, tuple(first + step * i for i in range(shape[0]))),)


@folds("Slice")
def _slice(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, begins, shape = call.value(0), call.whole(1), first_shape(shapes)
    if value is None or begins is None or shape is None or len(begins) != len(value[0]):
        return (None,)
    ranges = [range(b, b + n) for b, n in zip(begins, shape, strict=True)]
    return (picked(value, ranges, shape),)


def picked(value: Value, ranges: Sequence[Sequence[int]], shape: tuple[int, ...]) -> Value | None:
    """The elements of a tensor at all combinations of these indices."""
    if len(ranges) != len(value[0]) or prod(map(len, ranges)) != prod(shape):
        return None
    if any(not 0 <= i < n for indices, n in zip(ranges, value[0], strict=True) for i in indices):
        return None
    steps = [prod(value[0][i + 1 :]) for i in range(len(value[0]))]
    result = tuple(
        value[1][sum(i * step for i, step in zip(at, steps, strict=True))]
        for at in product(*ranges)
    )
    return shape, result


@folds("StridedSlice")
def _strided_slice(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), first_shape(shapes)
    taken = None if value is None else strided_ranges(call, value[0])
    if value is None or shape is None or taken is None or call.whole(3) is None:
        return (None,)
    ranges: list[Sequence[int]] = []
    for axis, begin, end, step in taken:
        if axis < 0:
            continue
        if begin is None or end is None:
            return (None,)
        ranges.append(range(begin, end, step) if step else (begin,))
    return (picked(value, ranges, shape),)


@folds("Gather", "GatherV2")
def _gather(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, indices, shape = call.value(0), call.whole(1), first_shape(shapes)
    axis = 0 if call.node.op == "Gather" else call.scalar(2)
    if value is None or indices is None or shape is None or axis != 0 or not value[0]:
        return (None,)
    if call.number("batch_dims"):
        return (None,)
    ranges = [indices, *(range(n) for n in value[0][1:])]
    return (picked(value, ranges, shape),)


@folds("Tile")
def _tile(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), first_shape(shapes)
    if value is None or shape is None or not all(value[0]) or len(shape) != len(value[0]):
        return (None,)
    ranges = [[i % n for i in range(m)] for n, m in zip(value[0], shape, strict=True)]
    return (picked(value, ranges, shape),)


@folds("Transpose")
def _transpose(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), first_shape(shapes)
    if value is None or shape is None or len(shape) > 1:
        return (None,)
    return (value,)


@folds("InvertPermutation")
def _invert(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    order = call.whole(0)
    if order is None or sorted(order) != list(range(len(order))):
        return (None,)
    result = [0] * len(order)
    for i, axis in enumerate(order):
        result[axis] = i
    return (((len(order),), tuple(result)),)


@folds("DynamicStitch", "ParallelDynamicStitch")
def _stitch(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape, count = first_shape(shapes), len(call.reads) // 2
    if shape is None or len(shape) != 1:
        return (None,)
    result: list[Number] = [None] * shape[0]
    for number in range(count):
        indices, data = call.whole(number), call.value(number + count)
        if indices is None or any(not 0 <= i < shape[0] for i in indices):
            return (None,)
        for i, at in enumerate(indices):
            result[at] = None if data is None or i >= len(data[1]) else data[1][i]
    return ((shape, tuple(result)),)


@folds("BroadcastArgs")
def _broadcast_args(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    shapes = [call.sizes(0), call.sizes(1)]
    return (None if None in shapes else _sizes_of(broadcast(shapes)),)


@folds("BroadcastGradientArgs")
def _gradient_args(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    """The axes over which the gradients of two broadcast tensors are summed."""
    a, b = call.value(0), call.value(1)
    if a is None or b is None:
        return (None, None)
    if a == b:
        return (((0,), ()),) * 2
    rank = max(len(a[1]), len(b[1]))
    left = (1,) * (rank - len(a[1])) + a[1]
    right = (1,) * (rank - len(b[1])) + b[1]
    if None in left or None in right:
        return (None, None)
    # An axis where both are 1 is summed in both, as TensorFlow does.
    axes = [tuple(i for i in range(rank) if side[i] == 1) for side in (left, right)]
    return [((len(each),), each) for each in axes]
