"""Sizes of the outputs of a node: elements and bytes, from its shapes and data types.

A node's data type comes from its attributes, since the definitions of the ops are not in the file:
lists of output types first, then single ones in the order below. Comparisons and logical ops give
booleans whatever their attributes say, and a table holds the ops whose outputs differ in type from
what they are given. Where nothing tells, an element counts 4 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from driple.errors import GraphError
from driple.graph.datatypes import BOOL, BYTES_OF
from driple.graph.tf.raw import RawNode

__all__ = ["OutputSize", "output_size", "output_types"]

_TYPE_LISTS = ("output_types", "Tout", "component_types", "Toutput_types", "dtypes", "out_types")
# From the most telling: an attribute that names the output comes before one that names an input.
_SINGLE_TYPES = (
    "DstT", "out_type", "output_type", "output_dtype", "dtype", "Tparams", "T", "element_dtype",
    "elem_type", "Tidx", "type",
)  # fmt: skip
_GIVES_BOOL = frozenset(
    {
        "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd",
        "LogicalOr", "LogicalNot", "LoopCond", "IsFinite", "IsInf", "IsNan", "All", "Any", "InTopK",
        "InTopKV2", "IsVariableInitialized", "VarIsInitializedOp",
    }
)  # fmt: skip
_FLOAT, _INT32, _INT64, _COMPLEX64, _UINT64 = 1, 3, 9, 8, 23
_T, _U, _INDICES = ("T", _FLOAT), ("U", _FLOAT), ("", _INT32)
_NORM, _COUNTS = (_T, _U), (_T, ("out_idx", _INT32))
# Type of each output: the attribute that tells it, and the type if there is none (TensorFlow leaves
# out defaults); the last one also holds for the outputs after it.
_PER_OUTPUT: dict[str, tuple[tuple[str, int], ...]] = {
    "FusedBatchNormV2": _NORM, "FusedBatchNormV3": _NORM, "_FusedBatchNormEx": _NORM,
    "FusedBatchNormGradV2": _NORM, "FusedBatchNormGradV3": _NORM, "_FusedBatchNormGradEx": _NORM,
    "ConcatOffset": (_INDICES,), "Rank": (_INDICES,), "Shape": (("out_type", _INT32),),
    "ShapeN": (("out_type", _INT32),), "Size": (("out_type", _INT32),), "Bucketize": (_INDICES,),
    "Where": (("", _INT64),), "TensorListLength": (_INDICES,),
    "TensorListElementShape": (("shape_type", _INT32),),
    "StatelessRandomGetKeyCounter": (("", _UINT64),), "StatelessRandomGetAlg": (_INDICES,),
    "StatelessRandomGetKey": (("", _UINT64),),
    "ArgMax": (("output_type", _INT64),), "ArgMin": (("output_type", _INT64),),
    "TopK": (_T, _INDICES), "TopKV2": (_T, ("index_type", _INT32)),
    "Merge": (_T, _INDICES), "RefMerge": (_T, _INDICES),
    "MaxPoolWithArgmax": (_T, ("Targmax", _INT64)),
    "Unique": _COUNTS, "UniqueV2": _COUNTS, "UniqueWithCounts": _COUNTS,
    "UniqueWithCountsV2": _COUNTS, "ListDiff": _COUNTS,
    "RandomUniformInt": (("Tout", _INT32),), "Multinomial": (("output_dtype", _INT64),),
    "Bitcast": (("type", _FLOAT),), "FFT": (("Tcomplex", _COMPLEX64),),
    "FFT2D": (("Tcomplex", _COMPLEX64),), "RFFT": (("Tcomplex", _COMPLEX64),),
    "RFFT2D": (("Tcomplex", _COMPLEX64),), "IRFFT": (("Treal", _FLOAT),),
    "IRFFT2D": (("Treal", _FLOAT),), "ComplexAbs": (("Tout", _FLOAT),),
}  # fmt: skip
# Ops without outputs; TensorFlow writes no shapes for them.
_NO_OUTPUT = frozenset({"NoOp", "ControlTrigger", "Assert", "AssignVariableOp", "SaveV2"})
_DEFAULT_BYTES = 4
_MOST = 2**62
# TensorFlow's own limit; it also bounds the product of the dimensions.
_MAX_RANK = 254


@dataclass(frozen=True, slots=True)
class OutputSize:
    """Size of all outputs of a node.

    Attributes:
        elements: elements of all outputs.
        tensor_bytes: bytes of all outputs.
        unknown_dimensions: dimensions that were not known and count as 1.
        has_shape: whether the rank of at least one output is known, or it has no output.
        has_type: whether an attribute or the op gives the data type.
    """

    elements: int
    tensor_bytes: int
    unknown_dimensions: int
    has_shape: bool
    has_type: bool


def output_size(node: RawNode) -> OutputSize:
    """Elements and bytes of all outputs of a node.

    Raises:
        GraphError: a size beyond 64 bits, or a dimension below -1.
    """
    if node.shapes is None:
        return OutputSize(0, 0, 0, has_shape=node.op in _NO_OUTPUT, has_type=True)
    types = output_types(node)
    elements = total = unknown = 0
    for shape, kind in zip(node.shapes, types, strict=True):
        if shape is None:
            continue
        if len(shape) > _MAX_RANK or any(size < -1 for size in shape):
            raise GraphError(
                f"node '{node.name}' has an output of shape {str(list(shape[:9]))[:80]}, rank "
                f"{len(shape)}; the file is corrupt"
            )
        unknown += shape.count(-1)
        count = prod(1 if size == -1 else size for size in shape)
        elements += count
        total += count * BYTES_OF.get(kind, _DEFAULT_BYTES)
    if total > _MOST:
        raise GraphError(f"node '{node.name}' has outputs of {total} bytes; the file is corrupt")
    return OutputSize(
        elements,
        total,
        unknown,
        has_shape=not node.shapes or any(shape is not None for shape in node.shapes),
        has_type=not elements or types[0] in BYTES_OF,
    )


def output_types(node: RawNode) -> tuple[int, ...]:
    """Data type of each output that has a shape; 0 if unknown."""
    num_outputs = len(node.shapes or ())
    listed = _listed_types(node)[:num_outputs]
    if len(listed) == num_outputs:
        return listed
    return (*listed, *(_single_type(node),) * (num_outputs - len(listed)))


def _listed_types(node: RawNode) -> tuple[int, ...]:
    """Data type of each output, where the op or a list says so; IdentityN has it in `T`."""
    if node.op in _PER_OUTPUT:
        rules = _PER_OUTPUT[node.op]
        stated = [node.types[key][0] if key in node.types else kind for key, kind in rules]
        return (*stated, *stated[-1:] * (len(node.shapes or ()) - len(stated)))
    listed = next((node.types[key] for key in _TYPE_LISTS if key in node.types), ())
    per_output = node.types.get("T", ())
    if not listed and len(per_output) > 1 and len(per_output) == len(node.shapes or ()):
        return per_output
    return listed


def _single_type(node: RawNode) -> int:
    """Data type of every output; 0 if unknown."""
    if node.op in _GIVES_BOOL:
        return BOOL
    return next((node.types[key][0] for key in _SINGLE_TYPES if key in node.types), 0)
