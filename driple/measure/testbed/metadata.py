"""TensorFlow's `RunMetadata` of some steps -> their nodes and records (Li et al., section 2)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from google.protobuf.message import DecodeError

from driple.errors import TraceError
from driple.measure.testbed.step_trace import (
    MOST_TENSOR_BYTES,
    Node,
    Span,
    StepRecord,
    task_of,
    widen,
)

__all__ = ["ProfiledStep", "records_of", "transfer_spans"]

_TRANSFER = re.compile(r"\[[^\]]*\] \[[^\]]*\] (?P<tensor>\S+) from (?P<sender>\S+) to (?P<to>\S+)")
_TRANSFER_NODE = "RecvTensor"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfiledStep:
    """One step that was run with full tracing.

    Attributes:
        metadata: serialised `RunMetadata`; that of the first step holds the partition graphs.
        begin_s: start of the step, seconds since the epoch; None: the start of its first op.
    """

    metadata: bytes
    begin_s: float | None


def records_of(steps: Sequence[ProfiledStep]) -> tuple[list[Node], list[StepRecord]]:
    """Nodes of all partition graphs, and the record of each step.

    Raises:
        TraceError: a step is damaged, or the first holds no partition graphs.
    """
    from tensorflow.core.framework import types_pb2  # an extra, loaded when needed
    from tensorflow.python.framework.dtypes import as_dtype

    metadata = [_parsed(step.metadata, number) for number, step in enumerate(steps)]
    if not metadata or not metadata[0].partition_graphs:
        raise TraceError(
            "the first step's RunMetadata holds no partition graphs; run it with "
            "RunOptions(trace_level=FULL_TRACE, output_partition_graphs=True)"
        )
    size_of = {kind: as_dtype(kind).size for kind in types_pb2.DataType.values() if 0 < kind < 100}
    nodes = [
        Node(
            key=(task_of(node.device), node.name),
            op=node.op,
            inputs=tuple(node.input),
            tensor=_text(node.attr["tensor_name"].s) if "tensor_name" in node.attr else "",
        )
        for graph in metadata[0].partition_graphs
        for node in graph.node
    ]
    records = [
        _record(one, size_of, step.begin_s) for one, step in zip(metadata, steps, strict=True)
    ]
    return nodes, records


def transfer_spans(metadata: bytes) -> list[Span]:
    """Start and end of every transfer of a step, seconds since the epoch.

    Raises:
        TraceError: the record is damaged.
    """
    return [*_record(_parsed(metadata, 0), {}, None).transfers.values()]


def _parsed(metadata: bytes, number: int) -> Any:
    """Parse a `RunMetadata`.

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


def _text(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise TraceError(
            f"RunMetadata names a tensor {name[:60]!r}, which is no UTF-8; the record is damaged"
        ) from error


def _record(metadata: Any, size_of: Mapping[int, int], begin_s: float | None) -> StepRecord:
    record = StepRecord(ops={}, transfers={}, sizes={}, begin_s=begin_s)
    for device in metadata.step_stats.dev_stats:
        task = task_of(device.device)
        for node in device.node_stats:
            begin = node.all_start_micros / 1e6
            end = begin + node.all_end_rel_micros / 1e6
            if node.node_name == _TRANSFER_NODE:
                transfer = _TRANSFER.match(node.timeline_label)
                if transfer:
                    key = task_of(transfer["to"]), transfer["tensor"]
                    widen(record.transfers, key, begin, end)
                continue
            widen(record.ops, (task, node.node_name), begin, end)
            for output in node.output:
                what = output.tensor_description
                sizes = [d.size for d in what.shape.dim]
                nbytes = prod(sizes) * size_of.get(what.dtype % 100, 0)
                if min(sizes, default=0) < 0 or nbytes > MOST_TENSOR_BYTES:
                    raise TraceError(
                        f"RunMetadata: output {output.slot} of {node.node_name[:60]!r} has the "
                        f"shape {str(sizes)[:80]}; the record is damaged"
                    )
                record.sizes[task, node.node_name, output.slot] = nbytes
    return record
