"""Lifetimes of tensors in a graph that states none, as TensorFlow runs it.

    OpGraph --execution order--> OpGraph whose nodes stand in that order, with TensorLifetimes

A tensor lives from the op that makes it to the last op that reads it, and one that nobody reads is
freed at once. Element-wise ops and norms write into an input of the same size if nothing else reads
it any more (`OpKernelContext::forward_input_or_allocate_output`); names and reshapes share memory.
Whole numbers of 32 bits are on the host. What a loop writes to a list is kept for each of its turns
until the last op that reads a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.graph.datatypes import NUMBER_OF
from driple.graph.liveness import executed_nodes
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import ParameterTable, Phase, TensorLifetimes, TensorRole
from driple.step.plan import readers_and_waiting

__all__ = ["BFC_ROUNDING", "rounding_of", "with_lifetimes"]

IntArray = npt.NDArray[np.int64]

BFC_ROUNDING = 256  # bytes; kMinAllocationSize of tsl/framework/bfc_allocator.h
_CUDA_ROUNDING = 512
_INT32 = NUMBER_OF["DT_INT32"]

# Ops whose result is the memory of what they read.
_SHARED = frozenset(
    (
        "identity", "identity_n", "view", "enter", "exit", "merge", "switch", "switch_n",
        "next_iteration", "loop_condition", "function_argument", "read_variable", "variable",
        "variable_handle", "debug", "check", "no_op", "send", "receive", "assign",
        "assign_to_handle",
    )
)  # fmt: skip
_KEPT = frozenset(("constant", "constant_elsewhere"))  # the kernel holds it from step to step
_ON_HOST = frozenset(("shape_of", "shape_arithmetic", "host_value", "random_state"))
# Ops that write into an input of the same size if they are the last to read it.
_IN_PLACE = frozenset(
    (
        "abs", "add", "add_n", "bias_add", "sub", "mul", "div", "floor_div", "modulo", "maximum",
        "minimum", "pow", "neg", "sign", "reciprocal", "reciprocal_gradient", "square",
        "squared_difference", "sqrt", "sqrt_gradient", "rsqrt", "rsqrt_gradient", "exp", "expm1",
        "log", "log1p", "tanh", "tanh_gradient", "sigmoid", "sigmoid_gradient", "relu",
        "relu_gradient", "relu6", "relu6_gradient", "leaky_relu", "leaky_relu_gradient", "elu",
        "elu_gradient", "selu", "selu_gradient", "gelu", "gelu_gradient", "silu", "silu_gradient",
        "softplus", "softplus_gradient", "softsign", "softsign_gradient", "clip", "select",
        "softmax", "log_softmax", "batch_norm", "batch_norm_gradient", "cross_entropy",
        "fill_like", "trigonometric",
    )
)  # fmt: skip
_NAMES_OF_MANY = "identity_n"
_LIST_WRITE = "list_write"
_LIST_READS = frozenset(("list_read", "list_gradient"))
_HANDLE_BYTES = 64  # of a list itself


def rounding_of(framework: str) -> int:
    """Bytes of which each allocation takes a multiple, in a framework's allocator."""
    return BFC_ROUNDING if framework == "tensorflow" else _CUDA_ROUNDING


def with_lifetimes(graph: OpGraph) -> OpGraph:
    """The ops that a step runs, in their order, with lifetimes; a graph that has any as it is.

    Raises:
        GraphError: the graph lacks the signatures of its ops.
    """
    if len(graph.lifetimes.nbytes) or not graph.num_nodes or graph.framework != "tensorflow":
        return graph
    graph.require_signatures()
    ordered = _in_order(graph)
    return replace(ordered, lifetimes=_Walk(ordered).lifetimes())


def _in_order(graph: OpGraph) -> OpGraph:
    """The nodes that run, each after all that it reads."""
    runs = executed_nodes(graph)
    order = _first_come_order(graph)
    order = order[runs[order]]
    place = np.full(graph.num_nodes, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    edges, table, traffic = place[graph.edges], graph.parameters, graph.traffic
    inside = (edges >= 0).all(axis=1)
    picked = order.tolist()

    def placed(values: Any) -> Any:  # an array over the nodes, which may be empty
        return values[order] if len(values) == graph.num_nodes else values

    return replace(
        graph,
        names=tuple(graph.names[i] for i in picked),
        op_types=tuple(graph.op_types[i] for i in picked),
        devices=tuple(graph.devices[i] for i in picked),
        edges=edges[inside].astype(np.int32),
        is_control=graph.is_control[inside],
        tensor_elements=graph.tensor_elements[order],
        tensor_bytes=graph.tensor_bytes[order],
        traffic=replace(
            traffic,
            readers=_moved(traffic.readers, place),
            senders=np.maximum(place[traffic.senders], 0).astype(np.int32),
        ),
        signature_of=graph.signature_of[order],
        executions=placed(graph.executions),
        parameters=_moved_table(table, place),
        phases=placed(graph.phases),
        module_of=placed(graph.module_of),
        fusion_of=placed(graph.fusion_of),
    )


def _first_come_order(graph: OpGraph) -> IntArray:
    """Ops in the order in which they become ready, as TensorFlow's executor runs them on a GPU.

    What depends on nothing comes first, such as decayed averages of an optimizer's states.
    """
    readers, waiting = readers_and_waiting(graph)
    order = [i for i, count in enumerate(waiting) if not count]
    for node in order:  # which grows
        for target in readers[node]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return np.array(order, dtype=np.int64)


def _moved(pairs: npt.NDArray[np.int32], place: IntArray) -> npt.NDArray[np.int32]:
    """Pairs of (number, node) at the nodes' new places, without those of nodes that do not run."""
    if not len(pairs):
        return pairs
    nodes = place[pairs[:, 1]]
    return np.column_stack([pairs[:, 0], nodes])[nodes >= 0].astype(np.int32)


def _moved_table(table: ParameterTable, place: IntArray) -> ParameterTable:
    return replace(
        table,
        readers=_moved(table.readers, place),
        gradients=_moved(table.gradients, place),
    )


@dataclass(slots=True)
class _Memory:
    """One allocation, or one for each turn of a loop: who makes it, who is the last to use it."""

    nbytes: int
    made_by: int
    last: int
    turns: int = 1
    role: TensorRole | None = None
    owners: list[int] = field(default_factory=list)


class _Walk:
    """Walks through a step and notes what each op allocates."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.kinds = graph.kinds
        count = graph.num_nodes
        self.sources: list[list[int]] = [[] for _ in range(count)]
        self.last_reader = np.full(count, -1, dtype=np.int64)
        data = graph.edges[~graph.is_control].tolist()
        is_read = np.zeros(count, dtype=np.bool_)
        is_read[[source for source, _ in data]] = True
        for source, target in data:
            self.sources[target].append(source)
            # One that hands all gradients on to updates is taken apart by TensorFlow.
            if self.kinds[target] != _NAMES_OF_MANY or is_read[target]:
                self.last_reader[source] = max(self.last_reader[source], target)
        self.signature_of = graph.signature_of.tolist()
        self.device_bytes = [
            sum(one.nbytes for one in op.outputs if one.dtype != _INT32) if op.outputs else None
            for op in graph.signatures
        ]
        self.first_bytes = [op.outputs[0].nbytes if op.outputs else 0 for op in graph.signatures]
        self.phases = graph.phases.tolist()
        has_turns = len(graph.executions) == count
        self.turns = graph.executions.tolist() if has_turns else [1] * count
        reads = [i for i, kind in enumerate(self.kinds) if kind in _LIST_READS]
        self.end_of_lists = max(reads, default=count - 1)
        self.memory_of: list[_Memory | None] = [None] * count
        self.made: list[_Memory] = []
        sizes = graph.parameters.nbytes.tolist()
        self.gradient_bytes = {
            node: sizes[number] for number, node in graph.parameters.gradients.tolist()
        }

    def lifetimes(self) -> TensorLifetimes:
        """Parameters first, then what the ops make, then the optimizer's states."""
        for node in range(self.graph.num_nodes):
            self._run(node)
        count = self.graph.num_nodes
        rows = [(nbytes, -1, count, TensorRole.PARAMETER) for nbytes in self._parameters()]
        rows += [(nbytes, -1, count, TensorRole.INPUT) for nbytes in self._inputs()]
        for allocation in self.made:
            end = count if allocation.made_by < 0 else max(allocation.last, allocation.made_by)
            rows.append(
                (
                    allocation.turns * allocation.nbytes,
                    allocation.made_by,
                    end,
                    self._role(allocation),
                )
            )
        if self.graph.update.state_bytes:
            rows.append((self.graph.update.state_bytes, -1, count, TensorRole.OPTIMIZER_STATE))
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        return TensorLifetimes(
            nbytes=table[:, 0],
            made_by=table[:, 1].astype(np.int32),
            freed_after=table[:, 2].astype(np.int32),
            roles=table[:, 3].astype(np.int8),
        )

    def _parameters(self) -> Sequence[int]:
        """Bytes of each parameter: the table's, or what a worker receives."""
        table = self.graph.parameters.nbytes
        if not len(table):
            table = self.graph.traffic.without_states().received_bytes
        return [nbytes for nbytes in table.tolist() if nbytes]

    def _inputs(self) -> Sequence[int]:
        """Bytes of the batch: what ops read that no op and no parameter gives, each shape once."""
        sizes = {
            (one.shape, one.dtype): one.nbytes
            for node, sources in enumerate(self.sources)
            if not sources
            for one in self.graph.signatures[self.graph.signature_of[node]].inputs
            if not one.is_parameter and one.dtype != _INT32 and one.nbytes > 0
        }
        return list(sizes.values())

    def _run(self, node: int) -> None:
        kind, nbytes = self.kinds[node], self._device_bytes(node)
        if kind == _LIST_WRITE:
            self._keep(node)
            return
        if kind == _NAMES_OF_MANY and self.last_reader[node] < 0:
            return
        last = max(int(self.last_reader[node]), node)
        shared = None
        if kind in _SHARED and self.sources[node]:
            shared = self.memory_of[self.sources[node][0]]
        elif kind in _IN_PLACE:
            shared = self._free_input(node, nbytes)
        if shared is not None:
            shared.last = max(shared.last, last)
            shared.owners.append(node)
            self.memory_of[node] = shared
            return
        if not nbytes or kind in _SHARED or kind in _ON_HOST:
            return
        is_kept = kind in _KEPT
        memory = _Memory(nbytes, -1 if is_kept or kind == "placeholder" else node, last)
        if memory.made_by < 0:
            memory.role = TensorRole.INPUT
        self._make(memory, node)

    def _keep(self, node: int) -> None:
        """A list keeps what is written to it: a tensor of each turn, or parts of one tensor."""
        inputs = self.graph.signatures[self.signature_of[node]].inputs
        nbytes = max((one.nbytes for one in inputs if one.dtype != _INT32), default=0)
        if self.turns[node] == 1:
            if nbytes > _HANDLE_BYTES:
                self._make(_Memory(nbytes, node, max(node, self.end_of_lists)), node)
            return
        for source in self.sources[node]:
            memory = self.memory_of[source]
            if memory is not None and memory.made_by >= 0 and memory.nbytes == nbytes:
                memory.turns = max(memory.turns, self.turns[source])
                memory.last = max(memory.last, node, self.end_of_lists)

    def _make(self, memory: _Memory, node: int) -> None:
        memory.owners.append(node)
        self.memory_of[node] = memory
        self.made.append(memory)

    def _device_bytes(self, node: int) -> int:
        """Bytes of its results that are in the device's memory."""
        nbytes = self.device_bytes[self.signature_of[node]]
        return int(self.graph.tensor_bytes[node]) if nbytes is None else nbytes

    def _free_input(self, node: int, nbytes: int) -> _Memory | None:
        """Memory of the first input that has its result's size and no later reader."""
        size = self.first_bytes[self.signature_of[node]] or nbytes
        for source in self.sources[node]:
            memory = self.memory_of[source]
            if memory is not None and memory.made_by >= 0 and memory.nbytes >= size > 0:
                first_output = self.first_bytes[self.signature_of[source]]
                if memory.last == node and first_output in (0, size):
                    return memory
        return None

    def _role(self, memory: _Memory) -> TensorRole:
        if memory.role is not None:
            return memory.role
        if any(self.gradient_bytes.get(node) == memory.nbytes for node in memory.owners):
            return TensorRole.GRADIENT
        if not self.phases:
            return TensorRole.TEMPORARY
        forward = self.phases[memory.made_by] == Phase.FORWARD
        later = self.phases[max(memory.last, memory.made_by)] in (Phase.BACKWARD, Phase.UPDATE)
        return TensorRole.ACTIVATION if forward and later else TensorRole.TEMPORARY
