"""Kernels that one op of PyTorch starts from within a library, without its own pace for an op.

    OpSignature -> kernels that it starts beside its first

A stack of recurrent layers starts two kernels for each step, layer and direction in the forward
pass and four in the backward pass; the gradient of a table sorts its indices. Counts by PyTorch's
profiler of three jobs of scripts/studies/own_jobs: 1,710 and 793 kernels of LSTMs with 256 and 128
such cells, 996 of DLRM with 26 tables.
"""

from __future__ import annotations

from math import prod

from driple.graph.cost.recurrent import cells_of
from driple.graph.cost.shapes import UnknownShapeError
from driple.graph.signature import OpSignature

__all__ = ["INNER_OPS", "cell_kernels", "inner_kernels", "runs_beside"]

INNER_OPS = 0.3
"""How many ops' time of the host such a kernel takes: 12 us beside 41 us for an op, of the same
three jobs."""
_FORWARD, _BACKWARD = 2, 4  # kernels of a cell
_GRADIENT = "_gradient"
_TABLE_GRADIENT = "embedding_gradient"
_SORTED_FROM = 3072  # indices from which on PyTorch sorts them
_OF_SORT = 30


def inner_kernels(op: OpSignature) -> float:
    """Kernels that an op starts beside its first; 0 where its shapes are not known."""
    if op.kind == _TABLE_GRADIENT:
        shape = op.inputs[1].shape if len(op.inputs) > 1 else None
        known = shape is not None and prod(shape) > _SORTED_FROM
        return float(_OF_SORT) if known else 0.0
    return cell_kernels(op)


def cell_kernels(op: OpSignature) -> float:
    """Kernels of a stack of recurrent layers, one after another; 0 of any other op."""
    try:
        cells = cells_of(op)
    except UnknownShapeError:
        return 0.0
    return float(cells * (_BACKWARD if op.kind.endswith(_GRADIENT) else _FORWARD))


def runs_beside(kind: str) -> bool:
    """Whether the time of an op's inner kernels is not in what its kind was fitted to."""
    return kind == _TABLE_GRADIENT
