"""Which nodes of a graph run on the worker's compute device.

The public implementation of the paper keeps the nodes whose device contains `GPU`. Here:

1. Nodes on a GPU of the worker, if any node of a worker is on a GPU.
2. Else, if jobs are named, the nodes of the worker's job, on whatever device.
3. Else, with no job and no GPU, everything.

In 1 and 2 it is one worker (lowest task) and one GPU (lowest index), and a node without a device
comes along if it is next to a node that was kept. In 3, and for nodes without a device, variables
and the input pipeline are left out; in 2 the input pipeline is. What is left out is summed up by op
type in `OpGraph.remote`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.raw import RawNode

__all__ = ["Device", "Selection", "parse_device", "select_nodes"]

_PART = re.compile(
    r"/?(job|replica|task|device|cpu|gpu|tpu):(?:([A-Za-z_]\w*)(?::(\d{1,9}|\*))?|(\d{1,9}|\*))",
    re.IGNORECASE | re.ASCII,
)
_WORKER_JOBS = ("worker", "chief", "master", "localhost")
_SERVER_JOBS = ("ps", "evaluator")

_VARIABLES = frozenset(
    {
        "Variable", "VariableV2", "VarHandleOp", "VarIsInitializedOp", "IsVariableInitialized",
        "Assign", "AssignVariableOp", "SaveV2", "RestoreV2", "Save", "Restore", "ShardedFilename",
        "MergeV2Checkpoints", "AutoReloadVariable", "TemporaryVariable",
    }
)  # fmt: skip
_PIPELINE = re.compile(
    r".*Dataset(?:V\d+)?$|Iterator.*|.*Iterator$|OneShotIterator|MakeIterator|.*Reader(?:V\d+)?$"
    r"|ReaderRead.*|Queue.*|.*Queue(?:V\d+)?$|Decode\w*|ParseExample\w*|ParseSingle\w*|ReadFile"
    r"|MatchingFiles|Stage|Unstage|StagePeek|RecordInput|Placeholder\w*"
)


@dataclass(frozen=True, slots=True)
class Device:
    """What a device string says; None where it says nothing."""

    job: str | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Which nodes are kept.

    Attributes:
        kept: shape [num_nodes], bool.
        without_device: nodes that name no device.
        notes: what a user should know about the choice.
    """

    kept: npt.NDArray[np.bool_]
    without_device: int
    notes: tuple[str, ...]


def parse_device(text: str) -> Device:
    """The parts of a device string: `/job:worker/task:0/device:GPU:1`, or a partial `/gpu:0`."""
    job = task = kind = index = None
    for key, word, word_index, plain in _PART.findall(text):
        part = key.lower()
        if part == "job":
            job = (word or plain).lower()
        elif part == "task":
            task = int(plain) if plain.isdigit() else None
        elif part == "device":
            kind = word.upper() or None
            index = int(word_index) if word_index.isdigit() else None
        elif part != "replica":
            kind, index = part.upper(), int(plain) if plain.isdigit() else None
    return Device(job, task, kind, index)


def select_nodes(nodes: Sequence[RawNode], edges: npt.NDArray[np.int32]) -> Selection:
    """Choose the nodes of the worker's compute device.

    Args:
        nodes: all nodes, without function calls.
        edges: shape [num_edges, 2], positions of source and destination.

    Raises:
        GraphError: nothing is left.
    """
    parsed = {text: parse_device(text) for text in {node.device for node in nodes}}
    devices = [parsed[node.device] for node in nodes]
    bare = np.array([device == Device() for device in devices])
    stateful = np.array([node.op in _VARIABLES for node in nodes])
    pipeline = np.array([_PIPELINE.fullmatch(node.op) is not None for node in nodes])
    chosen, notes = _choose(set(parsed.values()))
    if chosen is None:
        kept = ~stateful & ~pipeline
        if not kept.any():
            raise GraphError(_nothing_left(nodes, "variables and input pipeline"))
        if not bare.all():
            return Selection(kept=kept, without_device=int(bare.sum()), notes=notes)
        note = "no node names a device; keeping all but variables and the input pipeline"
        return Selection(kept=kept, without_device=len(nodes), notes=(*notes, note))
    kept = np.array([_runs_on(device, chosen) for device in devices])
    if chosen.kind is None:
        kept &= ~pipeline
    near = np.zeros(len(nodes), dtype=np.bool_)
    if len(edges):
        near[edges[kept[edges[:, 0]], 1]] = True
        near[edges[kept[edges[:, 1]], 0]] = True
    follows = bare & near & ~stateful & ~pipeline
    kept |= follows
    if not kept.any():
        raise GraphError(_nothing_left(nodes, "parameter servers and input pipeline"))
    if follows.any():
        notes = (*notes, f"{follows.sum()} node(s) without a device follow their neighbours")
    return Selection(kept=kept, without_device=int(bare.sum()), notes=notes)


def _choose(devices: set[Device]) -> tuple[Device | None, tuple[str, ...]]:
    """The worker's device: job, task, and for GPUs kind and index; None if no rule names one."""
    on_workers = [device for device in devices if device.job not in _SERVER_JOBS]
    gpus = [device for device in on_workers if device.kind == "GPU"]
    named = [device for device in on_workers if device.job is not None]
    if gpus:
        candidates = sorted(
            {Device(gpu.job, gpu.task or 0, "GPU", gpu.index or 0) for gpu in gpus}, key=_rank
        )
    elif named:
        candidates = sorted({Device(one.job, one.task or 0) for one in named}, key=_rank)
    elif any(device.job is not None for device in devices):
        raise GraphError(
            "all nodes with a device are on parameter servers; give the graph of a worker's "
            "training step, with its forward and backward pass"
        )
    else:
        return None, ()
    chosen = candidates[0]
    if len(candidates) == 1:
        return chosen, ()
    word = "GPUs" if gpus else "workers"
    return chosen, (
        f"graph names {len(candidates)} {word}; keeping job {chosen.job or 'of no name'}, "
        f"task {chosen.task}" + (f", GPU {chosen.index}" if gpus else ""),
    )


def _rank(device: Device) -> tuple[int, str, int, int]:
    job = device.job or "localhost"
    place = _WORKER_JOBS.index(job) if job in _WORKER_JOBS else len(_WORKER_JOBS)
    return place, job, device.task or 0, device.index or 0


def _runs_on(device: Device, chosen: Device) -> bool:
    if device.job != chosen.job or (device.task or 0) != chosen.task:
        return False
    if chosen.kind is None:
        return device.job is not None
    return device.kind == chosen.kind and (device.index or 0) == chosen.index


def _nothing_left(nodes: Sequence[RawNode], what: str) -> str:
    return (
        f"none of the {len(nodes)} node(s) runs on a worker's compute device: all are {what}; "
        "give the graph of a worker's training step"
    )
