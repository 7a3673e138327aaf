"""Folding of arithmetic, comparisons and reductions over small tensors."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from math import prod

from driple.graph.tf.folding import FOLDS, Fold, Number, first_shape, folds, picked
from driple.graph.tf.raw import MAX_VALUES, Shape
from driple.graph.tf.shape_call import OpCall, Value

__all__: list[str] = []

_LARGEST = 2**62


def _binary(function: Callable[[int | float, int | float], int | float]) -> Fold:
    def folded(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
        a, b, shape = call.value(0), call.value(1), first_shape(shapes)
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
) -> Number:
    """A result within the range of an int64; None if there is none."""
    try:
        result = function(x, y)
    except (ZeroDivisionError, OverflowError):
        return None
    return result if abs(result) <= _LARGEST else None


def _spread(value: Value, shape: tuple[int, ...]) -> Sequence[Number] | None:
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
    result = picked((own, value[1]), ranges, shape)
    return None if result is None else result[1]


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
    ("LogicalAnd", lambda a, b: bool(a) and bool(b)),
    ("LogicalOr", lambda a, b: bool(a) or bool(b)),
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
    ("Neg", operator.neg), ("Abs", abs), ("LogicalNot", operator.not_),
    ("Floor", _rounded(math.floor)),
    ("Ceil", _rounded(math.ceil)), ("Square", lambda n: n * n if abs(n) < 2**31 else math.inf),
):  # fmt: skip
    FOLDS[_op] = _unary(_one)


def _reduction(function: Callable[[Sequence[int | float]], int | float]) -> Fold:
    def folded(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
        """Fold a scalar or vector as a whole; an axis of a larger tensor is not folded."""
        value, shape, axes = call.value(0), first_shape(shapes), call.whole(1)
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


@folds("Select", "SelectV2")
def _select(call: OpCall, shapes: Sequence[Shape]) -> Sequence[Value | None]:
    shape = first_shape(shapes)
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
