"""Products: the matrix product [m, k] x [k, n] that an op comes to, and its sides.

OpSignature, FLOPs --product_of--> Product; a convolution's left factor is its matrix of patches
(im2col), which is written out or read again and again, whichever library computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from driple.graph.signature import OpSignature
from driple.opcost.einsum import index_sizes, indices_of

__all__ = [
    "CONVOLUTIONS",
    "FILTER_GRADIENTS",
    "INPUT_GRADIENTS",
    "Product",
    "product_of",
    "window_of",
]

CONVOLUTIONS = frozenset({"Conv2D", "_FusedConv2D"})
INPUT_GRADIENTS = frozenset({"Conv2DBackpropInput"})
FILTER_GRADIENTS = frozenset({"Conv2DBackpropFilter"})


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
    if flops <= 0 or not op.outputs or op.outputs[0].shape is None:
        return None
    if op.op_type == "Einsum":
        return _einsum(op)
    if op.op_type.endswith(("MatMul", "MatMulV2", "MatMulV3")):
        shape = [max(n, 1) for n in op.outputs[0].shape]
        m, n = float(shape[-2]), float(shape[-1])
        count = float(prod(shape[:-2]))
        return Product(m, n, flops / (2 * m * n * count), count)
    return _convolution(op, flops)


def window_of(op: OpSignature) -> tuple[int, ...] | None:
    """Height, width, channels in and out of a convolution's window, if they are known."""
    if op.op_type in FILTER_GRADIENTS:
        shape = op.outputs[0].shape if op.outputs else None
    else:
        shape = op.inputs[1].shape if len(op.inputs) > 1 else None
    return shape if shape is not None and len(shape) == 4 else None


def _convolution(op: OpSignature, flops: float) -> Product | None:
    """The product of a convolution, or of one of its gradients."""
    window = [max(n, 1) for n in window_of(op) or ()]
    if not window:
        return None
    if op.op_type in FILTER_GRADIENTS:
        m, n = float(prod(window[:-1])), float(window[-1])
        return Product(m, n, flops / (2 * m * n))
    if op.op_type in CONVOLUTIONS | INPUT_GRADIENTS:
        n = float(window[2] if op.op_type in INPUT_GRADIENTS else window[3])
        m = op.outputs[0].elements / n
        return Product(m, n, flops / (2 * m * n)) if m else None
    return None


def _einsum(op: OpSignature) -> Product | None:
    """The product of an Einsum of two inputs: which indices they share decides the sides."""
    found, sizes = indices_of(op), index_sizes(op)
    if found is None or sizes is None or len(op.inputs) != 2:
        return None
    left, right = found[0]
    sides = dict.fromkeys("mnkc", 1.0)
    for name, size in sizes.items():
        where = name in left, name in right, name in found[1]
        side = {(True, False, True): "m", (False, True, True): "n", (True, True, True): "c"}
        sides[side.get(where, "k")] *= size
    return Product(sides["m"], sides["n"], sides["k"], sides["c"])
