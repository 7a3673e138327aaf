"""Values of small tensors that follow from others: the shapes that reshapes and slices are given.

op type, attributes, values of the inputs -> values of the output, a NumPy array of bounded size
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.graph.onnx.library import array_of
from driple.graph.onnx.model import MOST_VALUES

__all__ = ["fold"]

Array = npt.NDArray[Any]
Attributes = Mapping[str, Any]
# Types of onnx.TensorProto that a Cast may give; any other is not folded.
_CASTS: Mapping[int, Any] = MappingProxyType(
    {1: np.float32, 2: np.uint8, 3: np.int8, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_,
     10: np.float16, 11: np.float64, 12: np.uint32, 13: np.uint64}
)  # fmt: skip


def fold(op_type: str, attributes: Attributes, values: Sequence[Array | None]) -> Array | None:
    """The value of an op's first output; None if it is unknown or too large.

    Args:
        op_type: of ONNX.
        attributes: by name, as `onnx.helper.get_attribute_value` gives them.
        values: of the inputs; None where unknown or left out.
    """
    rule = _RULES.get(op_type)
    if rule is None or not values or values[0] is None:
        return None
    try:
        with np.errstate(all="ignore"):
            result = rule(attributes, values)
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError, MemoryError):
        return None  # an op that its own inputs contradict: inference says what is wrong with it
    return result if result is not None and result.size <= MOST_VALUES else None


def _at(values: Sequence[Array | None], position: int) -> Array | None:
    return values[position] if position < len(values) else None


def _known(values: Sequence[Array | None], count: int) -> list[Array]:
    """The first inputs, all of which must be known."""
    first = [value for value in values[:count] if value is not None]
    if len(first) < count:
        raise ValueError("a value is not known")
    return first


def _numbers(
    attributes: Attributes, values: Sequence[Array | None], name: str, at: int
) -> list[int] | None:
    """Whole numbers that are an attribute in old versions and an input in new ones."""
    given = _at(values, at)
    if given is not None:
        return [int(n) for n in given.reshape(-1)]
    if at < len(values) and name not in attributes:
        raise ValueError("a value is not known")
    return list(attributes[name]) if name in attributes else None


def _pairs(function: Callable[[Array, Array], Any]) -> Callable[[Attributes, Any], Array]:
    def rule(_: Attributes, values: Sequence[Array | None]) -> Array:
        left, right = _known(values, 2)
        return np.asarray(function(left, right))

    return rule


def _each(function: Callable[[Array], Any]) -> Callable[[Attributes, Any], Array]:
    return lambda _, values: np.asarray(function(_known(values, 1)[0]))


def _divide(left: Array, right: Array) -> Array:
    if np.issubdtype(left.dtype, np.integer):
        quotient: Array = np.trunc(left / right).astype(left.dtype)
        return quotient
    return np.asarray(left / right)


def _cast(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    kind = _CASTS.get(int(attributes["to"]))
    if kind is None:
        raise ValueError("a type that NumPy does not have")
    return _known(values, 1)[0].astype(kind)


def _gather(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    data, indices = _known(values, 2)
    return np.take(data, indices.astype(np.int64), axis=int(attributes.get("axis", 0)))


def _concat(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    parts = _known(values, len(values))
    return np.concatenate(parts, axis=int(attributes["axis"]))


def _unsqueeze(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    data, axes = _known(values, 1)[0], _numbers(attributes, values, "axes", 1)
    return np.expand_dims(data, tuple(axes or ()))


def _squeeze(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    data, axes = _known(values, 1)[0], _numbers(attributes, values, "axes", 1)
    return np.squeeze(data, None if axes is None else tuple(axes))


def _slice(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    data = _known(values, 1)[0]
    starts, ends = (
        _numbers(attributes, values, name, at) for name, at in (("starts", 1), ("ends", 2))
    )
    if starts is None or ends is None:
        raise ValueError("no bounds")
    axes = _numbers(attributes, values, "axes", 3) or list(range(len(starts)))
    steps = _numbers(attributes, values, "steps", 4) or [1] * len(starts)
    cut = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        stop = None if step < 0 and end < -data.shape[axis] else end
        cut[axis] = slice(start, stop, step)
    return data[tuple(cut)]


def _reshape(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    data, shape = _known(values, 1)[0], _numbers(attributes, values, "shape", 1)
    if shape is None:
        raise ValueError("no shape")
    if not attributes.get("allowzero", 0):
        shape = [data.shape[i] if size == 0 else size for i, size in enumerate(shape)]
    return data.reshape(shape)


def _range(_: Attributes, values: Sequence[Array | None]) -> Array:
    start, limit, delta = _known(values, 3)
    if abs(float(limit) - float(start)) > MOST_VALUES * abs(float(delta)):
        raise ValueError("too long")
    return np.arange(start.item(), limit.item(), delta.item()).astype(start.dtype)


def _expand(_: Attributes, values: Sequence[Array | None]) -> Array:
    data, shape = _known(values, 2)
    wide = np.broadcast_shapes(data.shape, tuple(int(n) for n in shape))
    if np.prod(wide, dtype=np.float64) > MOST_VALUES:
        raise ValueError("too large")
    return np.broadcast_to(data, wide)


def _filled(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    shape = tuple(int(n) for n in _known(values, 1)[0])
    if np.prod(shape, dtype=np.float64) > MOST_VALUES:
        raise ValueError("too large")
    value = attributes.get("value")
    if value is None:
        return np.zeros(shape, dtype=np.float32)
    given = array_of(value, "a fill value")
    return np.full(shape, given.reshape(-1)[0], dtype=given.dtype)


def _where(_: Attributes, values: Sequence[Array | None]) -> Array:
    return np.where(*_known(values, 3))


def _reduction(function: Callable[..., Any]) -> Callable[[Attributes, Any], Array]:
    def rule(attributes: Attributes, values: Sequence[Array | None]) -> Array:
        data, axes = _known(values, 1)[0], _numbers(attributes, values, "axes", 1)
        keep = bool(attributes.get("keepdims", 1))
        return np.asarray(function(data, axis=None if not axes else tuple(axes), keepdims=keep))

    return rule


def _transpose(attributes: Attributes, values: Sequence[Array | None]) -> Array:
    order = attributes.get("perm")
    return np.transpose(_known(values, 1)[0], None if order is None else list(order))


def _many(function: Callable[[Array, Array], Any]) -> Callable[[Attributes, Any], Array]:
    def rule(_: Attributes, values: Sequence[Array | None]) -> Array:
        parts = _known(values, len(values))
        result = parts[0]
        for part in parts[1:]:
            result = np.asarray(function(result, part))
        return result

    return rule


_Rule = Callable[[Attributes, Any], Array]
_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        "Add": _pairs(np.add), "Sub": _pairs(np.subtract), "Mul": _pairs(np.multiply),
        "Div": _pairs(_divide), "Mod": _pairs(np.mod), "Pow": _pairs(np.power),
        "Equal": _pairs(np.equal), "Less": _pairs(np.less), "Greater": _pairs(np.greater),
        "LessOrEqual": _pairs(np.less_equal), "GreaterOrEqual": _pairs(np.greater_equal),
        "And": _pairs(np.logical_and), "Or": _pairs(np.logical_or), "Xor": _pairs(np.logical_xor),
        "Not": _each(np.logical_not), "Neg": _each(np.negative), "Abs": _each(np.abs),
        "Floor": _each(np.floor), "Ceil": _each(np.ceil), "Sqrt": _each(np.sqrt),
        "Round": _each(np.round), "Identity": _each(np.asarray),
        "Min": _many(np.minimum),
        "Max": _many(np.maximum), "Sum": _many(np.add), "Cast": _cast, "Gather": _gather,
        "Concat": _concat, "Unsqueeze": _unsqueeze, "Squeeze": _squeeze, "Slice": _slice,
        "Reshape": _reshape, "Flatten": lambda a, v: _known(v, 1)[0].reshape(
            int(np.prod(_known(v, 1)[0].shape[:a.get("axis", 1)])), -1),
        "Range": _range, "Expand": _expand, "ConstantOfShape": _filled, "Where": _where,
        "ReduceSum": _reduction(np.sum), "ReduceProd": _reduction(np.prod),
        "ReduceMax": _reduction(np.max), "ReduceMin": _reduction(np.min),
        "Transpose": _transpose,
    }
)  # fmt: skip
