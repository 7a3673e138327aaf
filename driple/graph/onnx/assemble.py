"""A derived step as an `OpGraph`.

DerivedStep, OptimizerUpdate -> nodes, edges, parameters, gradients, phases, modules, lifetimes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from driple.graph.onnx.step import DerivedStep
from driple.graph.onnx.tape import Read, StepNode, StepTensor, Storage
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps, Traffic
from driple.graph.signature import OpSignature, Tensor
from driple.graph.step_facts import (
    OptimizerUpdate,
    ParameterTable,
    Phase,
    TensorLifetimes,
    TensorRole,
)

__all__ = ["assembled_graph"]

_DEVICE = "/job:worker/task:0/device:GPU:0"
_INT32 = 3  # numbers that the host hands over
_Pairs = np.ndarray[tuple[int, int], np.dtype[np.int32]]


def assembled_graph(step: DerivedStep, update: OptimizerUpdate, report: ReadReport) -> OpGraph:
    """The graph of a derived step.

    Args:
        step: the step.
        update: the optimizer's update.
        report: what the reader remarked.
    """
    nodes = step.tape.nodes
    count = len(nodes)
    signatures: dict[OpSignature, int] = {}
    signature_of = [signatures.setdefault(_signature(node), len(signatures)) for node in nodes]
    edges = sorted(
        {(read.tensor.storage.made_by, i) for i, node in enumerate(nodes) for read in node.inputs
         if read.tensor is not None and read.tensor.storage.made_by >= 0}
    )  # fmt: skip
    outputs = [[each.tensor for each in node.outputs if each.tensor] for node in nodes]
    modules = sorted({node.module for node in nodes} - {""})
    number = {module: i for i, module in enumerate(modules)}
    trained = list(step.gradients)
    place = {name: i for i, name in enumerate(trained)}
    sizes = [step.parameters[name].nbytes for name in trained]
    readers = _readers(step)
    senders = sorted((step.gradients[name].storage.made_by, place[name]) for name in trained)
    kind = f"update_{update.optimizer.removesuffix('-fused')}"
    return OpGraph(
        names=tuple(node.name for node in nodes),
        op_types=tuple(node.op_type for node in nodes),
        devices=(_DEVICE,) * count,
        edges=_pairs(edges),
        is_control=np.zeros(len(edges), dtype=np.bool_),
        tensor_elements=np.array([sum(t.elements for t in each) for each in outputs], np.int64),
        tensor_bytes=np.array([sum(t.nbytes for t in each) for each in outputs], np.int64),
        remote=(
            RemoteOps(op_type=kind, kind=kind, num_nodes=len(trained), tensor_bytes=sum(sizes)),
        ),
        traffic=Traffic(
            received_bytes=np.array(sizes, dtype=np.int64),
            readers=_pairs([(place[name], node) for name, node in readers if name in place]),
            sent_bytes=np.array([sizes[i] for _, i in senders], dtype=np.int64),
            senders=np.array([node for node, _ in senders], dtype=np.int32),
        ),
        report=report,
        signatures=tuple(signatures),
        signature_of=np.array(signature_of, dtype=np.int32),
        layout="one_device",
        framework="onnx",
        executions=np.array([node.executions for node in nodes], dtype=np.int64),
        parameters=_table(step, readers),
        update=update,
        phases=np.array([node.phase for node in nodes], dtype=np.int8),
        modules=tuple(modules),
        module_of=np.array([number.get(node.module, -1) for node in nodes], dtype=np.int32),
        lifetimes=_lifetimes(step, update.state_bytes),
    )


def _pairs(rows: Sequence[tuple[int, int]]) -> _Pairs:
    return np.array(rows, dtype=np.int32).reshape(-1, 2)


def _signature(node: StepNode) -> OpSignature:
    return OpSignature(
        node.kind,
        tuple(map(_tensor, node.inputs)),
        tuple(map(_tensor, node.outputs)),
        node.numbers,
    )


def _tensor(read: Read) -> Tensor:
    if read.tensor is None:
        return Tensor(read.shape, _INT32)
    return Tensor(read.shape, read.tensor.dtype, read.tensor.storage.parameter >= 0)


def _readers(step: DerivedStep) -> list[tuple[str, int]]:
    """Each parameter's name, with each node that reads it."""
    names = list(step.parameters)
    readers = {
        (read.tensor.storage.parameter, i)
        for i, node in enumerate(step.tape.nodes)
        for read in node.inputs
        if read.tensor is not None and read.tensor.storage.parameter >= 0
    }
    return [(names[parameter], i) for parameter, i in sorted(readers)]


def _table(step: DerivedStep, readers: Sequence[tuple[str, int]]) -> ParameterTable:
    names = list(step.parameters)
    number = {name: i for i, name in enumerate(names)}
    tensors = list(step.parameters.values())
    gradients = [(number[name], each.storage.made_by) for name, each in step.gradients.items()]
    return ParameterTable(
        names=tuple(names),
        elements=np.array([each.elements for each in tensors], dtype=np.int64),
        nbytes=np.array([each.nbytes for each in tensors], dtype=np.int64),
        is_trained=np.array([name in step.gradients for name in names], dtype=np.bool_),
        readers=_pairs([(number[name], node) for name, node in readers]),
        gradients=_pairs(sorted(gradients)),
    )


def _lifetimes(step: DerivedStep, state_bytes: int) -> TensorLifetimes:
    """Every allocation of the step, and one of the optimizer's states."""
    nodes = step.tape.nodes
    count = len(nodes)
    last: dict[int, int] = {}
    seen: dict[int, Storage] = {}
    for tensor in (*step.parameters.values(), *step.inputs.values()):
        seen[id(tensor.storage)] = tensor.storage
    for i, tensor in _touched(nodes):
        seen.setdefault(id(tensor.storage), tensor.storage)
        last[id(tensor.storage)] = i
    kept = {id(each.storage) for each in step.gradients.values()}
    kept |= {id(each.storage) for each in step.parameters.values()}
    rows = []
    for key, storage in seen.items():
        if not storage.nbytes:
            continue
        end = count if key in kept or storage.made_by < 0 else last.get(key, storage.made_by)
        rows.append((storage.nbytes, storage.made_by, end, _role(nodes, storage, end)))
    if state_bytes:
        rows.append((state_bytes, -1, count, TensorRole.OPTIMIZER_STATE))
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return TensorLifetimes(
        nbytes=table[:, 0],
        made_by=table[:, 1].astype(np.int32),
        freed_after=table[:, 2].astype(np.int32),
        roles=table[:, 3].astype(np.int8),
    )


def _touched(nodes: Sequence[StepNode]) -> Iterator[tuple[int, StepTensor]]:
    for i, node in enumerate(nodes):
        for each in (*node.inputs, *node.outputs):
            if each.tensor is not None:
                yield i, each.tensor


def _role(nodes: Sequence[StepNode], storage: Storage, end: int) -> TensorRole:
    """Role of memory: an activation is made in the forward pass and last read in the backward."""
    if storage.made_by < 0:
        is_buffer = storage.role == TensorRole.TEMPORARY
        return TensorRole.PARAMETER if is_buffer else storage.role
    if storage.role == TensorRole.GRADIENT:
        return storage.role
    forward = nodes[storage.made_by].phase == Phase.FORWARD
    backward = end < len(nodes) and nodes[end].phase == Phase.BACKWARD
    return TensorRole.ACTIVATION if forward and backward else TensorRole.TEMPORARY
