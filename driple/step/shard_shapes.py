"""Shapes of the shards of tensors that the devices of a tensor-parallel group have.

Tensor, degree, dimension -> Tensor of one device;  OpSignature -> dimension by which it is divided
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from driple.graph.signature import OpSignature, Tensor

__all__ = [
    "ATTENTIONS",
    "HEADS",
    "axis_of",
    "by_heads",
    "divided",
    "is_matrix",
    "whole_sizes",
    "widens",
]

ATTENTIONS = frozenset({"attention", "attention_gradient"})
"""Kinds of op that compute attention."""
HEADS = 1
"""Dimension of the heads in the inputs of attention: samples, heads, length, width."""


def widens(op: OpSignature) -> bool:
    """Whether it is a product that makes more columns than it reads, as a head of many words."""
    shape = op.inputs[1].shape if op.kind == "matmul" and len(op.inputs) > 1 else None
    return shape is not None and len(shape) == 2 and shape[1] > shape[0]


def is_matrix(tensor: Tensor, elements: int) -> bool:
    """Whether a tensor has several dimensions and this number of elements."""
    return tensor.shape is not None and len(tensor.shape) > 1 and tensor.elements == elements


def axis_of(op: OpSignature) -> int:
    """The dimension by which an op on shards is divided: heads where it has them."""
    first = (op.outputs or op.inputs)[0].shape
    rank = 0 if first is None else len(first)
    if rank == 3 and op.kind == "batch_matmul":
        return 0
    return HEADS if rank > 3 or op.kind in ATTENTIONS else -1


def divided(tensor: Tensor, degree: int, axis: int) -> Tensor:
    """The largest shard of a tensor along a dimension, or along another that is divisible."""
    shape = tensor.shape
    if not shape or tensor.elements == 1:
        return tensor
    axes = [axis if -len(shape) <= axis < len(shape) else -1, *range(len(shape) - 1, -1, -1)]
    return _cut(tensor, degree, next((one for one in axes if shape[one] % degree == 0), axes[0]))


def by_heads(tensor: Tensor, degree: int, axis: int) -> Tensor:
    """The same of an input of attention; several devices hold the same head of keys if need be."""
    shape = tensor.shape
    fits = shape is not None and len(shape) > axis
    return _cut(tensor, degree, axis) if fits else divided(tensor, degree, axis)


def _cut(tensor: Tensor, degree: int, axis: int) -> Tensor:
    sizes = list(tensor.shape or ())
    sizes[axis] = -(-sizes[axis] // degree)
    return replace(tensor, shape=tuple(sizes))


def whole_sizes(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Shares of sizes, shape [n], rounded up to whole elements or bytes."""
    return np.ceil(values - 1e-6).astype(np.int64)
