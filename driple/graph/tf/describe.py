"""Signatures of the nodes that were kept: what each computes on, and which inputs are parameters.

nodes, their data inputs  ->  outputs of every node  ->  OpSignature per node, each stored once
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from driple.graph.signature import OpSignature, Tensor
from driple.graph.tf.raw import RawNode
from driple.graph.tf.sizes import output_types

__all__ = ["DataInputs", "describe_nodes"]

# Of each node, in order: position of the node that is read, and which of its outputs.
DataInputs = Sequence[Sequence[tuple[int, int]]]

_VARIABLES = frozenset(
    {"Variable", "VariableV2", "VarHandleOp", "AutoReloadVariable", "TemporaryVariable"}
)
# What hands the value of a variable on as it is, in another precision, or into a loop.
_HANDS_ON = frozenset({"Identity", "ReadVariableOp", "Cast", "Enter", "RefEnter", "Snapshot"})
_UNKNOWN = Tensor(None, 0)


def describe_nodes(
    nodes: Sequence[RawNode], inputs: DataInputs, order: Iterable[int], kept: Iterable[int]
) -> tuple[tuple[OpSignature, ...], npt.NDArray[np.int32]]:
    """The signatures of the kept nodes, and which one each node has.

    Args:
        nodes: all nodes of the graph.
        inputs: what each of them reads.
        order: their positions, a node after all that it reads, but for the edges back of loops.
        kept: positions of the nodes to describe.
    """
    is_parameter = _parameters(nodes, inputs, order)
    plain: dict[tuple[object, ...], tuple[Tensor, ...]] = {}
    outputs = [_outputs(node, plain) for node in nodes]
    number_of: dict[OpSignature, int] = {}
    numbers = []
    for i in kept:
        node = nodes[i]
        read = []
        for source, slot in inputs[i]:
            there = outputs[source]
            tensor = there[slot] if slot < len(there) else _UNKNOWN
            if is_parameter[source]:
                tensor = Tensor(tensor.shape, tensor.dtype, True)
            read.append(tensor)
        signature = OpSignature.of_op_type(
            node.op, tuple(read), outputs[i], tuple(sorted(node.numbers.items()))
        )
        numbers.append(number_of.setdefault(signature, len(number_of)))
    return tuple(number_of), np.array(numbers, dtype=np.int32)


def _outputs(
    node: RawNode, known: dict[tuple[object, ...], tuple[Tensor, ...]]
) -> tuple[Tensor, ...]:
    """Outputs of a node; nodes with the same shapes and types share them."""
    if not node.shapes:
        return ()
    types = output_types(node)
    key = (node.shapes, types)
    if key not in known:
        known[key] = tuple(Tensor(s, t) for s, t in zip(node.shapes, types, strict=True))
    return known[key]


def _parameters(nodes: Sequence[RawNode], inputs: DataInputs, order: Iterable[int]) -> list[bool]:
    """Whether the output of a node is the value of a variable."""
    is_parameter = [False] * len(nodes)
    for i in order:
        op = nodes[i].op
        if op in _VARIABLES:
            is_parameter[i] = True
        elif op in _HANDS_ON and inputs[i]:
            is_parameter[i] = is_parameter[inputs[i][0][0]]
    return is_parameter
