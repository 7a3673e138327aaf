"""ONNX's element types as numbers of TensorFlow's DataType, which signatures of ops use."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.datatypes import NUMBER_OF

__all__ = ["FLOATS", "dtype_of"]

# Numbers of onnx.TensorProto.DataType (onnx.proto3).
_NAMES: Mapping[int, str] = MappingProxyType(
    {
        1: "FLOAT", 2: "UINT8", 3: "INT8", 4: "UINT16", 5: "INT16", 6: "INT32", 7: "INT64",
        8: "STRING", 9: "BOOL", 10: "HALF", 11: "DOUBLE", 12: "UINT32", 13: "UINT64",
        14: "COMPLEX64", 15: "COMPLEX128", 16: "BFLOAT16", 17: "FLOAT8_E4M3FN",
        18: "FLOAT8_E4M3FNUZ", 19: "FLOAT8_E5M2", 20: "FLOAT8_E5M2FNUZ", 21: "UINT4", 22: "INT4",
        25: "UINT2", 26: "INT2",
    }
)  # fmt: skip
FLOATS = frozenset(NUMBER_OF[f"DT_{name}"] for name in ("FLOAT", "HALF", "DOUBLE", "BFLOAT16"))


def dtype_of(elem_type: int) -> int:
    """Number of TensorFlow's DataType of an element type of ONNX; 0 if it has none."""
    name = _NAMES.get(elem_type)
    return 0 if name is None else NUMBER_OF[f"DT_{name}"]
