"""The values of constants, from the fields of a TensorProto.

    dtype, shape, one of int_val, float_val ... or tensor_content  ->  Constant

A tensor whose last values repeat holds them once (TensorFlow's own rule), and integers, halves and
bools each have a field of their own; `tensor_content` holds the bytes of all elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from driple.graph.datatypes import NUMBER_OF
from driple.graph.tf.raw import MAX_VALUES, Constant, Shape

__all__ = ["LONGEST_CONTENT", "VALUE_FIELDS", "constant_of"]

# Fields of a TensorProto that hold numbers, and whether they are whole.
VALUE_FIELDS = {
    "int_val": True,
    "int64_val": True,
    "float_val": False,
    "double_val": False,
    "bool_val": True,
}
_NUMPY_OF = {
    NUMBER_OF[name]: np.dtype(kind).newbyteorder("<")
    for name, kind in (
        ("DT_FLOAT", np.float32),
        ("DT_DOUBLE", np.float64),
        ("DT_HALF", np.float16),
        ("DT_INT32", np.int32),
        ("DT_INT64", np.int64),
        ("DT_INT16", np.int16),
        ("DT_INT8", np.int8),
        ("DT_UINT8", np.uint8),
        ("DT_UINT16", np.uint16),
        ("DT_UINT32", np.uint32),
        ("DT_BOOL", np.bool_),
    )
}
_FLOAT = NUMBER_OF["DT_FLOAT"]
# Types whose numbers stand in one of `VALUE_FIELDS`; others only in the content.
_LISTED = frozenset(_NUMPY_OF) - {NUMBER_OF["DT_HALF"], NUMBER_OF["DT_UINT32"]}
# Bytes of the largest content that is decoded; in text each may take four letters.
LONGEST_CONTENT = 8 * MAX_VALUES


def constant_of(
    dtype: int,
    shape: Shape,
    values: Sequence[int | float],
    content: bytes,
    *,
    is_long: bool = False,
) -> Constant:
    """The constant of a TensorProto's fields.

    Args:
        dtype: number of its data type.
        shape: its shape; None for an unknown rank.
        values: what stands in the one of `VALUE_FIELDS` that is filled.
        content: `tensor_content`; empty if there is none.
        is_long: whether there is one that is too long to be looked at.
    """
    if is_long or shape is None or any(n < 0 for n in shape) or prod(shape) > MAX_VALUES:
        return Constant(dtype, shape, None)
    num = prod(shape)
    if content:
        kind = _NUMPY_OF.get(dtype)
        if kind is None or len(content) != num * kind.itemsize:
            return Constant(dtype, shape, None)
        array = np.frombuffer(content, dtype=kind)
        flat = array.astype(np.int64) if kind.kind == "b" else array
        return Constant(dtype, shape, tuple(flat.tolist()))
    if dtype not in _LISTED or len(values) > num:
        return Constant(dtype, shape, None)
    if dtype == _FLOAT:
        values = np.asarray(values, dtype=np.float32).tolist()
    if not values:
        # TensorFlow leaves out zeros altogether.
        return Constant(dtype, shape, (0,) * num)
    return Constant(dtype, shape, (*values, *(values[-1],) * (num - len(values))))
