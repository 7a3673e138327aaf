"""Bytes that an op reads and writes, the ops that only copy, and those that do not even that.

An op reads all its inputs once and writes all its outputs once, unless a table here says otherwise:
views move nothing, gathers read only what they pick, scatters touch only the rows of their updates.
What caches save is left to the device model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from driple.graph.cost.elementwise import RANDOM
from driple.graph.cost.shapes import UnknownShapeError, shape_out
from driple.graph.cost.sparse import SCATTER_FLOPS, SEGMENTS_BY_INDEX, picked_elements
from driple.graph.datatypes import BYTES_OF
from driple.graph.signature import OpSignature

__all__ = ["MOVES", "bytes_moved", "is_free"]

_DEFAULT_BYTES = 4


def bytes_moved(op: OpSignature) -> tuple[float, float]:
    """Bytes that one execution reads and writes; what has no shape counts nothing."""
    written = float(sum(tensor.nbytes for tensor in op.outputs))
    if op.kind in _READS_WHAT_IT_WRITES:
        return written, written
    if op.kind in _ONLY_WRITES:
        return 0.0, written
    special = _SPECIAL.get(op.kind)
    if special is not None:
        try:
            return special(op)
        except UnknownShapeError:
            pass  # as of any other op
    return float(sum(tensor.nbytes for tensor in op.inputs)), written


def is_free(kind: str) -> bool:
    """Whether an op neither computes nor moves bytes of the device's memory.

    That are names, views, control flow, handles of what lies elsewhere, what the host does (files,
    summaries), and transfers between devices, whose time the network model counts.
    """
    return kind in _FREE


def _nbytes(op: OpSignature, *positions: int) -> float:
    """Cost of reading some of the inputs."""
    return float(sum(op.inputs[i].nbytes for i in positions if i < len(op.inputs)))


def _row_bytes(op: OpSignature, elements: int, position: int) -> float:
    """Bytes of elements of the type of an input."""
    return float(elements * BYTES_OF.get(op.inputs[position].dtype, _DEFAULT_BYTES))


def _scatter(op: OpSignature) -> tuple[float, float]:
    """Variable, indices, updates: rows are changed in place."""
    return _nbytes(op, 1, 2, 2), _nbytes(op, 2)


def _scatter_update(op: OpSignature) -> tuple[float, float]:
    return _nbytes(op, 1, 2), _nbytes(op, 2)


def _assign(op: OpSignature) -> tuple[float, float]:
    """A variable behind a handle takes the value."""
    return _nbytes(op, 1), _nbytes(op, 1)


def _assign_sum(op: OpSignature) -> tuple[float, float]:
    return 2 * _nbytes(op, 1), _nbytes(op, 1)


def _segments_by_index(op: OpSignature) -> tuple[float, float]:
    """Rows that indices pick, those indices, and the segments' numbers."""
    written = float(sum(tensor.nbytes for tensor in op.outputs))
    return _row_bytes(op, picked_elements(op), 0) + _nbytes(op, 1, 2), written


def _sparse_dense(op: OpSignature) -> tuple[float, float]:
    """Indices, values, and a row of the dense matrix for each value."""
    columns = shape_out(op, 0, 2)[-1]
    if len(op.inputs) < 4:
        raise UnknownShapeError(f"{op.kind}: the dense matrix is unknown")
    rows = _row_bytes(op, op.inputs[1].elements * columns, 3)
    return _nbytes(op, 0, 1) + rows, float(op.outputs[0].nbytes)


_SPECIAL: Mapping[str, Callable[[OpSignature], tuple[float, float]]] = MappingProxyType(
    {
        # The result of `tensor_scatter` is a tensor of its own, copied as a whole.
        **{kind: _scatter for kind in SCATTER_FLOPS if kind != "tensor_scatter"},
        "scatter_write": _scatter_update,
        "assign_to_handle": _assign,
        "assign_sum_to_handle": _assign_sum,
        **dict.fromkeys(SEGMENTS_BY_INDEX, _segments_by_index),
        "sparse_dense_matmul": _sparse_dense,
    }
)

# Ops that copy: bytes, no arithmetic.
MOVES = frozenset(
    {
        "concat", "split", "slice", "slice_gradient", "slice_write", "pad", "pad_gradient",
        "transpose", "tile", "stack", "unstack", "gather", "scatter_new", "cast", "fill", "empty",
        "fill_like", "one_hot", "copy", "reverse", "stitch", "partition", "broadcast_to", "unique",
        "extract_patches", "glimpse", "assign", "assign_to_handle", "scatter_write",
        "tensor_scatter_write", "resize_nearest", "draw_boxes", "random_crop", "space_to_depth",
        "roll", "shuffle", "permutation", "diagonal", "diagonal_part", "band_part", "host_cast",
        "complex_copy", "list_read", "list_write", "sparse_copy", "sparse_slice", "set_operation",
        "string_to_number", "cudnn_rnn_weights", "table_lookup", "embedding", "nll_loss",
        "nll_loss_gradient",
    }
)  # fmt: skip
# Of their inputs they read only what they hand on.
_READS_WHAT_IT_WRITES = frozenset(
    {
        "slice", "gather", "random_crop", "glimpse", "diagonal_part", "sparse_slice", "list_read",
        "embedding", "nll_loss",
    }
)  # fmt: skip
_ONLY_WRITES = frozenset({"fill", "empty", "fill_like", "one_hot", "arange", *RANDOM})
_FREE = frozenset(
    {
        "constant", "constant_elsewhere", "placeholder", "identity", "identity_n", "debug", "view",
        "shape_of", "shape_arithmetic", "function_argument", "device_argument", "no_op", "enter",
        "exit", "merge", "switch", "switch_n", "next_iteration", "loop_condition", "host_value",
        "check", "check_inf", "variable", "variable_handle", "variable_state", "read_variable",
        "list_handle", "list_gradient", "list_reserve", "random_state", "stage", "summary",
        "print", "transfer", "send", "receive", "host_send", "all_reduce", "broadcast_parameters",
        "all_gather", "reduce_scatter", "all_to_all", "collective", "host", "queue_enqueue",
    }
)  # fmt: skip
