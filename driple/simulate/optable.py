"""Ops as arrays: what decides how long their kernels take, whichever device runs them.

OpSignature -> FLOPs, bytes (opcost) -> sides of a matrix product, kinds -> OpTable
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from driple.graph.cost import SignatureCosts
from driple.graph.cost.products import (
    CONVOLUTIONS,
    FILTER_GRADIENTS,
    INPUT_GRADIENTS,
    Product,
    window_of,
)
from driple.graph.low_precision import low_of
from driple.graph.signature import OpSignature
from driple.simulate.inner_kernels import inner_kernels
from driple.simulate.op_facts import OpFacts, channel_elements, op_facts

__all__ = [
    "BIAS_GRADIENT",
    "MATMUL",
    "MEMORY_KINDS",
    "PRODUCT_KINDS",
    "WINDOW5",
    "OpTable",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

PRODUCT_KINDS = ("pointwise", "window3", "window5", "oblong", "first", "other", "matmul")
MEMORY_KINDS = (
    "elementwise", "norm", "norm_gradient", "pool", "pool_gradient", "bias_gradient", "product",
)  # fmt: skip
_POINTWISE, _WINDOW3, WINDOW5, _OBLONG, _FIRST, _OTHER, MATMUL = range(len(PRODUCT_KINDS))
BIAS_GRADIENT, _PRODUCT = MEMORY_KINDS.index("bias_gradient"), MEMORY_KINDS.index("product")
_NORMS = ("batch_norm", "layer_norm", "group_norm", "instance_norm", "rms_norm")
_MEMORY_KIND_OF = {
    **dict.fromkeys(_NORMS, "norm"),
    **dict.fromkeys((f"{norm}_gradient" for norm in _NORMS), "norm_gradient"),
    "max_pool": "pool", "avg_pool": "pool",
    "max_pool_gradient": "pool_gradient", "avg_pool_gradient": "pool_gradient",
    "bias_gradient": "bias_gradient",
}  # fmt: skip
_WINDOWED = tuple(
    MEMORY_KINDS.index(name) for name in ("norm", "norm_gradient", "pool", "pool_gradient")
)
_TENSOR_SIDE, _LOW_SIDE = 8, 16
_FLAT = 4  # dimensions of images in two dimensions of space, channels and batch among them
_BY_FILTER = 2  # in `OpTable.gradient`
_LEAST_FIRST = 7  # windows this large belong to a first layer, whose images have few channels

# Windows of 3 x 3: Winograd's tiles of 4 x 4 outputs, of which each of the 6 x 6 transformed points
# is a product over the channels (Lavin and Gray, CVPR 2016). Windows of 5 x 5: tiles of 32 x 32
# points under FFT, of which 32 x 17 are complex products, that is four real ones, for 28 x 28
# outputs. Side of a tile's outputs, and products over the channels for a tile.
_SAVING_TILES = {3: (4, 6 * 6), 5: (28, 32 * 17 * 4)}

_BFLOAT16 = 14
_HALF = frozenset({_BFLOAT16, 19})  # data types that tensor cores multiply: BFLOAT16, HALF
_NO_TF32 = ("tf32", (0,))  # among the numbers of a product that may not run in TF32


@dataclass(frozen=True, kw_only=True, slots=True)
class OpTable:
    """What decides the time of a kernel, for many ops, as arrays of length n.

    Attributes:
        moved: bytes read and written.
        sides: shape [n, 4], m, n, k and count of the matrix product; zeros where there is none.
        half: whether it computes in half precision.
        bfloat16: whether that is bfloat16, which older tensor cores do not multiply.
        no_tf32: whether the program forbids TF32 for it.
        low: int64, format of a product in fewer than 16 bits (`driple.graph.low_precision`), else
            0; a side that is no multiple of 16 keeps it in 16 bits.
        product_kind: int64, position in `PRODUCT_KINDS`, if it is a product.
        gradient: int64, 1 for a convolution's gradient by its input, 2 by its filter, else 0.
        saved_sides: shape [n, 4], m, n, k and count of the products that are left of a convolution
            by Winograd's algorithm or FFT; zeros where its window or stride forbids it.
        memory_kind: int64, position in `MEMORY_KINDS`.
        flops: floating-point operations; a multiply-add counts two.
        channel_elements: elements that the block of one channel moves in a batch norm, else 0.
        inner_kernels: kernels that an op of PyTorch starts from within a library.
        facts: what else decides how well a GPU's kernel does.
    """

    moved: FloatArray
    sides: FloatArray
    half: BoolArray
    bfloat16: BoolArray
    no_tf32: BoolArray
    low: IntArray
    product_kind: IntArray
    gradient: IntArray
    saved_sides: FloatArray
    memory_kind: IntArray
    flops: FloatArray
    channel_elements: FloatArray
    inner_kernels: FloatArray
    facts: OpFacts

    @property
    def windowed(self) -> BoolArray:
        """Whether it is a convolution, a pool or a norm: a library sets these up with effort."""
        is_windowed: BoolArray = (self.product_kind != MATMUL) | np.isin(
            self.memory_kind, _WINDOWED
        )
        return is_windowed

    @property
    def fits_tensor_cores(self) -> BoolArray:
        """Whether all sides of the product are multiples of 8.

        Of a convolution only those of channels count: not that of the pixels, which is m, or k in
        the gradient by the filter.
        """
        multiple = self.sides[:, :3] % _TENSOR_SIDE == 0
        convolution = self.product_kind != MATMUL
        by_filter = self.gradient == _BY_FILTER
        multiple[convolution & ~by_filter, 0] = True
        multiple[convolution & by_filter, 2] = True
        fits: BoolArray = multiple.all(axis=1)
        return fits

    def take(self, rows: IntArray) -> OpTable:
        """Some of the ops."""
        arrays = (name for name in OpTable.__dataclass_fields__ if name != "facts")
        return OpTable(
            facts=self.facts.take(rows), **{name: getattr(self, name)[rows] for name in arrays}
        )

    @classmethod
    def of(cls, signatures: Sequence[OpSignature]) -> OpTable:
        """The table of some ops; shapes that an op's others determine are filled in first."""
        return cls.of_costs(SignatureCosts.of(signatures))

    @classmethod
    def of_costs(cls, by_signature: SignatureCosts) -> OpTable:
        """The table of ops whose costs are known already."""
        signatures, costs, products = (
            by_signature.signatures,
            by_signature.costs,
            by_signature.products,
        )
        saved = [_saved_product(op) for op in signatures]
        return cls(
            moved=np.array([c.bytes_read + c.bytes_written for c in costs], dtype=np.float64),
            sides=_sides(products),
            saved_sides=_sides(saved),
            half=_of_types(signatures, _HALF),
            bfloat16=_of_types(signatures, {_BFLOAT16}),
            no_tf32=np.array([_NO_TF32 in op.numbers for op in signatures], dtype=np.bool_),
            low=_low(signatures, _sides(products)),
            product_kind=np.array([_product_kind(op) for op in signatures], dtype=np.int64),
            gradient=np.array([_gradient(op) for op in signatures], dtype=np.int64),
            memory_kind=np.array(
                [
                    _PRODUCT
                    if p
                    else MEMORY_KINDS.index(_MEMORY_KIND_OF.get(op.kind, "elementwise"))
                    for op, p in zip(signatures, products, strict=True)
                ],
                dtype=np.int64,
            ),
            flops=np.array([c.flops for c in costs], dtype=np.float64),
            channel_elements=np.array([channel_elements(op) for op in signatures]),
            inner_kernels=np.array([inner_kernels(op) for op in signatures], dtype=np.float64),
            facts=op_facts(signatures, products),
        )


def _low(signatures: Sequence[OpSignature], sides: FloatArray) -> IntArray:
    """Formats of products in few bits; 0 of other ops."""
    formats = np.array([low_of(op) for op in signatures], dtype=np.int64)
    fits = (sides[:, :3] % _LOW_SIDE == 0).all(axis=1) & (sides[:, 3] > 0)
    return np.where(fits & _of_types(signatures, _HALF), formats, 0)


def _of_types(signatures: Sequence[OpSignature], types: Container[int]) -> BoolArray:
    """Whether the first output of each op has one of these data types."""
    fits = [bool(op.outputs) and op.outputs[0].dtype in types for op in signatures]
    return np.array(fits, dtype=np.bool_)


def _product_kind(op: OpSignature) -> int:
    """Position in `PRODUCT_KINDS`; of what is no convolution, that of matrix products."""
    if op.kind not in CONVOLUTIONS | INPUT_GRADIENTS | FILTER_GRADIENTS:
        return MATMUL
    window = window_of(op)
    if window is None:
        return _OTHER
    sides = window[:-2]
    if len(set(sides)) > 1:
        return _OBLONG
    if sides[0] >= _LEAST_FIRST:
        return _FIRST
    return {1: _POINTWISE, 3: _WINDOW3, 5: WINDOW5}.get(sides[0], _OTHER)


def _sides(products: Sequence[Product | None]) -> FloatArray:
    """Shape [n, 4]; zeros where there is no product."""
    rows = [(p.m, p.n, p.k, p.count) if p else (0.0,) * 4 for p in products]
    return np.array(rows, dtype=np.float64).reshape(-1, 4)


def _saved_product(op: OpSignature) -> Product | None:
    """What is left of a convolution with a small window where multiplications are saved."""
    window = window_of(op)
    if window is None or _product_kind(op) not in {_WINDOW3, WINDOW5}:
        return None
    output = _made_by(op)
    if (
        output is None
        or len(output) != len(window)
        or len(output) != _FLAT
        or not _keeps_size(op, window)
    ):
        return None
    # The sides that are no channels, wherever the layout puts them.
    image, channels = sorted(max(n, 1) for n in output[1:]), max(window[3], 1)
    image.remove(channels) if channels in image else image.pop()
    tile, points = _SAVING_TILES[window[0]]
    tiles = float(max(output[0], 1) * prod(ceil(side / tile) for side in image))
    inner, outer = float(max(window[2], 1)), float(max(window[3], 1))
    if op.kind in FILTER_GRADIENTS:
        return Product(inner, outer, tiles, float(points))
    if op.kind in INPUT_GRADIENTS:
        return Product(tiles, inner, outer, float(points))
    return Product(tiles, outer, inner, float(points))


def _gradient(op: OpSignature) -> int:
    """1 for a convolution's gradient by its input, 2 by its filter, else 0."""
    if op.kind in FILTER_GRADIENTS:
        return _BY_FILTER
    return 1 if op.kind in INPUT_GRADIENTS else 0


def _made_by(op: OpSignature) -> tuple[int, ...] | None:
    """Shape of a convolution's output, or of the gradient by it that both gradients read."""
    tensors, position = (op.outputs, 0) if op.kind in CONVOLUTIONS else (op.inputs, 2)
    return tensors[position].shape if position < len(tensors) else None


def _keeps_size(op: OpSignature, window: Sequence[int]) -> bool:
    """Whether a convolution, or its gradient, keeps height and width about: its stride is 1."""
    inner, outer = max(window[2], 1), max(window[3], 1)
    image = op.outputs[0] if op.kind in INPUT_GRADIENTS else op.inputs[0]
    output = op.outputs[0] if op.kind in CONVOLUTIONS else op.inputs[2]
    if image.shape is None or output.shape is None:
        return False
    return 2 * output.elements * inner > image.elements * outer
