"""What flows where in a traced step: sources of nodes, parameters that they read, gradients.

    OpGraph -> StepFlow

The splits of `tensor_shard`, `context_shard` and `expert_shard` follow it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature
from driple.graph.step_facts import TensorLifetimes
from driple.step.shard_shapes import whole_sizes

__all__ = ["PRODUCTS", "GroupExchange", "StepFlow", "StepShard", "changed_graph"]

FloatArray = npt.NDArray[np.float64]

PRODUCTS = frozenset({"matmul", "batch_matmul", "einsum"})
"""Kinds of op that multiply matrices."""
_HANDS_ON = frozenset(
    {"cast", "copy", "transpose", "view", "identity", "add", "add_n", "accumulate_gradient"}
)
_EXPERT_RANK = 3  # experts, rows, columns


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupExchange:
    """What the devices of a group exchange at one node of a step, each time that it runs.

    Attributes:
        group: `tensor`, `context` or `expert`.
        kind: of collective; `ring` passes shares from neighbour to neighbour.
        node: that it lengthens.
        nbytes: of the whole tensor, or of what one device has before an all-to-all.
        is_hidden: whether the node's own time hides it.
    """

    group: str
    kind: str
    node: int
    nbytes: float
    is_hidden: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class StepShard:
    """The share of one device of a group that splits a step.

    Attributes:
        graph: ops, parameters and gradients of the device; lifetimes are left out.
        node_share: shape [num_nodes], share of what each node makes that the device has.
        exchanges: with the other devices of the group.
    """

    graph: OpGraph
    node_share: FloatArray
    exchanges: tuple[GroupExchange, ...]


class StepFlow:
    """Sources, readers and parameters of all nodes of a step.

    Attributes:
        graph: of one device.
        ops: signature of each node.
        sources: nodes whose outputs each node reads.
        held: parameters that each node reads, or only casts or turns.

    Args:
        graph: of one device.
        needs: what asks, in words, such as `tensor parallelism`.

    Raises:
        GraphError: the graph does not show its parameters and phases, or trains adapters.
    """

    def __init__(self, graph: OpGraph, needs: str) -> None:
        self.graph = graph
        if not len(graph.parameters.gradients) or len(graph.phases) != graph.num_nodes:
            raise GraphError(
                f"{needs} and the graph does not show its parameters and phases; use ddp or fsdp"
            )
        if not graph.parameters.is_trained.all():
            raise GraphError(
                f"{needs} and this graph trains adapters beside frozen matrices; use ddp or fsdp"
            )
        self.ops = [graph.signatures[i] for i in graph.signature_of.tolist()]
        self.sources: list[list[int]] = [[] for _ in range(graph.num_nodes)]
        for source, target in graph.edges[~graph.is_control].tolist():
            self.sources[target].append(source)
        self.held: list[list[int]] = [[] for _ in range(graph.num_nodes)]
        for parameter, node in graph.parameters.readers.tolist():
            self.held[node].append(parameter)

    def only_weight(self, node: int) -> int | None:
        """The parameter that a node hands on, cast or turned; None if it computes."""
        if self.sources[node] or len(self.held[node]) != 1 or self.ops[node].kind in PRODUCTS:
            return None
        outputs = self.ops[node].outputs
        parameter = self.held[node][0]
        same = (
            len(outputs) == 1 and outputs[0].elements == self.graph.parameters.elements[parameter]
        )
        return parameter if same and self.ops[node].kind != "embedding" else None

    def read(self, node: int) -> list[int]:
        """Parameters that a node reads, cast or not."""
        parameters = list(self.held[node])
        for source in self.sources[node]:
            parameter = self.only_weight(source)
            if parameter is not None:
                parameters.append(parameter)
        return parameters

    @cached_property
    def gradient_of(self) -> dict[int, set[int]]:
        """Elements of the gradients that each node makes or hands on, of nodes that do."""
        sizes: dict[int, set[int]] = {}
        elements = self.graph.parameters.elements
        for parameter, node in self.graph.parameters.gradients.tolist():
            size, waiting = int(elements[parameter]), [node]
            while waiting:
                at = waiting.pop()
                if size in sizes.get(at, ()):
                    continue
                sizes.setdefault(at, set()).add(size)
                if self.ops[at].kind in _HANDS_ON:
                    waiting += [
                        source
                        for source in self.sources[at]
                        if any(made.elements == size for made in self.ops[source].outputs)
                        and self.only_weight(source) is None
                    ]
        return sizes

    @cached_property
    def experts(self) -> dict[str, int]:
        """Experts of each module that has a stack of matrices, by the module's path."""
        counts: dict[str, int] = {}
        table = self.graph.parameters
        for node, op in enumerate(self.ops):
            if op.kind != "batch_matmul":
                continue
            for parameter in self.read(node):
                for tensor in op.inputs[:2]:
                    shape = tensor.shape
                    is_stack = shape is not None and len(shape) == _EXPERT_RANK
                    if (
                        shape is not None
                        and is_stack
                        and tensor.elements == table.elements[parameter]
                    ):
                        counts[table.names[parameter].rpartition(".")[0]] = shape[0]
        return counts

    @cached_property
    def expert_parameters(self) -> npt.NDArray[np.bool_]:
        """Whether each parameter is of a stack of experts; shape [p]."""
        owners = [name.rpartition(".")[0] for name in self.graph.parameters.names]
        return np.array([one in self.experts for one in owners], dtype=np.bool_)


def changed_graph(
    graph: OpGraph,
    changed: dict[int, OpSignature],
    node_share: FloatArray,
    parameter_share: FloatArray,
    sent_share: FloatArray,
) -> OpGraph:
    """A graph with other signatures, and with shares of its tensors, parameters and gradients.

    Args:
        graph: to change; its lifetimes are left out.
        changed: new signature of nodes.
        node_share: shape [num_nodes], share of what each node makes.
        parameter_share: shape [p], share of each parameter.
        sent_share: shape [s], share of each gradient in the traffic.
    """
    known: dict[OpSignature, int] = {}
    old = graph.signature_of.tolist()
    new_of = np.array(
        [
            known.setdefault(changed.get(node, graph.signatures[old[node]]), len(known))
            for node in range(graph.num_nodes)
        ],
        dtype=np.int32,
    )
    table, traffic, update = graph.parameters, graph.traffic, graph.update
    received = traffic.received_bytes.astype(np.float64)
    if len(received) == len(parameter_share):
        received = received * parameter_share
    kept = float((table.nbytes * parameter_share).sum() / max(int(table.nbytes.sum()), 1))
    return replace(
        graph,
        signatures=tuple(known),
        signature_of=new_of,
        tensor_elements=whole_sizes(graph.tensor_elements * node_share),
        tensor_bytes=whole_sizes(graph.tensor_bytes * node_share),
        traffic=replace(
            traffic,
            sent_bytes=whole_sizes(traffic.sent_bytes * sent_share),
            received_bytes=whole_sizes(received),
        ),
        parameters=replace(
            table,
            elements=whole_sizes(table.elements * parameter_share),
            nbytes=whole_sizes(table.nbytes * parameter_share),
        ),
        update=replace(
            update,
            state_bytes=round(update.state_bytes * kept),
            moved_bytes=round(update.moved_bytes * kept),
            temporary_bytes=round(update.temporary_bytes * kept),
        ),
        lifetimes=TensorLifetimes(),
    )
