"""Products: the matrix product [m, k] x [k, n] that an op comes to, and its sides.

OpSignature, FLOPs --product_of--> Product; a convolution's left factor is its matrix of patches
(im2col), which is written out or read again and again, whichever library computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from driple.graph.cost.attention import ATTENTIONS, scores_of
from driple.graph.cost.complete import completed
from driple.graph.cost.einsum import index_sizes, indices_of
from driple.graph.cost.recurrent import RECURRENT, sides_of_step
from driple.graph.cost.shapes import UnknownShapeError
from driple.graph.signature import OpSignature

__all__ = [
    "CONVOLUTIONS",
    "FILTER_GRADIENTS",
    "INPUT_GRADIENTS",
    "Product",
    "product_of",
    "window_of",
]

CONVOLUTIONS = frozenset({"conv"})
INPUT_GRADIENTS = frozenset({"conv_input_gradient"})
FILTER_GRADIENTS = frozenset({"conv_filter_gradient"})
_ALL_CONVOLUTIONS = CONVOLUTIONS | INPUT_GRADIENTS | FILTER_GRADIENTS
_MATMULS = frozenset({"matmul", "batch_matmul"})
_FILTER_RANKS = (3, 4, 5)  # one to three dimensions of space, channels in and out


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product: `count` times [m, k] x [k, n]."""

    m: float
    n: float
    k: float
    count: float = 1.0

    @property
    def left_elements(self) -> float:
        """Elements of the left factors; of a convolution, those of its patches."""
        return self.m * self.k * self.count


def product_of(op: OpSignature, flops: float) -> Product | None:
    """The matrix product that an op comes to; None if it is none, or its shapes are unknown.

    Args:
        op: what it computes on.
        flops: its floating-point operations, 2 m n k.
    """
    if flops <= 0 or not op.outputs:
        return None
    if op.kind == "einsum":
        return _einsum(op)
    if op.kind in RECURRENT:
        return _recurrent(op, flops)
    if op.kind in ATTENTIONS:
        return _attention(op, flops)
    op = completed(op)
    if op.kind in _MATMULS:
        return _matmul(op, flops)
    return _convolution(op, flops) if op.kind in _ALL_CONVOLUTIONS else None


def window_of(op: OpSignature) -> tuple[int, ...] | None:
    """Sides of a convolution's window, channels in and out, if they are known.

    A window of three dimensions has five numbers, one of two has four, one of one has three.
    """
    tensors, position = (op.outputs, 0) if op.kind in FILTER_GRADIENTS else (op.inputs, 1)
    shape = tensors[position].shape if position < len(tensors) else None
    return shape if shape is not None and len(shape) in _FILTER_RANKS else None


def _matmul(op: OpSignature, flops: float) -> Product | None:
    """The product of two matrices, or of as many as the output has."""
    shape = op.outputs[0].shape
    if shape is None:
        return None
    sizes = [max(n, 1) for n in shape]
    m, n = float(sizes[-2]), float(sizes[-1])
    count = float(prod(sizes[:-2]))
    return Product(m, n, flops / (2 * m * n * count), count)


def _convolution(op: OpSignature, flops: float) -> Product | None:
    """The product of a convolution, or of one of its gradients."""
    window = [max(n, 1) for n in window_of(op) or ()]
    if not window:
        return None
    if op.kind in FILTER_GRADIENTS:
        m, n = float(prod(window[:-1])), float(window[-1])
        return Product(m, n, flops / (2 * m * n))
    n = float(window[-2] if op.kind in INPUT_GRADIENTS else window[-1])
    m = op.outputs[0].elements / n
    return Product(m, n, flops / (2 * m * n)) if m else None


def _attention(op: OpSignature, flops: float) -> Product | None:
    """Products of scores and of values, with their inner sides one after the other."""
    try:
        heads, rows, columns = scores_of(op)
    except UnknownShapeError:
        return None
    m, n = float(max(rows, 1)), float(max(columns, 1))
    count = float(max(heads, 1))
    return Product(m, n, flops / (2 * m * n * count), count)


def _recurrent(op: OpSignature, flops: float) -> Product | None:
    """The product of one step, with the inner sides of all steps one after the other.

    Steps wait for each other, so they are not `count` products that a device computes at once.
    """
    try:
        m, n = sides_of_step(op)
    except UnknownShapeError:
        return None
    return Product(m, n, flops / (2 * m * n)) if m and n else None


def _einsum(op: OpSignature) -> Product | None:
    """The product of an Einsum of two inputs: which indices they share decides the sides."""
    indices, sizes = indices_of(op), index_sizes(op)
    if indices is None or sizes is None or len(op.inputs) != 2:
        return None
    left, right = indices[0]
    sides = dict.fromkeys("mnkc", 1.0)
    for name, size in sizes.items():
        where = name in left, name in right, name in indices[1]
        side = {(True, False, True): "m", (False, True, True): "n", (True, True, True): "c"}
        sides[side.get(where, "k")] *= size
    return Product(sides["m"], sides["n"], sides["k"], sides["c"])
