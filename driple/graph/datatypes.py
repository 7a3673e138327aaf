"""TensorFlow's data types: number, name, bytes of an element (its `types.proto`).

Strings, resources and variants are handles as far as a worker's device is concerned: 8 bytes.
"""

from __future__ import annotations

__all__ = ["BOOL", "BYTES_OF", "NUMBER_OF"]

_TYPES = (
    ("FLOAT", 1, 4), ("DOUBLE", 2, 8), ("INT32", 3, 4), ("UINT8", 4, 1), ("INT16", 5, 2),
    ("INT8", 6, 1), ("STRING", 7, 8), ("COMPLEX64", 8, 8), ("INT64", 9, 8), ("BOOL", 10, 1),
    ("QINT8", 11, 1), ("QUINT8", 12, 1), ("QINT32", 13, 4), ("BFLOAT16", 14, 2),
    ("QINT16", 15, 2), ("QUINT16", 16, 2), ("UINT16", 17, 2), ("COMPLEX128", 18, 16),
    ("HALF", 19, 2), ("RESOURCE", 20, 8), ("VARIANT", 21, 8), ("UINT32", 22, 4),
    ("UINT64", 23, 8), ("FLOAT8_E5M2", 24, 1), ("FLOAT8_E4M3FN", 25, 1),
    ("FLOAT8_E4M3FNUZ", 26, 1), ("FLOAT8_E4M3B11FNUZ", 27, 1), ("FLOAT8_E5M2FNUZ", 28, 1),
    ("INT4", 29, 1), ("UINT4", 30, 1), ("INT2", 31, 1), ("UINT2", 32, 1),
)  # fmt: skip
_REFERENCE = 100  # a reference to a type has its number plus this

BOOL = 10
NUMBER_OF = {f"DT_{name}": number for name, number, _ in _TYPES} | {
    f"DT_{name}_REF": number + _REFERENCE for name, number, _ in _TYPES
}
BYTES_OF = {number: size for _, number, size in _TYPES} | {
    number + _REFERENCE: size for _, number, size in _TYPES
}
