"""Attention as models computed it before PyTorch 2 had a kernel for it.

    query, key, value -> product, scaling, mask, softmax, dropout, product

PyTorch 2 without a fused kernel (its math path) is another step: it scales query and key, and its
softmax stays in half precision under autocast.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["unfused_attention"]


def unfused_attention(  # noqa: PLR0917  # as PyTorch has them
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """What `scaled_dot_product_attention` computes, one op after another.

    Models of then scaled the scores (timm's ViT, BERT, GPT-2), and the queries where numbers are
    added to the scores (timm's Swin and BEiT, `torch.nn.MultiheadAttention`).

    Args:
        query: shape [..., heads, length, width].
        key: shape [..., heads, other length, width].
        value: shape [..., heads, other length, other width].
        attn_mask: numbers that are added to the scores, or which of them count; None for all.
        dropout_p: share of the weights that is dropped.
        is_causal: whether a token attends to those before it alone.
        scale: of the scores; 1 / sqrt(width) if None.
        enable_gqa: whether several heads of the query share one of key and value.

    Returns:
        Shape [..., heads, length, other width].
    """
    if enable_gqa:
        key, value = (_repeated(one, query.shape[-3]) for one in (key, value))
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    adds = attn_mask is not None and attn_mask.is_floating_point()
    if adds and factor != 1:
        query = query * factor
    scores = query @ key.transpose(-2, -1)
    if not adds and factor != 1:
        scores = scores * factor
    if attn_mask is not None:
        scores = scores + attn_mask if adds else _without(scores, attn_mask.logical_not())
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = _without(scores, later)
    weights = scores.softmax(-1)
    if dropout_p > 0:
        weights = torch.dropout(weights, dropout_p, train=True)
    return weights @ value


def _without(scores: Tensor, left_out: Tensor) -> Tensor:
    return scores.masked_fill(left_out, float("-inf"))


def _repeated(shared: Tensor, heads: int) -> Tensor:
    """Key or value with a head for each of the query."""
    *batch, own, length, width = shared.shape
    wide = shared.unsqueeze(-3).expand(*batch, own, heads // own, length, width)
    return wide.reshape(*batch, heads, length, width)
