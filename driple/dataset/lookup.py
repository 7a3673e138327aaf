"""Labels and details of the workloads of a data set, without reading their graphs.

folder, content hash of a graph -> StoredWorkload: name, iteration time, where the label comes from
folder, graph                   -> the same, of measured graphs that an earlier reader has read
folder                          -> StoredLabels: setting, targets of every workload
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.dataset.store import EXAMPLE_COLUMNS, EXAMPLES_FILE, read_dataset
from driple.dataset.tables import check_columns, read_table
from driple.errors import DatasetError
from driple.graph.opgraph import OpGraph
from driple.graph.optimizers import optimizer_of_kind
from driple.trace.targets import TARGET_NAMES

__all__ = ["StoredLabels", "StoredWorkload", "find_graph", "find_measured_step", "read_labels"]

_COLUMNS = ("workload", "graph", "iteration_time_s", "label_source")


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """One workload of a data set.

    Attributes:
        workload: its name.
        iteration_time_s: seconds of an iteration.
        label_source: `measured`, `simulated` or `published`.
    """

    workload: str
    iteration_time_s: float
    label_source: str


def find_graph(folder: Path, key: str) -> list[StoredWorkload]:
    """All workloads of a data set with this graph, by name.

    Args:
        folder: folder of the data set.
        key: content hash of the graph (`driple.dataset.example.graph_hash`).

    Raises:
        DatasetError: no data set there, or a damaged one.
        MissingExtraError: pyarrow is not installed.
    """
    file = folder / EXAMPLES_FILE
    table = read_table(file)
    check_columns(table, {name: EXAMPLE_COLUMNS[name] for name in _COLUMNS}, file)
    rows = table.select(list(_COLUMNS)).to_pylist()
    workloads = [
        StoredWorkload(row["workload"], row["iteration_time_s"], row["label_source"])
        for row in rows
        if row["graph"] == key
    ]
    return sorted(workloads, key=lambda item: item.workload)


def find_measured_step(folder: Path, graph: OpGraph) -> list[StoredWorkload]:
    """All measured workloads whose stored graph holds a step, by name.

    A graph that an earlier reader has read holds more than its step, so that its content hash is
    another: the step is found if each of its ops is there, by name, op type and size, with the same
    number of ops of each optimizer and accumulator on the servers.

    Args:
        folder: folder of the data set.
        graph: graph of the step.

    Raises:
        DatasetError: no data set there, or a damaged one.
        MissingExtraError: pyarrow is not installed.
    """
    table = read_table(folder / EXAMPLES_FILE)
    check_columns(table, {"label_source": "string"}, folder / EXAMPLES_FILE)
    sources = table["label_source"].to_pylist()
    if "measured" not in sources:
        return []
    mine, updates = set(_ops_of(graph)), _updates_of(graph)
    workloads = [
        StoredWorkload(item.workload, item.iteration_time_s, item.label_source)
        for item in read_dataset(folder).examples
        if item.label_source == "measured"
        and isinstance(item.graph, OpGraph)
        and item.graph.num_nodes >= graph.num_nodes
        and updates == _updates_of(item.graph)
        and mine <= set(_ops_of(item.graph))
    ]
    return sorted(workloads, key=lambda item: item.workload)


def _ops_of(graph: OpGraph) -> Iterable[tuple[str, str, int]]:
    return zip(graph.names, graph.op_types, graph.tensor_bytes.tolist(), strict=True)


# Updates of optimizers that Driple does not know, and of gradients that servers add up.
_OTHER_UPDATES = frozenset({"update_other", "gradient_accumulator", "accumulate_gradient"})


def _updates_of(graph: OpGraph) -> dict[str, int]:
    """Number of ops of each optimizer, and of accumulators of gradients, that run elsewhere."""
    return {
        ops.op_type: ops.num_nodes
        for ops in graph.remote
        if optimizer_of_kind(ops.kind) or ops.kind in _OTHER_UPDATES
    }


@dataclass(frozen=True, slots=True)
class StoredLabels:
    """The labels of a data set.

    Attributes:
        setting: full name of the cluster setting.
        targets: shape [12] by workload, in the order of `TARGET_NAMES`, in their units.
    """

    setting: str
    targets: dict[str, npt.NDArray[np.float64]]


def read_labels(folder: Path) -> StoredLabels:
    """All labels of a data set.

    Raises:
        DatasetError: no data set there, a damaged or an empty one, or one of several settings.
        MissingExtraError: pyarrow is not installed.
    """
    file = folder / EXAMPLES_FILE
    table = read_table(file)
    columns = ["workload", "setting", *TARGET_NAMES]
    check_columns(table, {name: EXAMPLE_COLUMNS[name] for name in columns}, file)
    rows = table.select(columns).to_pylist()
    settings = sorted({str(row["setting"]) for row in rows})
    if len(settings) != 1:
        raise DatasetError(f"{file} holds {len(settings)} settings, needed is 1; restore the file")
    targets = {
        row["workload"]: np.array([row[name] for name in TARGET_NAMES], dtype=np.float64)
        for row in rows
    }
    return StoredLabels(settings[0], targets)
