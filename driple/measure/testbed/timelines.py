"""Read Chrome timelines of TensorFlow steps as nodes and records.

    timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True)

A timeline names the inputs of each op. `X_S5` (`X/_5` within one process) is the output of `X` on
another device, so the names give the dependencies and the transferred tensors. Tensor descriptions,
which show_memory adds, give their bytes. Two facts are missing and are inferred:

- The tensor of a transfer: only the receiving device and the time are recorded. Transfers of a
  device are assigned to its tensors in order of their ends, each to the tensor that was sent by
  then, is not too large for the time, and is read first (earliest deadline first).
- The dependencies of a constant. A constant that runs late is assumed to wait for the ops of its
  device that ended before it in every step and that no other such op reads.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from driple.errors import TraceError
from driple.graph.tf.functions import node_of
from driple.measure.testbed.step_trace import (
    MOST_TENSOR_BYTES,
    Key,
    Node,
    Span,
    StepRecord,
    task_of,
    widen,
)

__all__ = ["records_of_timelines"]

_RECEIVED = re.compile(r"(?P<name>.+)(?:_S|/_)\d+")
_DIM = re.compile(r"\bsize: (-?\d+)")
_TYPE = re.compile(r"\bdtype: DT_(\w+)")
_BITS = re.compile(r"\d+$")
_BYTES = {"FLOAT": 4, "DOUBLE": 8, "HALF": 2, "BOOL": 1}  # others end with their width
_TRANSFER = "RecvTensor"
_SOURCE = "_SOURCE"  # root of every partition; no op of the job
_COMPUTE, _TENSORS = " Compute", " Tensors"
_CLOCK_S = 5e-6  # timelines have whole microseconds


@dataclass(slots=True)
class _Timeline:
    """Content of one file."""

    ops: dict[Key, Span] = field(default_factory=dict)
    inputs: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    types: dict[Key, str] = field(default_factory=dict)
    transfers: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[tuple[str, str, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Travelling:
    """A tensor transferred between devices, with its receiver and sender."""

    at: Key
    sent: Key
    is_control: bool


def records_of_timelines(
    files: Mapping[str, bytes], bytes_per_s: float
) -> tuple[list[Node], list[StepRecord]]:
    """Nodes of the executed ops, and the record of each step.

    Steps in which the number of received tensors differs from the names are left out.

    Args:
        files: content of each timeline, by name, one step each.
        bytes_per_s: rate of the links.

    Raises:
        TraceError: a file is no timeline or has no tensor sizes, or no step holds all transfers.
    """
    steps = [_parsed(name, content) for name, content in files.items()]
    if not any(step.sizes for step in steps):
        raise TraceError(
            f"{next(iter(files))} tells no bytes of tensors; make timelines with "
            "generate_chrome_trace_format(show_memory=True)"
        )
    travelling, waits = _travelling(steps[0]), _lost_waits(steps)
    nodes = [
        Node(key=key, op=steps[0].types[key], inputs=inputs or waits.get(key, ()))
        for key, inputs in steps[0].inputs.items()
    ]
    for transfer in travelling:
        tensor = transfer.at[1]
        sent = f"^{transfer.sent[1]}" if transfer.is_control else transfer.sent[1]
        sender = (transfer.sent[0], f"{tensor}/send")
        nodes.append(Node(key=sender, op="_Send", inputs=(sent,), tensor=tensor))
        nodes.append(Node(key=transfer.at, op="_Recv", inputs=(), tensor=tensor))
    wanted = Counter(one.at[0] for one in travelling)
    whole = [step for step in steps if _lacking(step, wanted) is None]
    if not whole:
        task = _lacking(steps[0], wanted)
        raise TraceError(
            f"{task} reads {wanted[str(task)]} tensors of other devices, and received "
            f"{len(steps[0].transfers[str(task)])}; give the RunMetadata, with partition graphs"
        )
    return nodes, [_record(step, travelling, bytes_per_s) for step in whole]


def _parsed(name: str, content: bytes) -> _Timeline:
    """Events of a timeline.

    Raises:
        TraceError: the file is no timeline.
    """
    timeline = _Timeline()
    try:
        events = json.loads(content)["traceEvents"]
        devices = {
            event["pid"]: str(event["args"]["name"])
            for event in events
            if event["ph"] == "M" and event["name"] == "process_name"
        }
        for event in events:
            device = devices.get(event.get("pid"), "")
            if event["ph"] == "X" and device.endswith(_COMPUTE):
                _add_op(timeline, task_of(device), event)
            elif event["ph"] == "O" and device.endswith(_TENSORS):
                node, _, slot = str(event["name"]).partition(":")
                text = str(event["args"]["snapshot"]["tensor_description"])
                timeline.sizes[task_of(device), node, int(slot or 0)] = _num_bytes(text)
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise TraceError(
            f"{name} is no Chrome timeline of TensorFlow ({type(error).__name__}: {error}); give "
            "files of tf.compat.v1's timeline, or serialised RunMetadata"
        ) from error
    if not timeline.ops:
        raise TraceError(f"{name} holds no ops of TensorFlow; give a timeline of a training step")
    return timeline


def _add_op(timeline: _Timeline, task: str, event: Mapping[str, Any]) -> None:
    begin, lasted = float(event["ts"]) / 1e6, float(event["dur"]) / 1e6
    if not (math.isfinite(begin) and math.isfinite(lasted) and lasted >= 0):
        raise ValueError(f"an op begins at {begin} s and lasts {lasted} s")
    args = event["args"]
    if args["op"] == _TRANSFER:
        timeline.transfers[task].append((begin, begin + lasted))
        return
    key = task, str(args["name"])
    if key[1] == _SOURCE:
        return
    widen(timeline.ops, key, begin, begin + lasted)
    inputs = tuple(str(value) for name, value in args.items() if re.fullmatch(r"input\d+", name))
    if (
        inputs or key not in timeline.inputs
    ):  # kernels of a GPU carry the op's name without its inputs
        timeline.inputs[key], timeline.types[key] = inputs, str(args["op"])


def _num_bytes(description: str) -> int:
    """Bytes of a tensor, from the text of its TensorDescription."""
    kind = _TYPE.search(description)
    if kind is None:
        return 0
    name = kind[1].removesuffix("_REF")
    bits = _BITS.search(name)
    width = _BYTES.get(name, int(bits[0]) // 8 if bits else 0)
    shape = description.partition("allocation_description")[0]
    sizes = [int(size) for size in _DIM.findall(shape)]
    if min(sizes, default=0) < 0 or math.prod(sizes) * width > MOST_TENSOR_BYTES:
        raise ValueError(f"a tensor has the shape {str(sizes)[:80]}")
    return math.prod(sizes) * width


def _lost_waits(steps: Sequence[_Timeline]) -> dict[Key, tuple[str, ...]]:
    """Inferred dependencies of ops without inputs: ops that always ended before they started."""
    always = set.intersection(*(set(step.ops) for step in steps))
    waits: dict[Key, tuple[str, ...]] = {}
    for task in {task for task, _ in always}:
        here = sorted(name for place, name in always if place == task)
        begins, ends = (
            np.array([[step.ops[task, name][side] for name in here] for step in steps])
            for side in (0, 1)
        )
        inputs = [set(map(node_of, steps[0].inputs[task, name])) for name in here]
        for i, name in enumerate(here):
            if inputs[i]:
                continue
            before = [int(j) for j in np.flatnonzero((ends <= begins[:, [i]]).all(axis=0))]
            done = [j for j in before if inputs[j]]
            read = set().union(*(inputs[j] for j in done))
            waits[task, name] = tuple(f"^{here[j]}" for j in done if here[j] not in read)
    return waits


def _travelling(first: _Timeline) -> list[_Travelling]:
    """Inputs that come from an op of another device."""
    places: dict[str, list[str]] = defaultdict(list)
    for task, name in first.ops:
        places[name].append(task)
    travelling: dict[Key, _Travelling] = {}
    for (task, reader), inputs in first.inputs.items():
        for name in map(node_of, inputs):
            parts = _RECEIVED.fullmatch(name)
            if (task, name) in first.ops or parts is None:
                continue
            others = [place for place in places.get(parts["name"], ()) if place != task]
            if others:
                # A control dependency on another device appears as an Identity of the same name.
                base = _RECEIVED.fullmatch(reader)
                is_control = base is not None and base["name"] == parts["name"]
                key = task, name
                travelling[key] = _Travelling(key, (others[0], parts["name"]), is_control)
    return list(travelling.values())


def _lacking(step: _Timeline, wanted: Counter[str]) -> str | None:
    """A task whose number of received tensors differs from the expected number, 0 of most."""
    tasks = (*wanted, *(task for task in step.transfers if task not in wanted))
    return next((task for task in tasks if len(step.transfers[task]) != wanted[task]), None)


def _record(step: _Timeline, travelling: Sequence[_Travelling], bytes_per_s: float) -> StepRecord:
    """The record of a step, with a transfer for each tensor."""
    first_read: dict[Key, float] = {}
    for key, inputs in step.inputs.items():
        for name in map(node_of, inputs):
            begin = step.ops[key][0]
            read = key[0], name
            first_read[read] = min(first_read.get(read, begin), begin)
    transfers: dict[Key, Span] = {}
    for task, spans in step.transfers.items():
        left = [one for one in travelling if one.at[0] == task]
        sent_s = {one.at: step.ops.get(one.sent, (0.0, 0.0))[1] for one in left}
        read_s = {one.at: first_read.get(one.at, math.inf) for one in left}
        least_s = {
            one.at: 0 if one.is_control else step.sizes.get((*one.sent, 0), 0) / bytes_per_s
            for one in left
        }
        for begin, end in sorted(spans, key=lambda span: span[1]):
            sent = [one for one in left if sent_s[one.at] <= end + _CLOCK_S]
            fit = [one for one in sent if least_s[one.at] <= end - begin + _CLOCK_S]
            taken = min(fit or sent or left, key=lambda one: (read_s[one.at], one.at))
            left.remove(taken)
            transfers[task, taken.at[1]] = begin, end
    return StepRecord(ops=step.ops, transfers=transfers, sizes=step.sizes)
