"""Nodes that a framework computes as one kernel, though exporters write them apart.

    Sigmoid, Mul -> Swish      HardSigmoid, Mul -> HardSwish      MatMul, Add -> MatMul with bias

Each pair is one op in PyTorch: SiLU, Hardswish, and a linear layer, whose product adds its bias.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from driple.graph.onnx.sizes import Sizes

__all__ = ["fused_nodes"]

_GATES: Mapping[str, str] = MappingProxyType({"Sigmoid": "Swish", "HardSigmoid": "HardSwish"})


def fused_nodes(
    sizes: Sizes, parameters: Collection[str], outputs: Collection[str]
) -> Sequence[Any]:
    """The nodes of a model in order, with each such pair as one node.

    Args:
        sizes: of its tensors, with its nodes.
        parameters: names of the parameters.
        outputs: names of the model's outputs, which stay.
    """
    reads = Counter(name for node in sizes.nodes for name in node.input)
    kept = set(outputs)
    reader: dict[str, Any] = {}
    for node in sizes.nodes:
        for name in node.input:
            reader[name] = node
    merged: list[Any] = []
    gone: set[str] = set()  # outputs of nodes that another one computes too
    for node in sizes.nodes:
        if node.output and node.output[0] in gone:
            continue
        after = reader.get(node.output[0]) if len(node.output) == 1 else None
        if after is None or reads[node.output[0]] != 1 or node.output[0] in kept:
            merged.append(node)
            continue
        fused = _gated(node, after) or _with_bias(node, after, sizes, parameters)
        if fused is not None:
            gone.add(after.output[0])
        merged.append(node if fused is None else fused)
    return merged


def _gated(gate: Any, product: Any) -> Any:
    """X times its own gate."""
    fits = gate.op_type in _GATES and product.op_type == "Mul"
    if not fits or sorted(product.input) != sorted([gate.input[0], gate.output[0]]):
        return None
    return _copy(product, _GATES[gate.op_type], [gate.input[0]])


def _with_bias(node: Any, added: Any, sizes: Sizes, parameters: Collection[str]) -> Any:
    """A product of data and a matrix, to which a parameter of one dimension is added."""
    if node.op_type != "MatMul" or added.op_type != "Add" or len(node.input) != 2:
        return None
    weight = sizes.tensors[node.input[1]].shape
    bias = next((name for name in added.input if name != node.output[0]), "")
    shape = sizes.tensors[bias].shape if bias in parameters else None
    if weight is None or len(weight) != 2 or shape != (weight[1],):
        return None
    product = _copy(node, "MatMul", [*node.input, bias])
    product.output[0] = added.output[0]
    return product


def _copy(node: Any, op_type: str, inputs: Sequence[str]) -> Any:
    """A node of the same name, module and outputs."""
    from onnx import NodeProto

    copy = NodeProto()
    copy.CopyFrom(node)
    copy.op_type = op_type
    del copy.input[:]
    copy.input.extend(inputs)
    del copy.attribute[:]
    return copy
