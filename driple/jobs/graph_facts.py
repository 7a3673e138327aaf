"""Precision and optimizer that a graph shows by itself, by its products and its update."""

from __future__ import annotations

from collections import Counter
from math import prod

from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph

__all__ = ["optimizer_of", "precision_of"]

_FORMATS = {
    NUMBER_OF["DT_FLOAT"]: "fp32",
    NUMBER_OF["DT_HALF"]: "fp16",
    NUMBER_OF["DT_BFLOAT16"]: "bf16",
    NUMBER_OF["DT_DOUBLE"]: "fp64",
}
_PRODUCTS = ("Conv", "MatMul", "Einsum", "Depthwise", "LSTM", "GRU", "CudnnRNN")
# TensorFlow's update ops by how they end; the longest name that fits counts.
_UPDATES = {
    "ApplyGradientDescent": "sgd",
    "ApplyMomentum": "momentum",
    "ApplyKerasMomentum": "momentum",
    "ApplyAdam": "adam",
    "ApplyAdaMax": "adamax",
    "ApplyRMSProp": "rmsprop",
    "ApplyCenteredRMSProp": "rmsprop",
    "ApplyAdagrad": "adagrad",
    "ApplyAdagradV2": "adagrad",
    "ApplyAdagradDA": "adagrad",
    "ApplyAdadelta": "adadelta",
    "ApplyFtrl": "ftrl",
    "ApplyFtrlV2": "ftrl",
    "ApplyProximalGradientDescent": "sgd",
    "ApplyProximalAdagrad": "adagrad",
    "ApplyAddSign": "addsign",
    "ApplyPowerSign": "powersign",
}


def precision_of(graph: OpGraph) -> str:
    """Number format of most products of the graph, by elements of their outputs; empty if none."""
    if not graph.signatures or not len(graph.signature_of):
        return ""
    weight: Counter[str] = Counter()
    counts = Counter(graph.signature_of.tolist())
    for position, number in counts.items():
        signature = graph.signatures[position]
        if not any(part in signature.op_type for part in _PRODUCTS) or not signature.outputs:
            continue
        output = signature.outputs[0]
        if output.dtype in _FORMATS and output.shape is not None:
            weight[_FORMATS[output.dtype]] += number * prod(max(n, 1) for n in output.shape)
    return weight.most_common(1)[0][0] if weight else ""


def optimizer_of(graph: OpGraph) -> str:
    """Optimizer that the graph names or whose update ops it runs; empty if neither."""
    if graph.update.optimizer:
        return graph.update.optimizer
    seen = [*graph.op_types, *(ops.op_type for ops in graph.remote for _ in range(ops.num_nodes))]
    weight: Counter[str] = Counter()
    for op_type, number in Counter(seen).items():
        bare = op_type.removeprefix("Resource").removeprefix("Sparse")
        name = _UPDATES.get(bare) or _UPDATES.get(bare.removesuffix("WithAmsgrad"))
        if name:
            weight[name] += number
    return weight.most_common(1)[0][0] if weight else ""
