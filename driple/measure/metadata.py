"""From TensorFlow's record of a training step to a job trace (Li et al., section 2).

RunMetadata of some steps -> times of ops, times of transfers
partition graphs          -> who waits for whom, across `_Send` and `_Recv`
                          -> JobTrace

A partition graph is the part of a graph that one device runs, after TensorFlow's own changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from driple.errors import TraceError
from driple.throughput.jobtrace import JobTrace, Resource

__all__ = ["ProfiledStep", "job_trace_of", "transfer_spans"]

_TASK = re.compile(r"/job:(?P<job>\w+)/replica:\d+/task:(?P<task>\d+)")
_TRANSFER = re.compile(r"\[[^\]]*\] \[[^\]]*\] (?P<tensor>\S+) from (?P<sender>\S+) to (?P<to>\S+)")
_SENDS, _RECVS = frozenset({"_Send", "_HostSend"}), frozenset({"_Recv", "_HostRecv"})
_LOOP_BACK = frozenset({"NextIteration", "RefNextIteration"})
_TRANSFER_NODE = "RecvTensor"

Span = tuple[float, float]  # begin and end, seconds since the epoch


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfiledStep:
    """One step that was run with full tracing.

    Attributes:
        metadata: serialised `RunMetadata`; that of the first step holds the partition graphs.
        begin_s: when the step began, seconds since the epoch; None: with its first op.
    """

    metadata: bytes
    begin_s: float | None


@dataclass(slots=True)
class _Times:
    """What one step's record holds."""

    ops: dict[tuple[str, str], Span]  # by task and node
    transfers: dict[tuple[str, str], Span]  # by receiving task and tensor
    sizes: dict[tuple[str, str, int], int]  # bytes of an output, by task, node and slot


@dataclass(slots=True)
class _Op:
    name: str
    key: tuple[str, str]
    resource: Resource
    server: int
    size: int
    waits_for: list[int]


def job_trace_of(
    steps: Sequence[ProfiledStep],
    *,
    batch_size: int,
    bytes_per_s: float,
    untraced_step_s: float | None,
    about: Mapping[str, Any],
) -> JobTrace:
    """The trace of one worker's steps.

    A traced step ends with its last op, plus what steps without tracing take longer than that in
    the median.

    Args:
        steps: of a worker with its servers; two or more.
        batch_size: examples of a step.
        bytes_per_s: rate of the links, each way.
        untraced_step_s: seconds of a step without tracing, if they were measured.
        about: what else tells where it comes from.

    Raises:
        TraceError: the records are damaged, or hold no partition graphs or no transfers.
    """
    from tensorflow.core.framework import types_pb2  # an extra, loaded when needed
    from tensorflow.python.framework.dtypes import as_dtype

    records = [_parsed(step.metadata, number) for number, step in enumerate(steps)]
    if not records or not records[0].partition_graphs:
        raise TraceError(
            "the first step's RunMetadata holds no partition graphs; run it with "
            "RunOptions(trace_level=FULL_TRACE, output_partition_graphs=True)"
        )
    size_of = {kind: as_dtype(kind).size for kind in types_pb2.DataType.values() if 0 < kind < 100}
    times = [_times_of(record, size_of) for record in records]
    whole = _whole_steps(times)
    steps, times = [steps[i] for i in whole], [times[i] for i in whole]
    ops = _ops_of(records[0].partition_graphs, times)
    spans = np.array(
        [
            [
                (one.transfers if op.resource.is_link else one.ops)[op.key]
                for op in ops
            ]
            for one in times
        ]
    )  # fmt: skip
    first_s = spans[:, :, 0].min(axis=1)
    begins = np.array([
        first if step.begin_s is None else step.begin_s
        for step, first in zip(steps, first_s.tolist(), strict=True)
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
        about={
            **about,
            "traced_step_s": traced_s,
            "untraced_step_s": untraced_step_s,
            "left_out_steps": len(records) - len(whole),
        },
    )


def transfer_spans(metadata: bytes) -> list[Span]:
    """Begin and end of every transfer of a step, seconds since the epoch.

    Raises:
        TraceError: the record is damaged.
    """
    return [*_times_of(_parsed(metadata, 0), {}).transfers.values()]


def _parsed(metadata: bytes, number: int) -> Any:
    """A `RunMetadata`.

    Raises:
        TraceError: it is damaged.
    """
    from tensorflow.core.protobuf import config_pb2  # an extra, loaded when needed

    record = config_pb2.RunMetadata()
    try:
        record.ParseFromString(metadata)
    except DecodeError as error:
        raise TraceError(f"RunMetadata of step {number} is damaged ({error})") from error
    return record


def _task(device: str) -> str:
    """`worker:0` of a device's full name."""
    found = _TASK.search(device)
    return f"{found['job']}:{found['task']}" if found else device


def _times_of(record: Any, size_of: Mapping[int, int]) -> _Times:
    """Begin and end of every op and transfer; of one that ran several times, the whole span."""
    made = _Times({}, {}, {})
    for device in record.step_stats.dev_stats:
        task = _task(device.device)
        for node in device.node_stats:
            begin = node.all_start_micros / 1e6
            end = begin + node.all_end_rel_micros / 1e6
            if node.node_name == _TRANSFER_NODE:
                found = _TRANSFER.match(node.timeline_label)
                if found:
                    _widen(made.transfers, (_task(found["to"]), found["tensor"]), begin, end)
                continue
            _widen(made.ops, (task, node.node_name), begin, end)
            for output in node.output:
                what = output.tensor_description
                count = int(np.prod([d.size for d in what.shape.dim], dtype=np.int64))
                made.sizes[task, node.node_name, output.slot] = count * size_of.get(
                    what.dtype % 100, 0
                )
    return made


def _widen(
    spans: dict[tuple[str, str], Span], key: tuple[str, str], begin: float, end: float
) -> None:
    old = spans.get(key, (begin, end))
    spans[key] = (min(begin, old[0]), max(end, old[1]))


def _whole_steps(times: Sequence[_Times]) -> list[int]:
    """Steps that hold every transfer that most steps hold.

    Now and then the record of a step comes without the transfers that one task received.
    """
    counts = Counter(key for one in times for key in one.transfers)
    usual = {key for key, count in counts.items() if 2 * count > len(times)}
    return [i for i, one in enumerate(times) if usual <= set(one.transfers)]


def _ops_of(graphs: Iterable[Any], times: Sequence[_Times]) -> list[_Op]:
    """Ops that every step recorded, each with those that it waits for.

    A node without a record, such as a `_Send`, hands on what it waits for.
    """
    nodes = {(_task(node.device), node.name): node for graph in graphs for node in graph.node}
    senders = {
        node.attr["tensor_name"].s.decode(): key for key, node in nodes.items() if node.op in _SENDS
    }
    always = set.intersection(*(set(one.ops) for one in times))
    moved = set.intersection(*(set(one.transfers) for one in times))
    ops: list[_Op] = []
    stands_for: dict[tuple[str, str], list[int]] = {}
    for key in _in_order(nodes, senders):
        task, name = key
        node = nodes[key]
        if node.op in _RECVS:
            tensor = node.attr["tensor_name"].s.decode()
            sender = senders.get(tensor)
            waits = stands_for.get(sender, []) if sender else []
            if sender is None or (task, tensor) not in moved:
                stands_for[key] = waits
                continue
            down = task.startswith("worker")
            server = int((sender[0] if down else task).partition(":")[2])
            kind = Resource.DOWNLINK if down else Resource.UPLINK
            size = _sent_bytes(nodes[sender], sender[0], times[0])
            ops.append(_Op(tensor, (task, tensor), kind, server, size, waits))
        else:
            waits = sorted(
                {op for other in _inputs(node, task) for op in stands_for.get(other, [])}
            )
            if key not in always:
                stands_for[key] = waits
                continue
            at_worker = task.startswith("worker")
            kind = Resource.WORKER if at_worker else Resource.SERVER
            server = 0 if at_worker else int(task.partition(":")[2])
            ops.append(_Op(name, key, kind, server, 0, waits))
        stands_for[key] = [len(ops) - 1]
    if not any(op.resource.is_link for op in ops):
        raise TraceError(
            "the RunMetadata holds no transfers between worker and servers; profile a job with a "
            "parameter server"
        )
    return ops


def _sent_bytes(send: Any, task: str, times: _Times) -> int:
    """Bytes of the tensor that a `_Send` sends; none of a control dependency."""
    name, _, slot = send.input[0].partition(":")
    return times.sizes.get((task, name, int(slot or 0)), 0)


def _inputs(node: Any, task: str) -> list[tuple[str, str]]:
    """The nodes that a node reads or waits for."""
    return [(task, name.lstrip("^").partition(":")[0]) for name in node.input]


def _in_order(
    nodes: Mapping[tuple[str, str], Any], senders: Mapping[str, tuple[str, str]]
) -> list[tuple[str, str]]:
    """All nodes, each after those that it waits for; a loop's way back is cut."""
    waiting: dict[tuple[str, str], int] = {}
    readers: dict[tuple[str, str], list[tuple[str, str]]] = {key: [] for key in nodes}
    for key, node in nodes.items():
        sources = [] if node.op in _LOOP_BACK else _inputs(node, key[0])
        if node.op in _RECVS:
            sender = senders.get(node.attr["tensor_name"].s.decode())
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
