"""Steps of many jobs packed into one compact file, which `driple.runs.step_pack` reads.

StepKey, OpGraph at a marked batch size, ... -> StepPacker -> bytes (xz)
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature, Tensor
from driple.runs.step_key import StepKey
from driple.runs.step_pack import (
    ADDS,
    ARRAYS,
    FORMAT,
    INSIDE,
    MAGIC,
    MOST_RANK,
    NEEDED,
    SIGNATURES,
    STARTS,
    TABLES,
)

__all__ = ["StepPacker"]

IntArray = npt.NDArray[np.int64]


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
        self._lists: dict[str, list[int]] = {name: [] for name in ARRAYS}
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
            or len(tensor.shape) > MOST_RANK
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
            for name, value in zip(SIGNATURES, (kind, numbers, inputs, outputs), strict=True):
                lists[name].append(value)
            lists["tensors_of"] += tensors
        for fixed, each in self._saved.place:
            lists["saved_bytes"].append(fixed)
            lists["saved_bytes_each"].append(each)
        lengths = []
        for facts in self._tables.place:
            lengths.append(len(facts))
            for name, column in zip(TABLES, zip(*facts, strict=True), strict=False):
                lists[name] += map(int, column)
        header = {
            "format": FORMAT,
            "kinds": list(self._kinds.place),
            "numbers": list(self._numbers.place),
            "names": list(self._names.place),
            "tables": lengths,
            "jobs": self._jobs,
        }
        return _compressed(header, {name: np.array(lists[name], np.int64) for name in ARRAYS})


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
    return MAGIC + lzma.compress(inside, preset=9 | lzma.PRESET_EXTREME)


def _least_type(array: IntArray) -> np.dtype[Any]:
    if not len(array):
        return np.dtype("<i1")
    low, high = int(array.min()), int(array.max())
    for name in ("<i1", "<i2", "<i4"):
        if np.iinfo(name).min <= low and high <= np.iinfo(name).max:
            return np.dtype(name)
    return np.dtype("<i8")
