"""FLOPs of attention as one op, and of its gradient; a multiply-add counts two.

    forward   S = Q K^T, O = softmax(S) V                              2 products
    backward  S again, dP = dO V^T, dV = P^T dO, dQ = dS K, dK = dS^T Q  5 products

Inputs are queries, keys and values, [..., heads, length, width]; keys and values may have fewer
heads. The gradient reads these three first. A fused kernel keeps no scores, so the backward pass
computes them again, as `torch.utils.flop_counter` counts; what softmax adds to each score is left
out there and here. Unlike there, a causal kernel (`causal` among the numbers) counts the scores
that its mask leaves: a query sees the keys up to its own position.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType

from driple.graph.cost.shapes import LAST, Formula, numbers_of, shape_in
from driple.graph.signature import OpSignature

__all__ = ["ATTENTIONS", "ATTENTION_FLOPS", "scores_of"]


def scores_of(op: OpSignature) -> tuple[int, int, int]:
    """Heads of all samples together, and rows and columns of the scores of each.

    Raises:
        UnknownShapeError: a shape is not known.
    """
    *heads, rows, _ = shape_in(op, 0, 3, LAST)
    return prod(heads), rows, shape_in(op, 1, 3, LAST)[-2]


def _attention(op: OpSignature) -> float:
    return 2.0 * _scores(op) * (_width(op, 0) + _width(op, 2))


def _attention_gradient(op: OpSignature) -> float:
    """Three products over the width of queries and keys, two over that of values."""
    return 2.0 * _scores(op) * (3 * _width(op, 0) + 2 * _width(op, 2))


def _scores(op: OpSignature) -> int:
    heads, rows, columns = scores_of(op)
    if not any(numbers_of(op, "causal")):
        return heads * rows * columns
    short = min(rows, columns)
    return heads * (short * (short + 1) // 2 + (rows - short) * columns)


def _width(op: OpSignature, position: int) -> int:
    return shape_in(op, position, 3, LAST)[-1]


ATTENTION_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {"attention": _attention, "attention_gradient": _attention_gradient}
)
ATTENTIONS = frozenset(ATTENTION_FLOPS)
