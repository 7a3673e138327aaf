"""One device's share of a training step under expert parallelism.

    OpGraph, degree -> StepShard: the graph of one device, and its all-to-alls

A device of a group has E / n of the E experts of each layer. Tokens go to the devices of their k
experts and come back: two all-to-alls in the forward pass and two in the backward pass, each of
k x tokens x width (Lepikhin et al., GShard, 2020). Experts get the same number of tokens (capacity
factor 1): a device computes n times as many rows for each of its experts as before. Shared experts
and routers are whole.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from driple.checks import check_whole
from driple.cluster.schemes import divisors_near
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.step.step_flow import GroupExchange, StepFlow, StepShard, changed_graph

__all__ = ["expert_shard"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def expert_shard(graph: OpGraph, degree: int, order: IntArray) -> StepShard:
    """The share of one device of an expert-parallel group.

    Args:
        graph: of the whole step, with named parameters.
        degree: devices of the group.
        order: of execution, shape [num_nodes].

    Raises:
        GraphError: the model has no experts, or the degree does not divide them.
    """
    check_whole("expert-parallel degree", degree, 1)
    if degree == 1:
        return StepShard(graph=graph, node_share=np.ones(graph.num_nodes), exchanges=())
    flow = StepFlow(graph, f"ep{degree} shares out the experts of layers,")
    if not flow.experts:
        raise GraphError(
            f"ep{degree} shares out the experts of layers, and this model has none that are stored "
            "as a stack of matrices; leave ep out"
        )
    for module, count in flow.experts.items():
        if count % degree:
            raise GraphError(
                f"ep{degree} does not divide the {count} experts of {module}; "
                f"ep {divisors_near(count, degree)} does"
            )
    return _Experts(flow, degree).shard(order)


class _Experts:
    """Modules with experts, and what becomes of their ops."""

    def __init__(self, flow: StepFlow, degree: int) -> None:
        self.flow, self.degree = flow, degree
        graph = flow.graph
        self.is_own = flow.expert_parameters
        sizes: dict[str, set[int]] = {}
        for name, elements in zip(graph.parameters.names, graph.parameters.elements, strict=True):
            sizes.setdefault(name.rpartition(".")[0], set()).add(int(elements))
        self.sizes = {module: sizes[module] for module in flow.experts}
        self.module_of: dict[int, str] = {}
        paths = dict(enumerate(graph.modules))
        if len(graph.module_of) == graph.num_nodes:
            for node, at in enumerate(graph.module_of.tolist()):
                path = paths.get(at, "")
                if path in flow.experts:
                    self.module_of[node] = path
        for node in range(graph.num_nodes):  # gradients and casts may stand outside of modules
            for parameter in flow.held[node]:
                if self.is_own[parameter]:
                    self.module_of.setdefault(
                        node, graph.parameters.names[parameter].rpartition(".")[0]
                    )
        for parameter, node in graph.parameters.gradients.tolist():
            if self.is_own[parameter]:
                self.module_of.setdefault(
                    node, graph.parameters.names[parameter].rpartition(".")[0]
                )

    def shard(self, order: IntArray) -> StepShard:
        """The graph of one device."""
        graph, degree = self.flow.graph, self.degree
        changed: dict[int, OpSignature] = {}
        share = np.ones(graph.num_nodes)
        ends: dict[tuple[str, int], list[int]] = {}
        for node in order.tolist():
            module = self.module_of.get(node)
            if module is None:
                continue
            op = self.flow.ops[node]
            if op.kind == "batch_matmul":
                is_gradient = not self.flow.read(node)
                changed[node] = self._product(op, is_gradient=is_gradient)
                if is_gradient:
                    share[node] = 1 / degree
                else:
                    phase = int(graph.phases[node])
                    ends.setdefault((module, phase), []).append(node)
                continue
            mine = self._parts(op, module)
            if mine != op:
                changed[node] = mine
                if op.outputs and mine.outputs != op.outputs:
                    share[node] = 1 / degree
        for node in range(graph.num_nodes):
            parameter = self.flow.only_weight(node)
            if parameter is not None and self.is_own[parameter]:
                share[node] = 1 / degree
        own = np.where(self.is_own, 1 / degree, 1.0)
        sent = self._sent_share()
        return StepShard(
            graph=changed_graph(graph, changed, share, own, sent),
            node_share=share,
            exchanges=tuple(self._exchanges(ends)),
        )

    def _product(self, op: OpSignature, *, is_gradient: bool) -> OpSignature:
        """A grouped product with the device's experts, or the gradient of their matrices."""
        degree, (left, right, *rest) = self.degree, op.inputs
        if is_gradient:
            read = (_resized(left, degree, -1), _resized(right, degree, -2), *rest)
            return replace(op, inputs=read, outputs=(_fewer(op.outputs[0], degree),))
        rows = _resized(left, degree, -2)
        outputs = (_resized(op.outputs[0], degree, -2),)
        return replace(op, inputs=(rows, _fewer(right, degree), *rest), outputs=outputs)

    def _parts(self, op: OpSignature, module: str) -> OpSignature:
        """An op on the stacks themselves, such as a cast: of the device's experts."""

        def mine(tensor: Tensor) -> Tensor:
            return _fewer(tensor, self.degree) if tensor.elements in self.sizes[module] else tensor

        return replace(op, inputs=tuple(map(mine, op.inputs)), outputs=tuple(map(mine, op.outputs)))

    def _exchanges(self, ends: dict[tuple[str, int], list[int]]) -> list[GroupExchange]:
        """Tokens go before a module's first product of a pass, and come back after its last."""
        exchanges = []
        for nodes in ends.values():
            first, last = self.flow.ops[nodes[0]], self.flow.ops[nodes[-1]]
            for node, tensor in ((nodes[0], first.inputs[0]), (nodes[-1], last.outputs[0])):
                exchanges.append(
                    GroupExchange(
                        group="expert", kind="all_to_all", node=node, nbytes=float(tensor.nbytes)
                    )
                )
        return exchanges

    def _sent_share(self) -> FloatArray:
        """Share of each gradient in the traffic."""
        graph = self.flow.graph
        own = {node for one, node in graph.parameters.gradients.tolist() if self.is_own[one]}
        share = [1 / self.degree if node in own else 1.0 for node in graph.traffic.senders.tolist()]
        return np.array(share, dtype=np.float64)


def _fewer(tensor: Tensor, degree: int) -> Tensor:
    """A stack of 1 / degree of its matrices."""
    shape = tensor.shape or ()
    if not shape or shape[0] % degree:
        return tensor
    return replace(tensor, shape=(shape[0] // degree, *shape[1:]))


def _resized(tensor: Tensor, degree: int, axis: int) -> Tensor:
    """A stack of 1 / degree of its matrices, each with as many times the rows."""
    fewer = _fewer(tensor, degree)
    shape = list(fewer.shape or ())
    shape[axis] *= degree
    return replace(fewer, shape=tuple(shape))
