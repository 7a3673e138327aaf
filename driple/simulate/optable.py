"""Ops as arrays: what decides how long their kernels take, whichever device runs them.

OpSignature -> FLOPs, bytes (opcost) -> sides of a matrix product, kinds -> OpTable
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from driple.graph.signature import OpSignature
from driple.opcost import cost_of_op

__all__ = [
    "BIAS_GRADIENT",
    "MEMORY_KINDS",
    "PRODUCT_KINDS",
    "WINDOW5",
    "OpTable",
    "product_of",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

PRODUCT_KINDS = ("pointwise", "window3", "window5", "oblong", "first", "other", "matmul")
MEMORY_KINDS = (
    "elementwise", "norm", "norm_gradient", "pool", "pool_gradient", "bias_gradient", "product",
)  # fmt: skip
_POINTWISE, _WINDOW3, WINDOW5, _OBLONG, _FIRST, _OTHER, _MATMUL = range(len(PRODUCT_KINDS))
BIAS_GRADIENT, _PRODUCT = MEMORY_KINDS.index("bias_gradient"), MEMORY_KINDS.index("product")
_MEMORY_KIND_OF = {
    "FusedBatchNorm": "norm", "FusedBatchNormV2": "norm", "FusedBatchNormV3": "norm",
    "FusedBatchNormGrad": "norm_gradient", "FusedBatchNormGradV2": "norm_gradient",
    "FusedBatchNormGradV3": "norm_gradient",
    "MaxPool": "pool", "AvgPool": "pool", "MaxPoolGrad": "pool_gradient",
    "AvgPoolGrad": "pool_gradient", "BiasAddGrad": "bias_gradient",
}  # fmt: skip
_LEAST_FIRST = 7  # windows this large belong to a first layer, whose images have few channels

_HALF = frozenset({14, 19})  # data types that tensor cores multiply: BFLOAT16, HALF
_CONVOLUTIONS = frozenset({"Conv2D", "_FusedConv2D"})
_INPUT_GRADIENTS = frozenset({"Conv2DBackpropInput"})
_FILTER_GRADIENTS = frozenset({"Conv2DBackpropFilter"})


@dataclass(frozen=True, slots=True)
class Product:
    """A matrix product: `count` times [m, k] x [k, n]."""

    m: float
    n: float
    k: float
    count: float = 1.0


def product_of(op: OpSignature, flops: float) -> Product | None:
    """The matrix product that an op comes to; None if it is none, or its shapes are unknown.

    Args:
        op: what it computes on.
        flops: its floating-point operations, 2 m n k.
    """
    if flops <= 0 or not op.outputs or op.outputs[0].shape is None:
        return None
    out = op.outputs[0]
    if op.op_type.endswith(("MatMul", "MatMulV2", "MatMulV3")):
        shape = [max(n, 1) for n in out.shape or ()]
        m, n = float(shape[-2]), float(shape[-1])
        count = float(prod(shape[:-2]))
        return Product(m, n, flops / (2 * m * n * count), count)
    if op.op_type in _FILTER_GRADIENTS:
        window = [max(n, 1) for n in out.shape or ()]
        m, n = float(prod(window[:-1])), float(window[-1])
        return Product(m, n, flops / (2 * m * n))
    if op.op_type in _CONVOLUTIONS | _INPUT_GRADIENTS and len(op.inputs) > 1:
        window = [max(n, 1) for n in op.inputs[1].shape or ()]
        if len(window) != 4:
            return None
        n = float(window[2] if op.op_type in _INPUT_GRADIENTS else window[3])
        m = out.elements / n
        return Product(m, n, flops / (2 * m * n)) if m else None
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class OpTable:
    """What decides the time of a kernel, for many ops, as arrays of length n.

    Attributes:
        moved: bytes read and written.
        sides: shape [n, 4], m, n, k and count of the matrix product; zeros where there is none.
        half: whether it computes in half precision.
        product_kind: int64, position in `PRODUCT_KINDS`, if it is a product.
        gradient: int64, 1 for a convolution's gradient by its input, 2 by its filter, else 0.
        may_save: whether its window and stride let multiplications be saved.
        memory_kind: int64, position in `MEMORY_KINDS`.
    """

    moved: FloatArray
    sides: FloatArray
    half: BoolArray
    product_kind: IntArray
    gradient: IntArray
    may_save: BoolArray
    memory_kind: IntArray

    def take(self, rows: IntArray) -> OpTable:
        """Some of the ops."""
        return OpTable(**{name: getattr(self, name)[rows] for name in OpTable.__dataclass_fields__})

    @classmethod
    def of(cls, signatures: Sequence[OpSignature]) -> OpTable:
        """The table of some ops."""
        costs = [cost_of_op(op) for op in signatures]
        products = [product_of(op, c.flops) for op, c in zip(signatures, costs, strict=True)]
        sides = [(p.m, p.n, p.k, p.count) if p else (0.0,) * 4 for p in products]
        return cls(
            moved=np.array([c.bytes_read + c.bytes_written for c in costs], dtype=np.float64),
            sides=np.array(sides, dtype=np.float64).reshape(-1, 4),
            half=np.array(
                [bool(op.outputs) and op.outputs[0].dtype in _HALF for op in signatures],
                dtype=np.bool_,
            ),
            product_kind=np.array([_product_kind(op) for op in signatures], dtype=np.int64),
            gradient=np.array([_gradient(op) for op in signatures], dtype=np.int64),
            may_save=np.array(
                [_may_save(op) for op in signatures],
                dtype=np.bool_,
            ),
            memory_kind=np.array(
                [
                    _PRODUCT
                    if p
                    else MEMORY_KINDS.index(_MEMORY_KIND_OF.get(op.op_type, "elementwise"))
                    for op, p in zip(signatures, products, strict=True)
                ],
                dtype=np.int64,
            ),
        )


def _product_kind(op: OpSignature) -> int:
    """Position in `PRODUCT_KINDS`; of what is no convolution, that of matrix products."""
    if op.op_type not in _CONVOLUTIONS | _INPUT_GRADIENTS | _FILTER_GRADIENTS:
        return _MATMUL
    window = _window(op)
    if window is None:
        return _OTHER
    height, width = window[:2]
    if height != width:
        return _OBLONG
    if height >= _LEAST_FIRST:
        return _FIRST
    return {1: _POINTWISE, 3: _WINDOW3, 5: WINDOW5}.get(height, _OTHER)


def _window(op: OpSignature) -> tuple[int, ...] | None:
    """Height, width, channels in and out of a convolution's window, if they are known."""
    if op.op_type in _FILTER_GRADIENTS:
        shape = op.outputs[0].shape if op.outputs else None
    else:
        shape = op.inputs[1].shape if len(op.inputs) > 1 else None
    return shape if shape is not None and len(shape) == 4 else None


def _may_save(op: OpSignature) -> bool:
    """Whether a library can save multiplications: 3 x 3 or 5 x 5, stride 1."""
    if _product_kind(op) not in {_WINDOW3, WINDOW5}:
        return False
    window = _window(op)
    return window is not None and _keeps_size(op, window)


def _gradient(op: OpSignature) -> int:
    """1 for a convolution's gradient by its input, 2 by its filter, else 0."""
    return 1 if op.op_type in _INPUT_GRADIENTS else 2 if op.op_type in _FILTER_GRADIENTS else 0


def _keeps_size(op: OpSignature, window: Sequence[int]) -> bool:
    """Whether a convolution, or its gradient, keeps height and width about: its stride is 1."""
    inner, outer = window[2], window[3]
    if op.op_type in _FILTER_GRADIENTS:
        image, made = op.inputs[0].shape, op.inputs[2].shape if len(op.inputs) > 2 else None
    elif op.op_type in _INPUT_GRADIENTS:
        image, made = op.outputs[0].shape, op.inputs[2].shape if len(op.inputs) > 2 else None
    else:
        image, made = op.inputs[0].shape, op.outputs[0].shape
    if image is None or made is None:
        return False
    return 2 * prod(made) * inner > prod(image) * outer
