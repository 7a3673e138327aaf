"""Ops of a training step counted by what they are for, to compare two graphs of one model.

kinds of a graph's ops -> kind_counts -> {"convolution": 159, "relu": 98, ...}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["OP_KINDS", "kind_counts"]

_PURPOSE_OF = {
    "conv": "convolution",
    "conv_input_gradient": "convolution",
    "conv_filter_gradient": "convolution",
    "matmul": "product",
    "batch_norm": "normalisation",
    "batch_norm_gradient": "normalisation",
    "local_response_norm": "normalisation",
    "local_response_norm_gradient": "normalisation",
    "bias_add": "bias",
    "bias_gradient": "bias",
    "relu": "relu",
    "relu_gradient": "relu",
    "max_pool": "pooling",
    "max_pool_gradient": "pooling",
    "avg_pool": "pooling",
    "avg_pool_gradient": "pooling",
    "sum_of_squares": "weight decay",
    "add_n": "sum",
    "add": "sum",
    "cast": "cast",
    "constant": "constant",
    "no_op": "control",
    "identity": "control",
}
_OTHER = "other"
OP_KINDS = (*dict.fromkeys(_PURPOSE_OF.values()), _OTHER)


def kind_counts(kinds: Iterable[str]) -> dict[str, int]:
    """How many ops there are of each of `OP_KINDS`; gradients count with their layers."""
    counts = Counter(_PURPOSE_OF.get(kind, _OTHER) for kind in kinds)
    return {kind: counts[kind] for kind in OP_KINDS}
