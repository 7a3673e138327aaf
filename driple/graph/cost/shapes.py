"""Sizes of an op's inputs and outputs, as the formulas of costs ask for them.

A formula that needs a shape which the graph does not state raises `UnknownShapeError`: it never
goes on with a zero. A dimension of unknown size counts as 1; the reader reports those.
"""

from __future__ import annotations

from collections.abc import Callable

from driple.errors import GraphError
from driple.graph.signature import OpSignature, Tensor

__all__ = [
    "ALL",
    "LAST",
    "Formula",
    "UnknownShapeError",
    "elements_in",
    "elements_out",
    "numbers_of",
    "shape_in",
    "shape_out",
    "text_of",
]

# Floating-point operations of one execution of an op.
Formula = Callable[[OpSignature], float]

ALL, LAST = slice(None), slice(-1, None)  # dimensions that must be known


class UnknownShapeError(GraphError):
    """An op's cost depends on a shape or attribute that the graph does not state."""


def shape_in(
    op: OpSignature, position: int, min_rank: int = 0, known: slice | None = None
) -> tuple[int, ...]:
    """Shape of an input.

    Args:
        op: the op.
        position: position of the input.
        min_rank: dimensions that it must have.
        known: dimensions whose size must be known; of all others, an unknown one counts as 1.

    Raises:
        UnknownShapeError: no such input, no shape, fewer dimensions, or one of those unknown.
    """
    return _shape(op, op.inputs, position, min_rank, known)


def shape_out(
    op: OpSignature, position: int = 0, min_rank: int = 0, known: slice | None = None
) -> tuple[int, ...]:
    """Shape of an output; arguments and errors as for `shape_in`."""
    return _shape(op, op.outputs, position, min_rank, known)


def elements_in(op: OpSignature, position: int) -> int:
    """Elements of an input.

    Raises:
        UnknownShapeError: no such input, or no shape.
    """
    return _elements(op, op.inputs, position)


def elements_out(op: OpSignature, position: int = 0) -> int:
    """Elements of an output.

    Raises:
        UnknownShapeError: no such output, or no shape.
    """
    return _elements(op, op.outputs, position)


def numbers_of(op: OpSignature, name: str) -> tuple[int, ...]:
    """A whole-number attribute; empty if the graph does not state it."""
    return next((values for key, values in op.numbers if key == name), ())


def text_of(op: OpSignature, name: str) -> str:
    """A text attribute, kept as numbers of letters; empty if the graph does not state it."""
    return "".join(map(chr, numbers_of(op, name)))


def _shape(
    op: OpSignature,
    tensors: tuple[Tensor, ...],
    position: int,
    min_rank: int,
    known: slice | None,
) -> tuple[int, ...]:
    shape = tensors[position].shape if position < len(tensors) else None
    if shape is None or len(shape) < min_rank or (known is not None and -1 in shape[known]):
        raise UnknownShapeError(f"{op.kind}: shape {position} is unknown")
    return tuple(1 if size == -1 else size for size in shape)


def _elements(op: OpSignature, tensors: tuple[Tensor, ...], position: int) -> int:
    if position >= len(tensors) or tensors[position].shape is None:
        raise UnknownShapeError(f"{op.kind}: shape {position} is unknown")
    return tensors[position].elements
