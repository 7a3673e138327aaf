"""Which kernel PyTorch picks for `scaled_dot_product_attention` on an NVIDIA GPU.

    shapes, type, mask, compute capability -> flash, efficient or math

The conditions are those of aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, in its default
order of priority. cuDNN's attention, which PyTorch may prefer on the newest devices, reads and
computes what the flash kernel does.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

__all__ = ["AttentionKernel", "attention_kernel", "gemm_alignment"]

AttentionKernel = Literal["flash", "efficient", "math"]
_HALF = (torch.float16, torch.bfloat16)
_RANK = 4
_FLASH_WIDTH = 256  # largest head of the flash kernel
_FLASH_FROM, _EFFICIENT_FROM = (8, 0), (5, 0)
_SMALL_SHARED_MEMORY = ((8, 6), (8, 9))  # these cannot train with the widest heads


def attention_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    *,
    is_causal: bool,
    dropout: float,
    grouped: bool,
    capability: tuple[int, int] | None,
) -> AttentionKernel:
    """The kernel for one call.

    Args:
        query: shape [batch, heads, length, width].
        key: shape [batch, heads, other length, width].
        value: likewise.
        mask: which is added to the scores, or selects them; None for none.
        is_causal: whether a token attends to those before it alone.
        dropout: share of the scores that is dropped.
        grouped: whether `key` and `value` may have fewer heads.
        capability: of the device; None if it has no fused kernels.
    """
    if capability is None or any(one.dim() != _RANK for one in (query, key, value)):
        return "math"
    if not _is_dense(query, key, value, grouped=grouped):
        return "math"
    if torch.backends.cuda.flash_sdp_enabled() and mask is None:  # type: ignore[no-untyped-call]
        trains = any(one.requires_grad for one in (query, key, value))
        if _fits_flash(query, key, value, is_causal, capability, dropout=dropout, trains=trains):
            return "flash"
    allowed = torch.backends.cuda.mem_efficient_sdp_enabled()  # type: ignore[no-untyped-call]
    if not allowed or _shares_heads(query, key) or (is_causal and mask is not None):
        return "math"
    return "efficient" if _fits_efficient(query, key, value, capability) else "math"


def _shares_heads(query: Tensor, key: Tensor) -> bool:
    """Whether several heads of the query share one of the key."""
    return bool(query.shape[1] != key.shape[1])


def _is_dense(query: Tensor, key: Tensor, value: Tensor, *, grouped: bool) -> bool:
    """Whether batches and heads match, no sequence is empty, and channels lie side by side."""
    shapes = [tuple(one.shape) for one in (query, key, value)]
    if len({shape[0] for shape in shapes}) > 1:
        return False
    heads = [shape[1] for shape in shapes]
    if grouped:
        if heads[1] != heads[2] or not heads[1] or heads[0] % heads[1]:
            return False
    elif len(set(heads)) > 1:
        return False
    if any(not shape[2] for shape in shapes):
        return False
    return all(one.stride(-1) == 1 for one in (query, key, value))


def _fits_flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    is_causal: bool,
    capability: tuple[int, int],
    *,
    dropout: float,
    trains: bool,
) -> bool:
    width = query.shape[-1]
    if capability < _FLASH_FROM or query.dtype not in _HALF:
        return False
    if width > _FLASH_WIDTH or {key.shape[-1], value.shape[-1]} != {width}:
        return False
    if is_causal and query.shape[2] != key.shape[2]:
        return False
    if trains and capability in _SMALL_SHARED_MEMORY:
        # Heads up to 192; up to 224 fail, wider ones only if scores are dropped.
        return not (192 < width <= 224 or (width > 224 and dropout > 0))
    return True


def _fits_efficient(query: Tensor, key: Tensor, value: Tensor, capability: tuple[int, int]) -> bool:
    if capability < _EFFICIENT_FROM:
        return False
    if query.dtype == torch.bfloat16:
        if capability < _FLASH_FROM:
            return False
    elif query.dtype not in {torch.float16, torch.float32}:
        return False
    if query.shape[-1] != key.shape[-1]:
        return False
    alignment = gemm_alignment(query.dtype, capability)
    return all(side > 0 and side % alignment == 0 for side in (query.shape[-1], value.shape[-1]))


def gemm_alignment(dtype: torch.dtype, capability: tuple[int, int]) -> int:
    """Multiple of channels that the memory-efficient kernel needs."""
    half = dtype in _HALF
    tensor_cores = capability >= ((7, 0) if half else (8, 0))
    least = 4 if capability[0] >= 8 else 1
    return max(least, 128 // (16 if half else 32)) if tensor_cores else least
