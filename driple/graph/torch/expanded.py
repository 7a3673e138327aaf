"""Expanded tensors: a dimension of stride 0 shows one element many times, and is read once.

[8, 4096, 4096] of one matrix -> a kernel reads [1, 4096, 4096]
"""

from __future__ import annotations

from torch import Tensor

__all__ = ["memory_shape", "product_of_shared"]


def memory_shape(tensor: Tensor) -> tuple[int, ...] | None:
    """Shape of what lies in memory, with 1 for each expanded dimension; None if nothing is."""
    strides = tensor.stride()
    if 0 not in strides:
        return None
    return tuple(
        1 if not stride else int(size) for size, stride in zip(tensor.shape, strides, strict=True)
    )


def product_of_shared(
    left: Tensor, right: Tensor
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]] | None:
    """Shapes of one product that stands for a batch of products with one matrix in common.

    PyTorch multiplies a sequence-first activation by a frozen weight in this way.

    Args:
        left: shape [batch, rows, inner].
        right: shape [batch, inner, columns].

    Returns:
        Shapes of left and right matrix and of their product; None if each product has matrices of
        its own, or if both are in common.
    """
    batch, rows, inner = (int(side) for side in left.shape)
    columns = int(right.shape[2])
    shared_left, shared_right = left.stride(0) == 0, right.stride(0) == 0
    if batch < 2 or shared_left == shared_right:
        return None
    if shared_right:
        return (batch * rows, inner), (inner, columns), (batch * rows, columns)
    return (rows, inner), (inner, batch * columns), (rows, batch * columns)
