"""TensorFlow's names of the ops of any graph: the encoding of op types is made of them.

    OpGraph of PyTorch or ONNX --kinds--> TensorFlow's op types, which the shipped tables encode

The paper's inspectors learned from graphs of TensorFlow. A kind that TensorFlow has no op of takes
the name of the op that costs most alike; one of which nothing is known keeps the framework's name,
and counts as an op type that the inspector has never seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.opgraph import OpGraph, RemoteOps
from driple.graph.tf.op_kinds import op_type_of_kind

__all__ = ["op_type_names", "remote_names"]

# Kinds of which TensorFlow has no op, by the op that stands for them.
_STANDS_FOR: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            ("layer_norm", "group_norm", "instance_norm", "rms_norm"), "FusedBatchNormV3"
        ),
        **dict.fromkeys(
            ("layer_norm_gradient", "group_norm_gradient", "instance_norm_gradient",
             "rms_norm_gradient"),
            "FusedBatchNormGradV3",
        ),
        **dict.fromkeys(("attention", "attention_gradient"), "BatchMatMulV2"),
        **dict.fromkeys(("lstm", "gru", "rnn"), "CudnnRNN"),
        **dict.fromkeys(("lstm_gradient", "gru_gradient", "rnn_gradient"), "CudnnRNNBackprop"),
        "softmax_gradient": "Softmax",
        "log_softmax_gradient": "LogSoftmax",
        "cross_entropy_gradient": "SparseSoftmaxCrossEntropyWithLogits",
        "embedding": "GatherV2",
        "embedding_gradient": "UnsortedSegmentSum",
        "nll_loss": "GatherV2",
        "nll_loss_gradient": "ScatterNd",
        "dropout": "RandomUniform",
        "sort": "TopKV2",
        "reduce_variance": "Mean",
        **dict.fromkeys(("mean_squared_error", "binary_cross_entropy"), "Sum"),
        **dict.fromkeys(("update_adamw", "update_adam8bit", "update_lamb"), "ApplyAdam"),
        **dict.fromkeys(("update_lion", "update_lars"), "ApplyMomentum"),
        "update_adafactor": "ApplyRMSProp",
        # Element by element.
        **dict.fromkeys(
            ("elementwise", "dropout_gradient", "mean_squared_error_gradient",
             "binary_cross_entropy_gradient", "gelu", "gelu_gradient", "silu", "silu_gradient",
             "mish", "mish_gradient", "prelu", "prelu_gradient", "hard_swish",
             "hard_swish_gradient", "hard_sigmoid", "hard_sigmoid_gradient", "cell_gates",
             "cell_gates_gradient"),
            "Mul",
        ),
        "hard_tanh": "Relu6",
        "hard_tanh_gradient": "Relu6Grad",
        **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all"), "CollectiveGather"),
    }
)  # fmt: skip


def op_type_names(graph: OpGraph) -> tuple[str, ...]:
    """TensorFlow's name of the op of each node."""
    if graph.framework == "tensorflow":
        return graph.op_types
    return tuple(
        _name(kind, op_type) for kind, op_type in zip(graph.kinds, graph.op_types, strict=True)
    )


def remote_names(graph: OpGraph) -> Counter[str]:
    """How many ops of each name run elsewhere."""
    counts: Counter[str] = Counter()
    for ops in graph.remote:
        counts[_remote_name(graph, ops)] += ops.num_nodes
    return counts


def _remote_name(graph: OpGraph, ops: RemoteOps) -> str:
    return ops.op_type if graph.framework == "tensorflow" else _name(ops.kind, ops.op_type)


def _name(kind: str, op_type: str) -> str:
    return op_type_of_kind(kind) or _STANDS_FOR.get(kind, op_type)
