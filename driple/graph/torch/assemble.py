"""The notes of a recorded step as an `OpGraph`.

Record, parameters and their gradients, StepOptions -> OpGraph
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch import nn

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps, Traffic
from driple.graph.step_facts import (
    OptimizerUpdate,
    ParameterTable,
    Phase,
    TensorLifetimes,
    TensorRole,
)
from driple.graph.torch.packed_weights import num_values_of
from driple.graph.torch.recorder import Allocation, Record, StepRecorder
from driple.graph.torch.sparse_rows import SparseRows
from driple.remarks import Remark, remark

__all__ = ["assembled_graph"]

_DEVICE = "/job:worker/task:0/device:GPU:0"


def assembled_graph(
    recorder: StepRecorder,
    *,
    rows: SparseRows,
    given: Sequence[Allocation],
    update: Callable[[Sequence[nn.Parameter]], OptimizerUpdate],
    update_kind: str,
    passes: int = 1,
    fusion_of: Sequence[int] = (),
    trains: bool = True,
) -> OpGraph:
    """The graph of a step that has been recorded.

    Args:
        recorder: that recorded it; gradients are still with the parameters.
        rows: what was read of tables with sparse gradients.
        given: memory of the batch.
        update: the optimizer's update of some parameters: those that have a gradient.
        update_kind: kind of the update in `OpGraph.remote`.
        passes: forward and backward passes for each update.
        fusion_of: number of each node's fused kernel.
        trains: whether parameters get gradients; else it is a forward pass, and nothing is sent.

    Raises:
        ConfigError: no parameter has a gradient.
    """
    record = recorder.record
    count = len(record.op_types)
    parameters = list(recorder.parameters.items())
    sent = _gradient_nodes(recorder, parameters, rows) if trains else {}
    trained = [number for number, (_, one) in enumerate(parameters) if one.requires_grad and trains]
    updated = [
        number for number in trained
        if number in sent or (passes == 1 and parameters[number][1].grad is not None)
    ]  # fmt: skip
    made_update = _update_of([parameters[n][1] for n in updated], update, rows, trains=trains)
    place = {number: position for position, number in enumerate(trained)}
    readers = sorted(record.readers)
    sizes = np.array([parameters[number][1].nbytes for number in trained], dtype=np.int64)
    edges = sorted(record.edges)
    outputs = np.array(record.outputs, dtype=np.int64).reshape(-1, 2)
    executions = np.full(count, passes, dtype=np.int64)
    executions[np.array(record.accumulates, dtype=np.bool_)] -= passes > 1
    executions *= np.array(record.turns, dtype=np.int64)
    by_node = sorted((node, number) for number, node in sent.items())
    return OpGraph(
        names=tuple(f"{op_type}_{i}" for i, op_type in enumerate(record.op_types)),
        op_types=tuple(record.op_types),
        devices=(_DEVICE,) * count,
        edges=np.array(edges, dtype=np.int32).reshape(-1, 2),
        is_control=np.zeros(len(edges), dtype=np.bool_),
        tensor_elements=outputs[:, 0],
        tensor_bytes=outputs[:, 1],
        remote=(
            RemoteOps(
                op_type=update_kind,
                kind=update_kind,
                num_nodes=len(updated),
                tensor_bytes=sum(rows.sent_bytes(parameters[number][1]) for number in updated),
            ),
        )
        if trains
        else (),
        traffic=Traffic(
            received_bytes=sizes,
            readers=_pairs([(place[n], node) for n, node in readers if n in place]),
            sent_bytes=np.array(
                [rows.sent_bytes(parameters[n][1]) for _, n in by_node], dtype=np.int64
            ),
            senders=np.array([node for node, _ in by_node], dtype=np.int32),
        ),
        report=ReadReport(
            nodes_in_file=count,
            notes=_without_gradient([parameters[n] for n in sorted({*trained} - {*updated})]),
        ),
        signatures=tuple(record.signatures),
        signature_of=np.array(record.signature_of, dtype=np.int32),
        executions=executions,
        is_training=trains,
        layout="one_device",
        framework="pytorch",
        parameters=_table(parameters, readers, sent),
        update=made_update,
        phases=np.array(record.phases, dtype=np.int8),
        modules=tuple(record.modules),
        module_of=np.array(record.module_of, dtype=np.int32),
        lifetimes=_lifetimes(
            recorder, rows, given, made_update.state_bytes, accumulates=passes > 1
        ),
        fusion_of=np.array(fusion_of, dtype=np.int32),
    )


def _without_gradient(parameters: Sequence[tuple[str, nn.Parameter]]) -> tuple[Remark, ...]:
    """Parameters that are to be trained and take no part in the loss."""
    if not parameters:
        return ()
    return (
        remark(
            "parameters_without_gradient",
            num_parameters=len(parameters),
            elements=sum(parameter.numel() for _, parameter in parameters),
            name=parameters[0][0],
        ),
    )


def _pairs(rows: Sequence[tuple[int, int]]) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    return np.array(rows, dtype=np.int32).reshape(-1, 2)


def _gradient_nodes(
    recorder: StepRecorder, parameters: Sequence[tuple[str, nn.Parameter]], rows: SparseRows
) -> Mapping[int, int]:
    """The node that completes the gradient of each parameter that has one, by position."""
    node_of = {}
    for number, (_, parameter) in enumerate(parameters):
        gradient = rows.gradient_of(parameter)
        gradient = parameter.grad if gradient is None else gradient
        if gradient is None or not parameter.requires_grad:
            continue
        memory = recorder.allocation_of(gradient)
        if memory is not None and memory.written_by >= 0:
            node_of[number] = memory.written_by
    if not node_of:
        raise ConfigError("no parameter has a gradient; give a model that can be trained")
    return node_of


def _update_of(
    parameters: Sequence[nn.Parameter],
    update: Callable[[Sequence[nn.Parameter]], OptimizerUpdate],
    rows: SparseRows,
    *,
    trains: bool,
) -> OptimizerUpdate:
    """The update, which of tables with sparse gradients touches rows, and keeps states of all."""
    if not trains:
        return OptimizerUpdate()
    whole = update(parameters)
    if not any(id(one) in rows.counts for one in parameters):
        return whole
    part = update([rows.as_updated(one) for one in parameters])
    return replace(part, state_bytes=whole.state_bytes)


def _table(
    parameters: Sequence[tuple[str, nn.Parameter]],
    readers: Sequence[tuple[int, int]],
    sent: Mapping[int, int],
) -> ParameterTable:
    return ParameterTable(
        names=tuple(name for name, _ in parameters),
        elements=np.array([num_values_of(one) for _, one in parameters], dtype=np.int64),
        nbytes=np.array([one.nbytes for _, one in parameters], dtype=np.int64),
        is_trained=np.array([one.requires_grad for _, one in parameters], dtype=np.bool_),
        readers=_pairs(readers),
        gradients=_pairs(sorted(sent.items())),
    )


def _lifetimes(
    recorder: StepRecorder,
    rows_read: SparseRows,
    given: Sequence[Allocation],
    state_bytes: int,
    *,
    accumulates: bool,
) -> TensorLifetimes:
    """Every allocation of the step, and one of the optimizer's states.

    The gradients to which a later pass adds exist before it.
    """
    record = recorder.record
    count = len(record.op_types)
    roles = _roles(recorder, rows_read, given)
    rows = []
    for allocation in record.allocations:
        role = roles.get(id(allocation), _role(record, allocation))
        is_older = accumulates and role == TensorRole.GRADIENT
        start = -1 if is_older else min(allocation.made_by, count - 1)
        end = (
            count
            if allocation.freed_after is None
            else max(allocation.freed_after, allocation.made_by, 0)
        )
        if allocation.nbytes:
            rows.append((allocation.nbytes, start, end, role))
    if state_bytes:
        rows.append((state_bytes, -1, count, TensorRole.OPTIMIZER_STATE))
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return TensorLifetimes(
        nbytes=table[:, 0],
        made_by=table[:, 1].astype(np.int32),
        freed_after=np.minimum(table[:, 2], count).astype(np.int32),
        roles=table[:, 3].astype(np.int8),
    )


def _roles(
    recorder: StepRecorder, rows: SparseRows, given: Sequence[Allocation]
) -> Mapping[int, TensorRole]:
    """Roles of memory that belongs to the model, to its gradients and to the batch."""
    roles = {id(one): TensorRole.INPUT for one in given}
    for parameter in recorder.parameters.values():
        if (memory := recorder.allocation_of(parameter)) is not None:
            roles[id(memory)] = TensorRole.PARAMETER
        sparse = rows.gradient_of(parameter)
        grad = parameter.grad if sparse is None else sparse
        if grad is not None and (memory := recorder.allocation_of(grad)) is not None:
            roles[id(memory)] = TensorRole.GRADIENT
    return roles


def _role(record: Record, allocation: Allocation) -> TensorRole:
    """Role of a tensor of the step: an activation if it is made forward and freed backward."""
    if allocation.made_by < 0:
        return TensorRole.PARAMETER  # a buffer of the model, such as running averages
    end = len(record.op_types) - 1
    start, freed = (
        min(allocation.made_by, end),
        end if allocation.freed_after is None else allocation.freed_after,
    )
    is_forward = record.phases[start] == Phase.FORWARD
    backward = record.phases[min(freed, end)] in {Phase.BACKWARD, Phase.RECOMPUTE}
    return TensorRole.ACTIVATION if is_forward and backward else TensorRole.TEMPORARY
