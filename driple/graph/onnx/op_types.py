"""Names of a step's kinds in `OpGraph.op_types`: TensorFlow's, which the tables of costs go by."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from driple.graph.tf.op_kinds import op_type_of_kind

__all__ = ["op_type_of"]

# Kinds that TensorFlow has no op for, by one that computes and moves as much.
_ALIKE: Mapping[str, str] = MappingProxyType(
    {
        "layer_norm": "batch_norm", "group_norm": "batch_norm", "instance_norm": "batch_norm",
        "rms_norm": "batch_norm", "layer_norm_gradient": "batch_norm_gradient",
        "group_norm_gradient": "batch_norm_gradient",
        "instance_norm_gradient": "batch_norm_gradient",
        "rms_norm_gradient": "batch_norm_gradient", "softmax_gradient": "softmax",
        "log_softmax_gradient": "log_softmax", "embedding": "gather",
        "embedding_gradient": "scatter_reduce_rows", "nll_loss": "gather",
        "nll_loss_gradient": "scatter_new", "dropout": "random", "dropout_gradient": "mul",
        "update_adamw": "update_adam", "update_lion": "update_momentum",
        "update_adafactor": "update_adam", "update_adam8bit": "update_adam",
    }
)  # fmt: skip


@cache
def op_type_of(kind: str) -> str:
    """The op type of a kind."""
    return op_type_of_kind(_ALIKE.get(kind, kind)) or "Mul"
