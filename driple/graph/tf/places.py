"""Places of the nodes of a step: the worker's compute device, its host, or servers.

    device strings, `_class`, handles --resolve--> machine and device of each node --> Places

A node without a device runs where TensorFlow's placer puts it (placer.cc, colocation_graph.cc):
with the node that `_class: loc:@x` names; with the variable whose handle or reference it takes;
with its only readers if it is a constant; with what it measures if it is a Shape; on the worker
otherwise.

The worker is one task of one job and one device: a GPU if any is named. Its variables and updates
run on parameter servers, where the graph says so; where it names none, they are taken out all the
same, as a setting with servers would, and `layout` keeps what the graph says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.opgraph import Layout
from driple.graph.tf.describe import DataInputs
from driple.graph.tf.holders import HANDS_ON, PIPELINE, holders_of
from driple.graph.tf.links import GraphLinks
from driple.graph.tf.raw import RawNode
from driple.graph.tf.slots import Slots, find_slots
from driple.graph.tf.step_ops import UPDATES, VARIABLES
from driple.remarks import Remark, remark
from driple.units import counted

__all__ = ["DevicePlace", "Places", "parse_device", "place_nodes"]

BoolArray = npt.NDArray[np.bool_]

_PART = re.compile(
    r"/?(job|replica|task|device|cpu|gpu|tpu):(?:([A-Za-z_]\w*)(?::(\d{1,9}|\*))?|(\d{1,9}|\*))",
    re.IGNORECASE | re.ASCII,
)
_WORKER_JOBS = ("worker", "chief", "master", "localhost")
_SERVER_JOB = re.compile(r"ps\d*|(?:parameter_)?servers?|evaluator|param_server")
_ASSIGNS = frozenset({"Assign", "AssignVariableOp"})
_METADATA = frozenset({"Shape", "Size", "Rank"})
_COLLECTIVE = re.compile(r"HorovodAll\w+|Horovod\w*Reduce\w*|Nccl\w+|_NcclReduce\w*|Collective\w+")
_MOST_HOPS = 16  # of colocation, one node with another


@dataclass(frozen=True, slots=True)
class DevicePlace:
    """Parts of a device string; None for parts that it lacks."""

    job: str | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None


_NOWHERE = DevicePlace()


@dataclass(frozen=True, kw_only=True, slots=True)
class Places:
    """Places of nodes.

    Attributes:
        kept: shape [num_nodes], bool: on the worker's compute device.
        is_remote: shape [num_nodes], bool: on another machine than the worker, or taken to be.
        is_apart: shape [num_nodes], bool: on another GPU of the worker, which is a worker itself.
        num_parts: GPUs of the worker, or processors that are devices; one of them was kept.
        device: shape [num_nodes], int32, number of the device; nodes of one number share one.
        fetched: shape [num_nodes], int32, the variable whose whole value a node gives, where the
            graph names no server: a worker then fetches each once a step, however often the graph
            reads it; -1 of all others.
        slots: what belongs to updates that are written as arithmetic.
        layout: what the graph says of servers.
        without_device: nodes that name no device.
        notes: what a user should know about the choice.
        holder: the variable whose handle, reference or value each node has, or -1.
    """

    kept: BoolArray
    is_remote: BoolArray
    is_apart: BoolArray
    num_parts: int
    device: npt.NDArray[np.int32]
    fetched: npt.NDArray[np.int32]
    slots: Slots
    layout: Layout
    without_device: int
    notes: tuple[Remark, ...]
    holder: Sequence[int]

    def is_state(self, source: int, target: int) -> bool:
        """Whether an edge between machines carries the state of an optimizer or weight decay.

        Where updates are arithmetic on the worker, it fetches and sends these too.
        """
        slots, holder = self.slots, self.holder
        if self.is_remote[source]:
            return holder[source] >= 0 and bool(slots.variables[holder[source]])
        if not slots.arithmetic[source] or holder[target] < 0:
            return False
        return bool(slots.without_gradient[source] or slots.variables[holder[target]])


def parse_device(text: str) -> DevicePlace:
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
    return DevicePlace(job, task, kind, index)


def place_nodes(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    links: GraphLinks,
    order: Sequence[int],
    runs: BoolArray,
) -> Places:
    """Place the nodes of a step.

    Args:
        nodes: all nodes, without function calls.
        inputs: what each of them reads.
        links: the same with control edges.
        order: positions, a node after all that it reads, but for the edges back of loops.
        runs: shape [num_nodes], whether the step runs it.

    Raises:
        GraphError: nothing runs on a worker's compute device.
    """
    placer = _Placer(nodes, inputs, links, order, runs)
    kept = placer.kept()
    if not kept.any():
        raise GraphError(
            f"none of the {counted(int(runs.sum()), 'node')} of a step runs on a worker's compute "
            "device: all are variables, updates, parameter servers or input pipeline; give the "
            "graph of a worker's training step, with its forward and backward pass"
        )
    return Places(
        kept=kept,
        is_remote=placer.is_remote,
        is_apart=placer.is_apart(kept),
        num_parts=placer.num_parts,
        device=placer.numbers(kept),
        fetched=placer.fetched(),
        slots=placer.slots,
        layout=placer.layout,
        without_device=sum(not node.device for node in nodes),
        notes=placer.notes,
        holder=placer.holder,
    )


class _Placer:
    """Resolves devices, then says which nodes are the worker's."""

    def __init__(
        self,
        nodes: Sequence[RawNode],
        inputs: DataInputs,
        links: GraphLinks,
        order: Sequence[int],
        runs: BoolArray,
    ) -> None:
        self.nodes, self.inputs, self.links, self.order, self.runs = (
            nodes, inputs, links, order, runs,
        )  # fmt: skip
        ops = {node.op for node in nodes}
        self.ops = [node.op for node in nodes]
        self.pipeline = self._mask({op for op in ops if PIPELINE.fullmatch(op)})
        self.root = self._roots()
        self.holder = holders_of(nodes, inputs, order)
        read = {text: parse_device(text) for text in {node.device for node in nodes}}
        self.own = [read[node.device] for node in nodes]
        self.notes: tuple[Remark, ...] = ()
        self.num_parts = 1
        self.chosen = self._choose()
        self.devices = self._resolve()
        self.layout = self._layout()
        self.slots = find_slots(nodes, inputs, order, runs, self.holder)
        self.is_remote = self._remote()

    def _mask(self, names: Iterable[str]) -> BoolArray:
        wanted = set(names)
        return np.array([op in wanted for op in self.ops], dtype=np.bool_)

    def _roots(self) -> list[int]:
        """The node whose device each one shares by `_class`; itself without."""
        index = {node.name: i for i, node in enumerate(self.nodes)}
        roots = []
        for i, node in enumerate(self.nodes):
            at = i
            if not node.colocated:
                roots.append(i)
                continue
            for _ in range(_MOST_HOPS):
                names = self.nodes[at].colocated
                after = next((index[name] for name in names if name in index), at)
                if after == at:
                    break
                at = after
            roots.append(at)
        return roots

    def _choose(self) -> DevicePlace:
        """The worker's device: job and task, and for GPUs kind and index."""
        named = {device for device, runs in zip(self.own, self.runs, strict=True) if runs}
        on_workers = [one for one in named if one.job is None or not _SERVER_JOB.fullmatch(one.job)]
        parts = [one for one in on_workers if one.kind == "GPU"]
        if not parts:  # several processors as devices, as MirroredStrategy takes them
            parts = [one for one in on_workers if one.kind == "CPU"]
            parts = parts if any(one.index for one in parts) else []
        jobs = [one for one in on_workers if one.job is not None]
        home = min(jobs, key=lambda one: (one.kind != "GPU", _rank(one)), default=None)
        job, task = (None, None) if home is None else (home.job, home.task or 0)
        if not parts:
            others = {(one.job, one.task or 0) for one in jobs} - {(job, task)}
            if others:
                self.notes = (
                    remark("worker_kept", num_workers=len(others) + 1, job=job, task=task),
                )
            return DevicePlace(job, task)
        kind = parts[0].kind
        candidates = {
            DevicePlace(one.job or job, (one.task or 0) if one.job else task, kind, one.index or 0)
            for one in parts
        }
        chosen = min(candidates, key=_rank)
        if len(candidates) > 1:
            self.num_parts = len(candidates)
            self.notes = (
                remark(
                    "device_kept",
                    num_devices=len(candidates),
                    kind=kind,
                    job=chosen.job,
                    task=chosen.task or 0,
                    index=chosen.index,
                ),
            )
        return chosen

    def _resolve(self) -> list[DevicePlace]:
        """The device of each node, as far as the graph and TensorFlow's placer decide it."""
        home = DevicePlace(self.chosen.job, self.chosen.task)

        def at_home(device: DevicePlace) -> DevicePlace:
            if device.job is not None or device == _NOWHERE:
                return device
            return replace(device, job=home.job, task=device.task or home.task)

        devices = [at_home(device) for device in self.own]
        for i in self.order:
            device = devices[i]
            for other in (self.root[i], self.holder[i]):
                if other not in (-1, i) and (device.job is None or device.kind is None):
                    device = _joined(device, at_home(self.own[other]))
            devices[i] = device
        for i in reversed(self.order):  # a constant goes to its readers
            if devices[i] == _NOWHERE and not self.inputs[i]:
                there = {devices[reader] for reader in self.links.readers[i] if self.runs[reader]}
                if len(there) == 1:
                    devices[i] = there.pop()
        for i in self.order:
            if devices[i] == _NOWHERE and self.ops[i] in _METADATA and self.inputs[i]:
                devices[i] = devices[self.inputs[i][0][0]]
        return devices

    def _layout(self) -> Layout:
        running = [self.ops[i] for i in np.flatnonzero(self.runs).tolist()]
        if any(_COLLECTIVE.fullmatch(op) for op in set(running)):
            return "all_reduce"
        jobs = {self.devices[i].job for i in np.flatnonzero(self.runs).tolist()}
        if any(job is not None and _SERVER_JOB.fullmatch(job) for job in jobs):
            return "servers"
        is_bare = all(self.own[i] == _NOWHERE for i in np.flatnonzero(self.runs).tolist())
        return "unplaced" if is_bare else "one_machine"

    def _remote(self) -> BoolArray:
        """Mask of nodes on other machines; without a named server, variables and their updates."""
        here = (self.chosen.job, self.chosen.task or 0)
        apart = np.array(
            [
                device.job is not None and (device.job, device.task or 0) != here
                for device in self.devices
            ],
            dtype=np.bool_,
        )
        if self.layout == "servers":
            return apart
        updates = self._mask({op for op in set(self.ops) if UPDATES.fullmatch(op)})
        assigns = self._mask(_ASSIGNS)
        changes = updates | assigns
        # What no step changes and no saver saves is no parameter: a worker keeps it (synthetic
        # images). A step of another train op counts too: a GAN's generator reads its discriminator.
        variables = np.zeros(len(self.nodes), dtype=np.bool_)
        changed = [self.holder[i] for i in np.flatnonzero(updates | (assigns & self.runs)).tolist()]
        saves = self._mask({"Save", "SaveV2", "SaveSlices"})
        for i in np.flatnonzero(saves).tolist():  # what a saver saves is a parameter, if frozen
            changed += [self.holder[source] for source, _ in self.inputs[i]]
        variables[[i for i in changed if i >= 0]] = True
        variables &= self._mask(VARIABLES)
        if not variables.any():  # no training step: all of them may be trained
            variables = self._mask(VARIABLES)
        held = variables | changes | self.slots.arithmetic
        for i in self.order:
            held[i] |= self.holder[i] >= 0 and variables[self.holder[i]]
            held[i] |= self.root[i] != i and variables[self.root[i]]
        accumulators = self._mask({op for op in set(self.ops) if "Accumulator" in op})
        held |= accumulators
        for i in reversed(self.order):  # a constant goes to its readers
            if not held[i] and not self.inputs[i] and not self.pipeline[i]:
                readers = [reader for reader in self.links.readers[i] if self.runs[reader]]
                held[i] = bool(readers) and bool(held[readers].all())
        return apart | held

    def kept(self) -> BoolArray:
        """The nodes of the worker's compute device."""
        chosen = self.chosen
        kept = self.runs & ~self.is_remote
        for i in np.flatnonzero(kept).tolist():
            device = self.devices[i]
            if device.kind is None:
                kept[i] = not self.pipeline[i]
            elif chosen.kind is None:
                kept[i] = not self.pipeline[i] or device.kind == "GPU"
            else:
                kept[i] = device.kind == chosen.kind and (device.index or 0) == chosen.index
                kept[i] &= device.kind == "GPU" or not self.pipeline[i]
        return kept & ~self._before_input(kept)

    def _before_input(self, kept: BoolArray) -> BoolArray:
        """Nodes without a device that only the input pipeline reads: they run beside it."""
        before = np.zeros(len(self.nodes), dtype=np.bool_)
        for i in reversed(self.order):
            if kept[i] and self.devices[i].kind is None:
                readers = [reader for reader in self.links.readers[i] if self.runs[reader]]
                before[i] = bool(readers) and all(
                    self.pipeline[reader] or before[reader] for reader in readers
                )
        return before

    def is_apart(self, kept: BoolArray) -> BoolArray:
        """Nodes of the worker's other GPUs, or of its other processors where it has no GPU."""
        kind = self.chosen.kind or "GPU"
        is_same_kind = [device.kind == kind for device in self.devices]
        return np.array(is_same_kind, dtype=np.bool_) & ~kept & ~self.is_remote

    def fetched(self) -> npt.NDArray[np.int32]:
        """The variable whose whole value a node gives, where no server is named."""
        gives = self._mask(VARIABLES | HANDS_ON | {"ReadVariableOp"})
        variables = np.where(gives & (self.layout != "servers"), np.array(self.holder), -1)
        return variables.astype(np.int32)

    def numbers(self, kept: BoolArray) -> npt.NDArray[np.int32]:
        """A number for each device; servers that are taken for granted are one."""
        known: dict[object, int] = {}
        numbers = []
        for i, device in enumerate(self.devices):
            key: object = device
            if kept[i]:
                key = "worker"
            elif self.is_remote[i]:
                servers = self.layout == "servers"
                key = (device.job, device.task or 0, device.kind == "GPU") if servers else "server"
            numbers.append(known.setdefault(key, len(known)))
        return np.array(numbers, dtype=np.int32)


def _joined(device: DevicePlace, other: DevicePlace) -> DevicePlace:
    """A device with what another adds to it, unless they are of different tasks."""
    if device.job is not None and (device.job, device.task) != (other.job, other.task):
        return device
    if device.job is None:
        kind = device.kind or other.kind
        index = device.index if device.kind else other.index
        return DevicePlace(other.job, other.task, kind, index)
    return replace(device, kind=device.kind or other.kind, index=device.index or other.index)


def _rank(device: DevicePlace) -> tuple[int, str, int, int]:
    job = device.job or "localhost"
    place = _WORKER_JOBS.index(job) if job in _WORKER_JOBS else len(_WORKER_JOBS)
    return place, job, device.task or 0, device.index or 0
