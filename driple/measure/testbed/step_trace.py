"""Convert recorded steps of a job with one worker to a job trace.

RunMetadata (`metadata`), Chrome timelines (`timelines`)
    -> Node, of the partition graphs: dependencies across `_Send` and `_Recv`
    -> StepRecord: times of ops, times of transfers, bytes of tensors
    -> JobTrace (Li et al., section 2)

A partition graph is the part of a graph that one device runs, after TensorFlow's rewrites.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from driple.async_sgd.jobtrace import JobTrace, Resource
from driple.async_sgd.origin import TraceOrigin
from driple.errors import TraceError
from driple.graph.tf.functions import node_of

__all__ = [
    "MOST_TENSOR_BYTES",
    "Key",
    "Node",
    "Span",
    "StepRecord",
    "job_trace_of",
    "task_of",
    "widen",
]

_TASK = re.compile(r"/job:(?P<job>\w+)/replica:\d+/task:(?P<task>\d+)")
_SENDS, _RECVS = frozenset({"_Send", "_HostSend"}), frozenset({"_Recv", "_HostRecv"})
MOST_TENSOR_BYTES = 2**50
_MOST_DIGITS = 4  # of the number of a task or an output
_LOOP_BACK = frozenset({"NextIteration", "RefNextIteration"})

Key = tuple[str, str]  # task and name
Span = tuple[float, float]  # start and end, seconds since the epoch


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node of a partition graph.

    Attributes:
        key: its task, such as worker:0, and name.
        op: its type.
        inputs: inputs in NodeDef notation: name, name:slot, or ^name.
        tensor: key of the tensor that it sends or receives, equal at both ends; empty for other
            nodes.
    """

    key: Key
    op: str
    inputs: tuple[str, ...]
    tensor: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """Record of one step.

    Attributes:
        ops: start and end of each op, by task and node.
        transfers: request and arrival of each tensor, by receiving task and tensor.
        sizes: bytes of an output, by task, node and slot.
        begin_s: start of the step, seconds since the epoch; None: the start of its first op.
    """

    ops: dict[Key, Span]
    transfers: dict[Key, Span]
    sizes: dict[tuple[str, str, int], int]
    begin_s: float | None = None


@dataclass(slots=True)
class _Op:
    name: str
    key: Key
    resource: Resource
    server: int
    size: int
    waits_for: list[int]


def task_of(device: str) -> str:
    """`worker:0` of a device's full name."""
    match = _TASK.search(device)
    return f"{match['job']}:{match['task']}" if match else device


def widen(spans: dict[Key, Span], key: Key, begin: float, end: float) -> None:
    """Record a run of an op; several runs are merged into one span."""
    old = spans.get(key, (begin, end))
    spans[key] = (min(begin, old[0]), max(end, old[1]))


def job_trace_of(
    nodes: Iterable[Node],
    records: Sequence[StepRecord],
    *,
    batch_size: int,
    bytes_per_s: float,
    untraced_step_s: float | None,
    about: TraceOrigin,
) -> JobTrace:
    """The trace of one worker's steps.

    A traced step ends with its last op, plus the median excess of untraced steps.

    Args:
        nodes: nodes of all partition graphs.
        records: records of a worker with its servers; two or more.
        batch_size: examples of a step.
        bytes_per_s: rate of the links, each way.
        untraced_step_s: step time without tracing, seconds, if measured.
        about: origin of the trace.

    Raises:
        TraceError: the records hold no transfers, or fewer than two whole steps.
    """
    whole = _whole_steps(records)
    ops = _ops_of(nodes, whole)
    spans = np.array(
        [
            [
                (one.transfers if op.resource.is_link else one.ops)[op.key]
                for op in ops
            ]
            for one in whole
        ]
    )  # fmt: skip
    first_s = spans[:, :, 0].min(axis=1)
    begins = np.array([
        first if one.begin_s is None else one.begin_s
        for one, first in zip(whole, first_s.tolist(), strict=True)
    ])  # fmt: skip
    spans -= begins[:, None, None]
    last_s = spans[:, :, 1].max(axis=1)
    traced_s = float(np.median(last_s))
    after_s = 0.0 if untraced_step_s is None else max(untraced_step_s - traced_s, 0.0)
    return JobTrace(
        names=tuple(op.name for op in ops),
        resources=np.array([op.resource for op in ops], dtype=np.int8),
        servers=np.array([op.server for op in ops], dtype=np.int16),
        sizes=np.array([op.size for op in ops], dtype=np.int64),
        edges=np.array(
            [(j, i) for i, op in enumerate(ops) for j in op.waits_for], dtype=np.int32
        ).reshape(-1, 2),
        start_s=np.maximum(spans[:, :, 0], 0.0),
        end_s=np.maximum(spans[:, :, 1], 0.0),
        step_s=last_s + after_s,
        batch_size=batch_size,
        bytes_per_s=bytes_per_s,
        about=replace(
            about,
            traced_step_s=traced_s,
            untraced_step_s=untraced_step_s,
            left_out_steps=len(records) - len(whole),
        ),
    )


def _whole_steps(records: Sequence[StepRecord]) -> list[StepRecord]:
    """Steps with every transfer that most steps have.

    TensorFlow occasionally omits the transfers received by one task from the record of a step.
    """
    counts = Counter(key for one in records for key in one.transfers)
    usual = {key for key, count in counts.items() if 2 * count > len(records)}
    return [one for one in records if usual <= set(one.transfers)]


def _ops_of(graph: Iterable[Node], records: Sequence[StepRecord]) -> list[_Op]:
    """Ops recorded in every step, each with its dependencies.

    A node without a record, such as a `_Send`, passes its dependencies on.
    """
    nodes = {node.key: node for node in graph}
    senders = {node.tensor: key for key, node in nodes.items() if node.op in _SENDS}
    always = set.intersection(*(set(one.ops) for one in records))
    moved = set.intersection(*(set(one.transfers) for one in records))
    ops: list[_Op] = []
    stands_for: dict[Key, list[int]] = {}
    for key in _in_order(nodes, senders):
        task, name = key
        node = nodes[key]
        if node.op in _RECVS:
            sender = senders.get(node.tensor)
            waits = stands_for.get(sender, []) if sender else []
            if sender is None or (task, node.tensor) not in moved:
                stands_for[key] = waits
                continue
            down = task.startswith("worker")
            server = _number_of(sender[0] if down else task)
            kind = Resource.DOWNLINK if down else Resource.UPLINK
            size = _sent_bytes(nodes[sender], records[0])
            ops.append(_Op(node.tensor, (task, node.tensor), kind, server, size, waits))
        else:
            waits = sorted({op for other in _inputs(node) for op in stands_for.get(other, [])})
            if key not in always:
                stands_for[key] = waits
                continue
            at_worker = task.startswith("worker")
            kind = Resource.WORKER if at_worker else Resource.SERVER
            server = 0 if at_worker else _number_of(task)
            ops.append(_Op(name, key, kind, server, 0, waits))
        stands_for[key] = [len(ops) - 1]
    if not any(op.resource.is_link for op in ops):
        raise TraceError(
            "the records hold no transfers between worker and servers; profile a job with a "
            "parameter server"
        )
    return ops


def _number_of(task: str) -> int:
    """Number of a server, by its task.

    Raises:
        TraceError: the task has none.
    """
    number = task.partition(":")[2]
    if not (number.isascii() and number.isdigit() and len(number) <= _MOST_DIGITS):
        raise TraceError(
            f"the records name the device {task[:60]!r}, and a task such as ps:0 is needed; "
            "profile a job whose tasks have numbers"
        )
    return int(number)


def _sent_bytes(send: Node, record: StepRecord) -> int:
    """Bytes of the tensor that a `_Send` sends; 0 for a control dependency."""
    name, _, slot = next(iter(send.inputs), "").partition(":")
    place = int(slot) if slot.isascii() and slot.isdigit() and len(slot) <= _MOST_DIGITS else 0
    return record.sizes.get((send.key[0], name, place), 0)


def _inputs(node: Node) -> list[Key]:
    """The nodes that a node depends on."""
    return [(node.key[0], node_of(reference)) for reference in node.inputs]


def _in_order(nodes: Mapping[Key, Node], senders: Mapping[str, Key]) -> list[Key]:
    """Topological order of all nodes; back edges of loops are cut."""
    waiting: dict[Key, int] = {}
    readers: dict[Key, list[Key]] = {key: [] for key in nodes}
    for key, node in nodes.items():
        sources = [] if node.op in _LOOP_BACK else _inputs(node)
        if node.op in _RECVS:
            sender = senders.get(node.tensor)
            sources += [sender] if sender else []
        known = [source for source in sources if source in nodes]
        waiting[key] = len(known)
        for source in known:
            readers[source].append(key)
    ready = [key for key, count in waiting.items() if not count]
    order = []
    while ready:
        key = ready.pop()
        order.append(key)
        for reader in readers[key]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return order
