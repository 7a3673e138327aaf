"""Values of small tensors that do not depend on data: sizes, axes, permutations, lengths of loops.

    Shape -> StridedSlice -> Pack -> Reshape        Const -> Sub -> Range        Fill of a size

An element that depends on an unknown dimension is None, so that [?, 299, 299, 3] still gives its
three known sizes. Nothing over `MAX_VALUES` elements is folded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from driple.graph.datatypes import BOOL, BYTES_OF, NUMBER_OF
from driple.graph.raw import MAX_VALUES, Shape
from driple.graph.shape_call import OpCall, Value, broadcast
from driple.graph.shape_rules_arrays import strided_ranges

__all__ = ["FOLDS", "fold"]

_Number = int | float | None
_LARGEST = 2**62
_FLOATS = frozenset(NUMBER_OF[f"DT_{name}"] for name in ("FLOAT", "DOUBLE", "HALF", "BFLOAT16"))

Fold = Callable[[OpCall, Sequence[Shape]], Sequence[Value | None]]
FOLDS: dict[str, Fold] = {}


def fold(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    """Values of the outputs of a node whose op type is in `FOLDS`; None where unknown."""
    return FOLDS[call.node.op](call, shapes)


def _folds(*ops: str) -> Callable[[Fold], Fold]:
    def register(function: Fold) -> Fold:
        for op in ops:
            FOLDS[op] = function
        return function

    return register


def _small(shape: Shape) -> bool:
    return shape is not None and -1 not in shape and prod(shape) <= MAX_VALUES


def _first(shapes: Sequence[Shape]) -> tuple[int, ...] | None:
    """Shape of the first output, if it is small and known."""
    shape = shapes[0] if shapes else None
    return shape if shape is not None and _small(shape) else None


def _sizes_of(shape: Shape) -> Value | None:
    if shape is None or len(shape) > MAX_VALUES:
        return None
    return (len(shape),), tuple(None if n < 0 else n for n in shape)


@_folds("Const")
def _constant(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    constant = call.node.constant
    if constant is None or constant.shape is None or constant.values is None:
        return (None,)
    return ((constant.shape, constant.values),)


@_folds("Shape", "VariableShape")
def _shape(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    if call.node.op == "VariableShape":
        holder = call.holder(0)
        return (None if holder is None else _sizes_of(holder.read()),)
    return (_sizes_of(call.shape(0)),)


@_folds("ShapeN")
def _shape_n(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return [_sizes_of(shape) for shape in call.shapes]


@_folds("Size")
def _size(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    shape = call.shape(0)
    return (None if shape is None or -1 in shape else ((), (prod(shape),)),)


@_folds("Rank")
def _rank(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    shape = call.shape(0)
    return (None if shape is None else ((), (len(shape),)),)


@_folds("TensorArraySizeV3", "TensorListLength")
def _length(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    holder = call.holder(0)
    return (None if holder is None or holder.length is None else ((), (holder.length,)),)


@_folds("TensorListElementShape")
def _element_shape(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    holder = call.holder(0)
    return (None if holder is None else _sizes_of(holder.read()),)


@_folds(
    "Identity", "StopGradient", "PreventGradient", "Snapshot", "Enter", "RefEnter", "EnsureShape",
    "PlaceholderWithDefault_", "GuaranteeConst", "Bitcast_", "LoopCond", "CheckNumerics",
)  # fmt: skip
def _identity(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return (call.value(0),)


@_folds("IdentityN")
def _identities(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return [call.value(number) for number in range(len(call.reads))]


@_folds("Switch", "RefSwitch")
def _switch(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    return (call.value(0),) * 2


@_folds("Merge")
def _merge(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    """What all branches of a condition agree on; nothing in a loop, where a value changes."""
    values = [call.value(number) for number in range(len(call.reads))]
    nodes = call.tables.nodes
    if not values or any(nodes[source].op == "NextIteration" for source, _ in call.reads):
        return (None, None)
    return (values[0] if all(value == values[0] for value in values) else None, None)


@_folds("If", "StatelessIf")
def _if(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    count = len(shapes)
    results = [call.value(number) for number in range(1, len(call.reads))]
    if call.node.functions or len(results) != 2 * count:
        return (None,) * count
    return [a if a == b else None for a, b in zip(results[:count], results[count:], strict=True)]


@_folds("While", "StatelessWhile")
def _while(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    """What a body returns in every turn: what it was given, or a constant of its own."""
    first = 1 if call.node.starts else len(call.reads)
    values = [
        call.value(number) for number in range(first, min(len(call.reads), first + len(shapes)))
    ]
    return [*values, *[None] * (len(shapes) - len(values))]


@_folds("Cast")
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


@_folds("Reshape", "Squeeze", "ExpandDims")
def _reshape(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), _first(shapes)
    if value is None or shape is None or prod(shape) != len(value[1]):
        return (None,)
    return ((shape, value[1]),)


@_folds("Pack")
def _pack(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape = _first(shapes)
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


@_folds("Unpack")
def _unpack(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, count = call.value(0), len(shapes)
    if value is None or not value[0] or value[0][0] != count or call.number("axis"):
        return (None,) * count
    each = prod(value[0][1:])
    return [(value[0][1:], value[1][i * each : (i + 1) * each]) for i in range(count)]


@_folds("Concat", "ConcatV2")
def _concat(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    """Vectors, or tensors joined along their first axis; an unknown part of known length counts."""
    shape = _first(shapes)
    numbers = list(range(len(call.reads)))
    is_old = call.node.op == "Concat"
    axis = call.scalar(0 if is_old else -1)
    numbers = numbers[1:] if is_old else numbers[:-1]
    if shape is None or not shape or axis is None or axis % len(shape):
        return (None,)
    values = [call.value(number) for number in numbers]
    if all(value is None for value in values):
        return (None,)
    result: list[_Number] = []
    for number, value in zip(numbers, values, strict=True):
        part = call.shape(number)
        if value is None and (part is None or -1 in part):
            return (None,)
        result += value[1] if value is not None else (None,) * prod(part or ())
    return ((shape, tuple(result)) if len(result) == prod(shape) else None,)


@_folds("ConcatOffset")
def _concat_offset(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    axis, sizes = call.scalar(0), [call.value(i) for i in range(1, len(call.reads))]
    if axis is None:
        return (None,) * len(shapes)
    offset: _Number = 0
    result: list[Value | None] = []
    for value in sizes:
        if value is None or not value[1]:
            return (None,) * len(shapes)
        at = axis % len(value[1])
        result.append((value[0], tuple(offset if i == at else 0 for i in range(len(value[1])))))
        size = value[1][at]
        offset = None if offset is None or size is None else offset + size
    return result


@_folds("Fill")
def _fill(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape, value = _first(shapes), call.value(1)
    if shape is None or value is None or len(value[1]) != 1:
        return (None,)
    return ((shape, value[1] * prod(shape)),)


@_folds("ZerosLike", "OnesLike")
def _like(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape = _first(shapes)
    return (None if shape is None else (shape, (int(call.node.op == "OnesLike"),) * prod(shape)),)


@_folds("Range")
def _range(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape, start, delta = _first(shapes), call.value(0), call.value(2)
    if shape is None or start is None or delta is None or not start[1] or not delta[1]:
        return (None,)
    first, step = start[1][0], delta[1][0]
    if first is None or step is None:
        return (None,)
    return ((shape, tuple(first + step * i for i in range(shape[0]))),)


@_folds("Slice")
def _slice(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, begins, shape = call.value(0), call.whole(1), _first(shapes)
    if value is None or begins is None or shape is None or len(begins) != len(value[0]):
        return (None,)
    ranges = [range(b, b + n) for b, n in zip(begins, shape, strict=True)]
    return (_picked(value, ranges, shape),)


def _picked(value: Value, ranges: Sequence[Sequence[int]], shape: tuple[int, ...]) -> Value | None:
    """The elements of a tensor at all combinations of these indices."""
    if any(not 0 <= i < n for indices, n in zip(ranges, value[0], strict=True) for i in indices):
        return None
    steps = [prod(value[0][i + 1 :]) for i in range(len(value[0]))]
    result = tuple(
        value[1][sum(i * step for i, step in zip(at, steps, strict=True))]
        for at in product(*ranges)
    )
    return (shape, result) if len(result) == prod(shape) else None


@_folds("StridedSlice")
def _strided_slice(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), _first(shapes)
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
    return (_picked(value, ranges, shape),)


@_folds("Gather", "GatherV2")
def _gather(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, indices, shape = call.value(0), call.whole(1), _first(shapes)
    axis = 0 if call.node.op == "Gather" else call.scalar(2)
    if value is None or indices is None or shape is None or axis != 0 or not value[0]:
        return (None,)
    if call.number("batch_dims"):
        return (None,)
    ranges = [indices, *(range(n) for n in value[0][1:])]
    return (_picked(value, ranges, shape),)


@_folds("Tile")
def _tile(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), _first(shapes)
    if value is None or shape is None or not all(value[0]):
        return (None,)
    ranges = [[i % n for i in range(m)] for n, m in zip(value[0], shape, strict=True)]
    return (_picked(value, ranges, shape),)


@_folds("Transpose")
def _transpose(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    value, shape = call.value(0), _first(shapes)
    if value is None or shape is None or len(shape) > 1:
        return (None,)
    return (value,)


@_folds("InvertPermutation")
def _invert(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    order = call.whole(0)
    if order is None or sorted(order) != list(range(len(order))):
        return (None,)
    result = [0] * len(order)
    for i, axis in enumerate(order):
        result[axis] = i
    return (((len(order),), tuple(result)),)


@_folds("DynamicStitch", "ParallelDynamicStitch")
def _stitch(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape, count = _first(shapes), len(call.reads) // 2
    if shape is None or len(shape) != 1:
        return (None,)
    result: list[_Number] = [None] * shape[0]
    for number in range(count):
        indices, data = call.whole(number), call.value(number + count)
        if indices is None or any(not 0 <= i < shape[0] for i in indices):
            return (None,)
        for i, at in enumerate(indices):
            result[at] = None if data is None or i >= len(data[1]) else data[1][i]
    return ((shape, tuple(result)),)


@_folds("BroadcastArgs")
def _broadcast_args(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
    shapes = [call.sizes(0), call.sizes(1)]
    return (None if None in shapes else _sizes_of(broadcast(shapes)),)


@_folds("BroadcastGradientArgs")
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


def _binary(function: Callable[[int | float, int | float], int | float]) -> Fold:
    def folded(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
        a, b, shape = call.value(0), call.value(1), _first(shapes)
        if a is None or b is None or shape is None:
            return (None,)
        left, right = _spread(a, shape), _spread(b, shape)
        if left is None or right is None:
            return (None,)
        result = tuple(
            None if x is None or y is None else _checked(function, x, y)
            for x, y in zip(left, right, strict=True)
        )
        return ((shape, result),)

    return folded


def _checked(
    function: Callable[[int | float, int | float], int | float], x: int | float, y: int | float
) -> _Number:
    """A result within the range of an int64; None if there is none."""
    try:
        result = function(x, y)
    except (ZeroDivisionError, OverflowError):
        return None
    return result if abs(result) <= _LARGEST else None


def _spread(value: Value, shape: tuple[int, ...]) -> Sequence[_Number] | None:
    """Elements of a tensor that is broadcast to a shape."""
    if value[0] == shape:
        return value[1]
    if len(value[1]) == 1:
        return value[1] * prod(shape)
    if len(value[0]) > len(shape):
        return None
    own = (1,) * (len(shape) - len(value[0])) + value[0]
    if any(n not in (1, m) for n, m in zip(own, shape, strict=True)):
        return None
    ranges = [[0] * m if n == 1 else range(n) for n, m in zip(own, shape, strict=True)]
    picked = _picked((own, value[1]), ranges, shape)
    return None if picked is None else picked[1]


def _divide(a: int | float, b: int | float) -> int | float:
    if isinstance(a, int) and isinstance(b, int):
        return a // b if a % b == 0 else a / b
    return a / b


def _truncated(a: int | float, b: int | float) -> int | float:
    """Division of C: towards zero for whole numbers."""
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return a / b


def _power(a: int | float, b: int | float) -> int | float:
    if abs(b) > 64 or abs(a) > 2**32:
        raise OverflowError
    result = a**b
    if isinstance(result, complex):
        raise OverflowError
    return float(result) if not isinstance(result, int) else result


for _op, _function in (
    ("Add", operator.add), ("AddV2", operator.add), ("Sub", operator.sub), ("Mul", operator.mul),
    ("FloorDiv", operator.floordiv), ("RealDiv", _divide), ("Div", _truncated),
    ("TruncateDiv", _truncated), ("FloorMod", operator.mod), ("Maximum", max), ("Minimum", min),
    ("Pow", _power), ("SquaredDifference", lambda a, b: (a - b) ** 2),
    ("Less", operator.lt), ("LessEqual", operator.le), ("Greater", operator.gt),
    ("GreaterEqual", operator.ge), ("Equal", operator.eq), ("NotEqual", operator.ne),
    ("LogicalAnd", lambda a, b: bool(a) and bool(b)), ("LogicalOr", lambda a, b: bool(a) or bool(b)),
):  # fmt: skip
    FOLDS[_op] = _binary(_function)


def _unary(function: Callable[[int | float], int | float]) -> Fold:
    def folded(call: OpCall, _: Sequence[Shape]) -> Sequence[Value | None]:
        value = call.value(0)
        if value is None or len(value[1]) > MAX_VALUES:
            return (None,)
        return ((value[0], tuple(None if n is None else function(n) for n in value[1])),)

    return folded


def _rounded(function: Callable[[float], int]) -> Callable[[int | float], int | float]:
    return lambda n: function(n) if math.isfinite(n) and abs(n) < _LARGEST else n


for _op, _one in (
    ("Neg", operator.neg), ("Abs", abs), ("LogicalNot", operator.not_), ("Floor", _rounded(math.floor)),
    ("Ceil", _rounded(math.ceil)), ("Square", lambda n: n * n if abs(n) < 2**31 else math.inf),
):  # fmt: skip
    FOLDS[_op] = _unary(_one)


def _reduction(function: Callable[[Sequence[int | float]], int | float]) -> Fold:
    def folded(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
        """Of a scalar or vector as a whole; an axis of a larger tensor is not folded."""
        value, shape, axes = call.value(0), _first(shapes), call.whole(1)
        if value is None or shape is None or axes is None or None in value[1]:
            return (None,)
        if not axes or not value[0]:
            return (value if shape == value[0] else None,)
        if prod(shape) != 1 or len({axis % len(value[0]) for axis in axes}) != len(value[0]):
            return (None,)
        known = [n for n in value[1] if n is not None]
        try:
            result = function(known)
        except ValueError:  # the largest of nothing
            return (None,)
        return ((shape, (result,)) if abs(result) <= _LARGEST else None,)

    return folded


for _op, _many in (
    ("Sum", sum), ("Prod", prod), ("Max", max), ("Min", min),
    ("All", lambda n: int(all(n))), ("Any", lambda n: int(any(n))),
):  # fmt: skip
    FOLDS[_op] = _reduction(_many)


@_folds("Select", "SelectV2")
def _select(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape = _first(shapes)
    values = [call.value(number) for number in range(3)]
    if shape is None or values[0] is None:
        return (None,)
    if len(values[0][1]) == 1 and values[0][1][0] is not None:
        chosen = values[1 if values[0][1][0] else 2]
        spread = None if chosen is None else _spread(chosen, shape)
        return (None if spread is None else (shape, tuple(spread)),)
    parts = [None if value is None else _spread(value, shape) for value in values]
    if None in parts:
        return (None,)
    picked = tuple(
        None if which is None else a if which else b
        for which, a, b in zip(*(part for part in parts if part is not None), strict=True)
    )
    return ((shape, picked),)
