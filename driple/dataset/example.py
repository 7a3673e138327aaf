"""`Example`: one workload, its graph and its label; `Dataset`: all examples of one setting.

    OpGraph + Targets + where they come from  ->  Example
    Example, Example, ...                     ->  Dataset

Both check themselves when they are made, so an example in hand never holds a label that is not
a number.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from driple.errors import DatasetError
from driple.features.pregrouped import AnyGraph, GroupedGraph
from driple.graph.signature import signatures_to_json
from driple.graph.version import READER_VERSION
from driple.trace.provenance import Provenance
from driple.trace.targets import NUM_TARGETS, TARGET_NAMES, Targets

__all__ = [
    "Dataset",
    "Detail",
    "Example",
    "LabelSource",
    "fingerprint",
    "graph_hash",
    "merge_examples",
]

LabelSource = Literal["measured", "simulated", "published"]
Detail = str | int | float | bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """One workload on one setting: what went in, and what the cluster did.

    Attributes:
        workload: name, unique in its data set, such as `resnet20/cifar10/b16/sgd/sync`.
        family: model family, such as `resnet`; the family split holds out whole families.
        setting: full name of the cluster setting.
        graph: the graph of one worker's training step, or its groups if no more is known.
        targets: the 12 targets.
        iteration_time_s: seconds per training iteration, as measured (or simulated, published).
        label_source: where the targets come from.
        details: facts of the workload (model, data set, batch size, optimizer, sync, ...).

    Raises:
        DatasetError: no name, an unknown label source, a target that is NaN, infinite or
            negative, or an iteration time that is not a positive number.
    """

    workload: str
    family: str
    setting: str
    graph: AnyGraph
    targets: Targets
    iteration_time_s: float
    label_source: LabelSource
    details: dict[str, Detail] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("workload", "family", "setting"):
            if not getattr(self, name):
                raise DatasetError(f"workload {self.workload!r}: {name} is empty; give it a name")
        if self.label_source not in get_args(LabelSource):
            raise DatasetError(
                f"workload {self.workload!r}: label source is {self.label_source!r}, "
                f"must be one of {', '.join(get_args(LabelSource))}"
            )
        self._check_targets()
        if not (math.isfinite(self.iteration_time_s) and self.iteration_time_s > 0):
            raise DatasetError(
                f"workload {self.workload!r}: iteration_time_s is {self.iteration_time_s}, "
                "must be a positive number; measure this workload again or drop it"
            )

    def _check_targets(self) -> None:
        if self.targets.values.size != NUM_TARGETS:
            raise DatasetError(
                f"workload {self.workload!r}: {self.targets.values.size} targets, "
                f"must be {NUM_TARGETS}"
            )
        values = self.targets.flat
        bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if len(bad):
            raise DatasetError(
                f"workload {self.workload!r}: label {TARGET_NAMES[bad[0]]} is {values[bad[0]]:g}, "
                "must be a finite number >= 0; measure this workload again or drop it"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """All examples of one setting, and where they come from.

    Attributes:
        name: name of the data set.
        setting: full name of the cluster setting of every example.
        examples: in the order in which they were added; workload names are unique.
        about: where the labels come from.
        reader_version: version of the reader that made its graphs (`driple.graph.version`); the
            oldest one if there were several.

    Raises:
        DatasetError: a workload twice, an example of another setting, or grouped graphs among
            others.
    """

    name: str
    setting: str
    examples: tuple[Example, ...]
    about: Provenance = field(default_factory=Provenance)
    reader_version: int = READER_VERSION

    def __post_init__(self) -> None:
        if not self.name:
            raise DatasetError("data set has no name; give it one")
        twice = [w for w, times in Counter(self.workloads).items() if times > 1]
        if twice:
            raise DatasetError(
                f"data set {self.name!r}: workload {twice[0]!r} occurs more than once; "
                "names must be unique (merge_examples replaces a workload)"
            )
        for example in self.examples:
            if example.setting != self.setting:
                raise DatasetError(
                    f"data set {self.name!r} is of setting {self.setting}, workload "
                    f"{example.workload!r} of {example.setting}; keep one data set per setting"
                )
        if len({isinstance(example.graph, GroupedGraph) for example in self.examples}) > 1:
            raise DatasetError(
                f"data set {self.name!r} mixes graphs with others of which only the groups are "
                "known; keep them apart"
            )

    @property
    def is_grouped(self) -> bool:
        """Whether of its graphs only the groups are known."""
        return any(isinstance(example.graph, GroupedGraph) for example in self.examples)

    @property
    def workloads(self) -> tuple[str, ...]:
        """Workload names, in the order of `examples`."""
        return tuple(example.workload for example in self.examples)

    def targets(self) -> npt.NDArray[np.float64]:
        """Shape [num_examples, 12], in the order of `TARGET_NAMES`."""
        rows = [example.targets.flat for example in self.examples]
        return np.array(rows, dtype=np.float64).reshape(len(rows), NUM_TARGETS)

    def iteration_times_s(self) -> npt.NDArray[np.float64]:
        """Shape [num_examples], seconds."""
        return np.array([example.iteration_time_s for example in self.examples], dtype=np.float64)


def merge_examples(dataset: Dataset, new: Iterable[Example]) -> Dataset:
    """The data set with new examples: same-named workloads replaced in place, others appended.

    Its reader version stays, unless no example of before is left.
    """
    new = tuple(new)
    merged = {example.workload: example for example in dataset.examples}
    merged.update({example.workload: example for example in new})
    old_remain = set(dataset.workloads) - {example.workload for example in new}
    reader_version = dataset.reader_version if old_remain else READER_VERSION
    return replace(dataset, examples=tuple(merged.values()), reader_version=reader_version)


def graph_hash(graph: AnyGraph) -> str:
    """Content hash of a graph: op types, signatures, edges, sizes, remote ops, traffic, layout.

    Node names, devices and the read report are not in it: graphs that differ in nothing else are
    the same input to the inspector, and are stored once.
    """
    if isinstance(graph, GroupedGraph):
        return _hash_of_groups(graph)
    digest = hashlib.sha256()
    remote = [[ops.op_type, ops.num_nodes, ops.tensor_bytes] for ops in graph.remote]
    digest.update(json.dumps([list(graph.op_types), remote]).encode())
    for array, dtype in (
        (graph.edges, "<i4"),
        (graph.is_control, "u1"),
        (graph.tensor_elements, "<i8"),
        (graph.tensor_bytes, "<i8"),
        (graph.signature_of, "<i4"),
        (graph.executions, "<i8"),
        (graph.traffic.received_bytes, "<i8"),
        (graph.traffic.readers, "<i4"),
        (graph.traffic.sent_bytes, "<i8"),
        (graph.traffic.senders, "<i4"),
    ):
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    digest.update(signatures_to_json(graph.signatures).encode())
    if graph.layout != "servers":  # so that graphs of earlier versions keep their hash
        digest.update(graph.layout.encode())
    if graph.framework != "tensorflow":
        kinds = [ops.kind for ops in graph.remote]
        digest.update(json.dumps([graph.framework, kinds]).encode())
    return digest.hexdigest()


def _hash_of_groups(graph: GroupedGraph) -> str:
    digest = hashlib.sha256(f"groups {len(graph.features)}".encode())
    for array, dtype in ((graph.features, "<f4"), (graph.edges, "<i4")):
        digest.update(np.ascontiguousarray(array, dtype=dtype).tobytes())
    return digest.hexdigest()


def fingerprint(dataset: Dataset) -> str:
    """Hash of all that training sees: setting, workloads, families, graphs and labels.

    It does not depend on the order of the examples, nor on the provenance in `about`.
    """
    rows = sorted(
        [
            example.workload,
            example.family,
            graph_hash(example.graph),
            [float(value).hex() for value in example.targets.flat],
            float(example.iteration_time_s).hex(),
        ]
        for example in dataset.examples
    )
    return hashlib.sha256(json.dumps([dataset.setting, rows]).encode()).hexdigest()
