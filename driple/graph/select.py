"""Which nodes of a graph run on the worker's compute device.

The public implementation of the paper keeps the nodes whose device contains `GPU`. Here:

1. Nodes on a GPU of the worker, if any node of a worker is on a GPU.
2. Else, if jobs are named, the nodes of the worker's job, on whatever device.
3. Else, with no job and no GPU, everything.

In 1 and 2 it is one worker (lowest task) and one GPU (lowest index); a device without a job is that
worker's. A node without a device, and in 1 one of the worker without a device type, is placed by
TensorFlow when the graph runs: it comes along if nodes of its kind link it to a node that was kept,
a constant only if it is next to one on that device (farther ones are sizes and positions).
In 3, and for such nodes, variables, their updates and the input pipeline are left out, in 3 also
what only initialises variables; in 2 the input pipeline is. What is left out is summed up by op
type in `OpGraph.remote`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

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
# What changes a variable runs where the variable is: optimizers, sums, gradient accumulators.
_UPDATES = re.compile(
    r"(?:Resource)?(?:Sparse)?Apply[A-Z]\w*|Assign(?:Add|Sub)(?:VariableOp)?|StridedSliceAssign"
    r"|ResourceStridedSliceAssign|(?:Resource)?Scatter(?:Nd)?(?:Add|Sub|Mul|Div|Min|Max|Update)"
    r"|(?:Resource|Sparse)?ConditionalAccumulator|(?:Resource|Sparse)?Accumulator[A-Z]\w*"
)
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
    ops, texts = [node.op for node in nodes], [node.device for node in nodes]
    read = {text: parse_device(text) for text in set(texts)}
    home = _home(read.values())
    devices = {text: _at_home(device, home) for text, device in read.items()}
    bare = _mask(texts, lambda text: devices[text] == Device())
    pipeline = _mask(ops, lambda op: _PIPELINE.fullmatch(op) is not None)
    stateful = _mask(ops, lambda op: op in _VARIABLES)
    movable = ~stateful & ~pipeline & ~_mask(ops, lambda op: _UPDATES.fullmatch(op) is not None)
    chosen, notes = _choose(set(devices.values()))
    if chosen is None:
        kept = movable & ~_initializers(edges, stateful, pipeline)
        if not kept.any():
            raise GraphError(_nothing_left(nodes, "variables and input pipeline"))
        if bare.all():
            notes = (
                *notes,
                "no node names a device; keeping all but variables, what updates or initialises "
                "them, and the input pipeline",
            )
        return Selection(kept=kept, without_device=int(bare.sum()), notes=notes)
    kept = _mask(texts, lambda text: _runs_on(devices[text], chosen))
    if chosen.kind is None:
        kept &= ~pipeline
    untyped = _mask(texts, lambda text: _may_run_on(devices[text], chosen))
    constant = _mask(ops, lambda op: op == "Const")
    follows = _linked(edges, kept, (bare | untyped) & movable, constant)
    kept |= follows
    if not kept.any():
        raise GraphError(_nothing_left(nodes, "parameter servers and input pipeline"))
    said = (*_said_of("a device", bare, follows), *_said_of("a device type", untyped, follows))
    return Selection(kept=kept, without_device=int(bare.sum()), notes=(*notes, *said))


def _mask(words: Sequence[str], holds: Callable[[str], bool]) -> npt.NDArray[np.bool_]:
    """For which words it holds; each different one is looked at once."""
    passing = {word for word in set(words) if holds(word)}
    return np.array([word in passing for word in words], dtype=np.bool_)


def _home(devices: Iterable[Device]) -> Device | None:
    """The worker that devices without a job belong to, if one is named: one with a GPU first."""
    named = [one for one in devices if one.job is not None and one.job not in _SERVER_JOBS]
    first = min(named, key=lambda device: (device.kind != "GPU", _rank(device)), default=None)
    return None if first is None else Device(first.job, first.task or 0)


def _at_home(device: Device, home: Device | None) -> Device:
    if home is None or device.job is not None or device == Device():
        return device
    return replace(device, job=home.job, task=home.task if device.task is None else device.task)


def _linked(
    edges: npt.NDArray[np.int32],
    kept: npt.NDArray[np.bool_],
    may_follow: npt.NDArray[np.bool_],
    constant: npt.NDArray[np.bool_],
) -> npt.NDArray[np.bool_]:
    """Nodes that may follow and that others of them, none a constant, link to a kept one."""
    neighbours: defaultdict[int, list[int]] = defaultdict(list)
    for source, target in edges[may_follow[edges].any(axis=1)].tolist():
        neighbours[source].append(target)
        neighbours[target].append(source)
    follows = np.zeros(len(kept), dtype=np.bool_)
    waiting = (may_follow & ~kept).tolist()
    todo = np.flatnonzero(kept).tolist()
    while todo:
        reached = todo.pop()
        for node in neighbours.get(reached, ()):
            if waiting[node] and (kept[reached] or not constant[node]):
                waiting[node] = False
                follows[node] = True
                if not constant[node]:
                    todo.append(node)
    return follows


def _initializers(
    edges: npt.NDArray[np.int32], stateful: npt.NDArray[np.bool_], pipeline: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Nodes that are computed from no variable and no input, and only for variables.

    The condition on where they come from keeps a backward pass whose updates are plain assignments.
    """
    num_nodes = len(stateful)
    readers: list[list[int]] = [[] for _ in range(num_nodes)]
    sources: list[list[int]] = [[] for _ in range(num_nodes)]
    for source, target in edges.tolist():
        readers[source].append(target)
        sources[target].append(source)
    computed = (stateful | pipeline).tolist()
    todo = np.flatnonzero(computed).tolist()
    while todo:
        for node in readers[todo.pop()]:
            if not computed[node]:
                computed[node] = True
                todo.append(node)
    found = np.zeros(num_nodes, dtype=np.bool_)
    unread = [len(nodes) for nodes in readers]
    todo = np.flatnonzero(stateful).tolist()
    while todo:
        for node in sources[todo.pop()]:
            unread[node] -= 1
            if not unread[node] and not computed[node]:
                found[node] = True
                todo.append(node)
    return found


def _said_of(
    what: str, without: npt.NDArray[np.bool_], follows: npt.NDArray[np.bool_]
) -> tuple[str, ...]:
    kept, left = int((without & follows).sum()), int((without & ~follows).sum())
    if not kept and not left:
        return ()
    return (f"of the nodes without {what}, {kept} follow their neighbours and {left} are left out",)


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


def _may_run_on(device: Device, chosen: Device) -> bool:
    """On the chosen worker, without a device type, where the choice is a GPU."""
    return (
        chosen.kind is not None
        and device.kind is None
        and _runs_on(replace(device, kind=chosen.kind, index=chosen.index), chosen)
    )


def _nothing_left(nodes: Sequence[RawNode], what: str) -> str:
    return (
        f"none of the {len(nodes)} node(s) runs on a worker's compute device: all are {what}; "
        "give the graph of a worker's training step"
    )
