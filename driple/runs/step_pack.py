"""Steps of many jobs in one compact file: arrays of small numbers, compressed together.

    StepKey, OpGraph at a marked batch size, ... -> PackedSteps -> bytes (xz)  and back

Sizes that grow with the batch are multiples of the mark, a large prime, and are stored as multiples
of the batch size. Tensors and signatures are stored once for all jobs of a file; each job has its
own list of signatures in the order of their first node, so that like models repeat each other.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import DatasetError, GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.runs.step_key import StepKey
from driple.storedfiles import parse_json, read_bytes

__all__ = ["MOST_BYTES", "PackedSteps", "StepPacker", "read_packed_steps"]

IntArray = npt.NDArray[np.int64]

_MAGIC, _FORMAT = b"driple-steps\n", 1
MOST_BYTES = 2**28  # of a file, and of what is in it
_MOST_RANK = 8
_MEMORY = 2**28  # of the decompressor
# What each array holds an entry for; the numbers of entries of a job are in its header.
_TENSORS = ("ranks", "dtypes", "of_parameters")
_SIGNATURES = ("kinds", "numbers", "num_inputs", "num_outputs")
_NODES = ("local_signatures", "phases", "fusion")
_TABLES = ("elements", "nbytes", "is_trained")
_ARRAYS = (
    *_TENSORS, "sizes", "grows", *_SIGNATURES, "tensors_of", "saved_bytes", "saved_bytes_each",
    *_TABLES, "signatures_of_jobs", *_NODES, "saved_of_nodes", "readers_parameter", "readers_node",
    "gradients_parameter", "gradients_node",
)  # fmt: skip
# Bits of `fusion`: in a group; starts a kernel; is written; adds to gradients of earlier passes.
INSIDE, STARTS, NEEDED, ADDS = 1, 2, 4, 8


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedSteps:
    """The content of a file.

    Attributes:
        header: JSON: kinds and numbers of signatures, parameters' names, and of each job its key,
            numbers of entries in the arrays, updates, and table of parameters.
        arrays: by name.
    """

    header: Mapping[str, Any]
    arrays: Mapping[str, IntArray]


@dataclass(slots=True)
class _Once:
    """Items that are stored once, by their place."""

    place: dict[Any, int] = field(default_factory=dict)

    def of(self, value: Any) -> int:
        return self.place.setdefault(value, len(self.place))


class StepPacker:
    """Collects steps for one file.

    Args:
        mark: batch size of their graphs, a prime that no other size is a multiple of.
    """

    def __init__(self, mark: int) -> None:
        self._mark = mark
        self._tensors, self._signatures, self._kinds = _Once(), _Once(), _Once()
        self._numbers, self._saved, self._names, self._tables = _Once(), _Once(), _Once(), _Once()
        self._lists: dict[str, list[int]] = {name: [] for name in _ARRAYS}
        self._jobs: list[dict[str, Any]] = []

    def add(
        self, key: StepKey, graph: OpGraph, updates: Mapping[str, tuple[int, int, int]]
    ) -> None:
        """Add a step.

        Args:
            key: which.
            graph: at the marked batch size.
            updates: of each optimizer bytes of its states, bytes that an update moves, and kernels.

        Raises:
            GraphError: a size does not grow in proportion to the batch, or the graph has loops; the
                step is then left out.
        """
        if not np.isin(graph.executions, (1, 2) if key.accumulates else (1,)).all():
            raise GraphError(f"{key.name} has ops that run several times in a pass")
        lists, local = self._lists, _Once()
        nodes = [local.of(number) for number in graph.signature_of.tolist()]
        signatures = [self._signature(graph.signatures[number], key) for number in local.place]
        codes, saved = _fusion(graph, self._mark)
        if key.accumulates:  # traced with two passes
            runs = graph.executions.tolist()
            codes = [one + ADDS * (run == 1) for one, run in zip(codes, runs, strict=True)]
        lists["signatures_of_jobs"] += signatures
        lists["local_signatures"] += nodes
        lists["phases"] += graph.phases.tolist()
        lists["fusion"] += codes
        lists["saved_of_nodes"] += [self._saved.of(pair) for pair in saved]
        table = graph.parameters
        for name, rows in (("readers", table.readers), ("gradients", table.gradients)):
            lists[f"{name}_parameter"] += rows[:, 0].tolist()
            lists[f"{name}_node"] += rows[:, 1].tolist()
        facts = zip(
            table.elements.tolist(), table.nbytes.tolist(), table.is_trained.tolist(), strict=True
        )
        self._jobs.append(
            {
                "name": key.name,
                "nodes": graph.num_nodes,
                "signatures": len(local.place),
                "saved": len(saved),
                "readers": len(table.readers),
                "gradients": len(table.gradients),
                "names": self._names.of(table.names),
                "table": self._tables.of(tuple(facts)),
                "updates": {name: list(facts) for name, facts in updates.items()},
            }
        )

    @property
    def num_steps(self) -> int:
        """Steps so far."""
        return len(self._jobs)

    def _signature(self, op: OpSignature, key: StepKey) -> int:
        tensors = tuple(self._tensor(one, key) for one in (*op.inputs, *op.outputs))
        kind, numbers = self._kinds.of(op.kind), self._numbers.of(op.numbers)
        return self._signatures.of((kind, numbers, len(op.inputs), len(op.outputs), tensors))

    def _tensor(self, tensor: Tensor, key: StepKey) -> int:
        if (
            tensor.shape is None
            or len(tensor.shape) > _MOST_RANK
            or min(tensor.shape, default=0) < 0
        ):
            raise GraphError(f"{key.name} has a tensor of shape {tensor.shape}")
        grows = tuple(size > 0 and size % self._mark == 0 for size in tensor.shape)
        sizes = tuple(
            size // self._mark if grow else size
            for size, grow in zip(tensor.shape, grows, strict=True)
        )
        if any(grow and size % self._mark == 0 for size, grow in zip(sizes, grows, strict=True)):
            raise GraphError(f"{key.name} has a size that grows with the square of the batch")
        if sum(grows) > 1:
            raise GraphError(f"{key.name} has a tensor with two sizes that grow with the batch")
        return self._tensors.of((tensor.dtype, tensor.is_parameter, sizes, grows))

    def content(self) -> bytes:
        """All of it, compressed."""
        lists = self._lists
        for dtype, is_parameter, sizes, grows in self._tensors.place:
            lists["ranks"].append(len(sizes))
            lists["dtypes"].append(dtype)
            lists["of_parameters"].append(int(is_parameter))
            lists["sizes"] += sizes
            lists["grows"] += map(int, grows)
        for kind, numbers, inputs, outputs, tensors in self._signatures.place:
            for name, value in zip(_SIGNATURES, (kind, numbers, inputs, outputs), strict=True):
                lists[name].append(value)
            lists["tensors_of"] += tensors
        for fixed, each in self._saved.place:
            lists["saved_bytes"].append(fixed)
            lists["saved_bytes_each"].append(each)
        lengths = []
        for facts in self._tables.place:
            lengths.append(len(facts))
            for name, column in zip(_TABLES, zip(*facts, strict=True), strict=False):
                lists[name] += map(int, column)
        header = {
            "format": _FORMAT,
            "kinds": list(self._kinds.place),
            "numbers": list(self._numbers.place),
            "names": list(self._names.place),
            "tables": lengths,
            "jobs": self._jobs,
        }
        return _compressed(header, {name: np.array(lists[name], np.int64) for name in _ARRAYS})


def _fusion(graph: OpGraph, mark: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Bits of each node, and of those in groups the bytes that need not be read, fixed and each.

    As `driple.simulate.fused` counts them: what one member makes for another, and what several
    members read, is read once at most; what nobody outside reads is not written.
    """
    count, groups = graph.num_nodes, graph.fusion_of
    if not len(groups):
        return [STARTS | NEEDED] * count, []
    nbytes = [_bytes_of(graph.signatures[number], mark) for number in graph.signature_of.tolist()]
    inside, numbers = groups >= 0, groups.tolist()
    needed = ~inside
    needed[graph.traffic.senders] = True
    saved = [[0, 0] for _ in range(count)]
    seen: set[tuple[int, int]] = set()
    for source, target in graph.edges[~graph.is_control].tolist():
        group = numbers[target]
        if group >= 0 and numbers[source] == group:
            is_saved = True
        else:
            needed[source] = True
            is_saved = group >= 0 and (source, group) in seen
            seen.add((source, group))
        if is_saved:
            saved[target][0] += nbytes[source][0]
            saved[target][1] += nbytes[source][1]
    first = ~inside
    if inside.any():
        first[np.flatnonzero(inside)[np.unique(groups[inside], return_index=True)[1]]] = True
    codes = INSIDE * inside + STARTS * first + NEEDED * needed
    pairs = [(saved[node][0], saved[node][1]) for node in np.flatnonzero(inside).tolist()]
    return codes.astype(int).tolist(), pairs


def _bytes_of(op: OpSignature, mark: int) -> tuple[int, int]:
    """Bytes of an op's outputs that do not grow with the batch, and those for each example."""
    fixed = each = 0
    for tensor in op.outputs:
        if any(size > 0 and size % mark == 0 for size in tensor.shape or ()):
            each += tensor.nbytes // mark
        else:
            fixed += tensor.nbytes
    return fixed, each


def _compressed(header: Mapping[str, Any], arrays: Mapping[str, IntArray]) -> bytes:
    pieces, described = [], []
    for name, array in arrays.items():
        kind = _least_type(array)
        small = array.astype(kind)
        # Bytes of one place side by side: the high ones repeat.
        planes = small.view(np.uint8).reshape(len(small), kind.itemsize).T
        pieces.append(np.ascontiguousarray(planes).tobytes())
        described.append([name, kind.str, len(small)])
    text = json.dumps({**header, "arrays": described}, separators=(",", ":")).encode()
    inside = b"".join([len(text).to_bytes(8, "little"), text, *pieces])
    return _MAGIC + lzma.compress(inside, preset=9 | lzma.PRESET_EXTREME)


def _least_type(array: IntArray) -> np.dtype[Any]:
    if not len(array):
        return np.dtype("<i1")
    low, high = int(array.min()), int(array.max())
    for name in ("<i1", "<i2", "<i4"):
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
            return np.dtype(name)
    return np.dtype("<i8")


def read_packed_steps(file: Path) -> PackedSteps:
    """The content of a file, checked: no place leads outside, and nothing is executed.

    Raises:
        DatasetError: the file cannot be read, or is damaged.
    """
    try:
        data = read_bytes(file, MOST_BYTES)
        header, arrays = _parsed(_decompressed(data))
        _check(header, arrays)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DatasetError(
            f"{file} is no store of steps that this version reads ({error}); restore the file, or "
            "make it again with scripts/published/pytorch_steps.py"
        ) from error
    return PackedSteps(header=header, arrays=arrays)


def _decompressed(data: bytes) -> bytes:
    if not data.startswith(_MAGIC):
        raise ValueError("it begins otherwise")
    reader = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)
    try:
        inside = reader.decompress(data[len(_MAGIC) :], max_length=MOST_BYTES)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("it ends too early, or is too large")
    return inside


def _parsed(inside: bytes) -> tuple[dict[str, Any], dict[str, IntArray]]:
    length = int.from_bytes(inside[:8], "little")
    header = parse_json(inside[8 : 8 + length])
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError("its format is another")
    described, arrays, at = header["arrays"], {}, 8 + length
    if [one[0] for one in described] != list(_ARRAYS):
        raise ValueError("its arrays are others")
    for name, kind, count in described:
        if kind not in {"<i1", "<i2", "<i4", "<i8", "|i1"} or not 0 <= count <= MOST_BYTES:
            raise ValueError(f"array {name} is of {kind}")
        size = np.dtype(kind).itemsize
        part = np.frombuffer(inside, np.uint8, count * size, at)
        planes = np.ascontiguousarray(part.reshape(size, count).T)
        arrays[name] = planes.view(kind).reshape(count).astype(np.int64)
        at += count * size
    if at != len(inside):
        raise ValueError(f"it holds {len(inside) - at} bytes too many")
    return header, arrays


def _check(header: Mapping[str, Any], arrays: Mapping[str, IntArray]) -> None:
    """Raise ValueError unless all places are within, and all numbers of entries fit."""
    tensors, signatures = len(arrays["ranks"]), len(arrays["kinds"])
    saved, jobs = len(arrays["saved_bytes"]), header["jobs"]
    sums: Callable[[str], int] = lambda name: sum(_count(job[name]) for job in jobs)  # noqa: E731
    lengths = {
        **dict.fromkeys(_TENSORS, tensors),
        **dict.fromkeys(("sizes", "grows"), int(arrays["ranks"].sum())),
        **dict.fromkeys(_SIGNATURES, signatures),
        "tensors_of": int(arrays["num_inputs"].sum() + arrays["num_outputs"].sum()),
        "saved_bytes_each": saved,
        **dict.fromkeys(_TABLES, sum(map(_count, header["tables"]))),
        "signatures_of_jobs": sums("signatures"),
        **dict.fromkeys(_NODES, sums("nodes")),
        "saved_of_nodes": sums("saved"),
        **dict.fromkeys(("readers_parameter", "readers_node"), sums("readers")),
        **dict.fromkeys(("gradients_parameter", "gradients_node"), sums("gradients")),
    }
    for name, wanted in lengths.items():
        if len(arrays[name]) != wanted:
            raise ValueError(f"array {name} has {len(arrays[name])} entries for {wanted}")
    ends = {
        "ranks": _MOST_RANK + 1, "of_parameters": 2, "grows": 2, "is_trained": 2,
        "kinds": len(header["kinds"]), "numbers": len(header["numbers"]), "tensors_of": tensors,
        "signatures_of_jobs": signatures, "saved_of_nodes": saved, "phases": 4,
        "fusion": INSIDE + STARTS + NEEDED + ADDS + 1,
    }  # fmt: skip
    for name, array in arrays.items():
        end = ends.get(name)
        if len(array) and (array.min() < 0 or (end is not None and array.max() >= end)):
            raise ValueError(f"array {name} leads outside")
    for job in jobs:
        StepKey.parse(job["name"])
        if job["table"] >= len(header["tables"]) or job["names"] >= len(header["names"]):
            raise ValueError(f"{job['name']} has no parameters")


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_BYTES:
        raise ValueError(f"{str(value)[:20]} is no number of entries")
    return value
