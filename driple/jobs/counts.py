"""Ops of a training step counted by what they are for, to compare two graphs of one model.

op types of a graph -> kind_counts -> {"convolution": 159, "relu": 98, ...}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

__all__ = ["OP_KINDS", "kind_counts"]

_KIND_OF = {
    "Conv2D": "convolution",
    "Conv2DBackpropInput": "convolution",
    "Conv2DBackpropFilter": "convolution",
    "MatMul": "product",
    "FusedBatchNormV3": "normalisation",
    "FusedBatchNormGradV3": "normalisation",
    "LRN": "normalisation",
    "LRNGrad": "normalisation",
    "BiasAdd": "bias",
    "BiasAddGrad": "bias",
    "Relu": "relu",
    "ReluGrad": "relu",
    "MaxPool": "pooling",
    "MaxPoolGrad": "pooling",
    "AvgPool": "pooling",
    "AvgPoolGrad": "pooling",
    "L2Loss": "weight decay",
    "AddN": "sum",
    "AddV2": "sum",
    "Cast": "cast",
    "Const": "constant",
    "NoOp": "control",
    "Identity": "control",
}
_OTHER = "other"
OP_KINDS = (*dict.fromkeys(_KIND_OF.values()), _OTHER)


def kind_counts(op_types: Iterable[str]) -> dict[str, int]:
    """How many ops there are of each of `OP_KINDS`; gradients count with their layers."""
    found = Counter(_KIND_OF.get(op_type, _OTHER) for op_type in op_types)
    return {kind: found[kind] for kind in OP_KINDS}
