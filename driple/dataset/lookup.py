"""What a data set says about one workload, without reading its graphs.

folder, content hash of a graph -> Found: name, iteration time, where the label comes from
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from driple.dataset.store import EXAMPLES_FILE
from driple.dataset.tables import read_table
from driple.errors import DatasetError

__all__ = ["Found", "find_graph"]

_COLUMNS = ("workload", "graph", "iteration_time_s", "label_source")


@dataclass(frozen=True, slots=True)
class Found:
    """One workload of a data set.

    Attributes:
        workload: its name.
        iteration_time_s: seconds of an iteration.
        label_source: `measured`, `simulated` or `published`.
    """

    workload: str
    iteration_time_s: float
    label_source: str


def find_graph(folder: Path, key: str) -> list[Found]:
    """All workloads of a data set with this graph, by name.

    Args:
        folder: of the data set.
        key: content hash of the graph (`driple.dataset.example.graph_hash`).

    Raises:
        DatasetError: no data set there, or a damaged one.
        MissingExtraError: pyarrow is not installed.
    """
    file = folder / EXAMPLES_FILE
    table = read_table(file)
    if not set(_COLUMNS) <= set(table.column_names):
        raise DatasetError(f"{file} lacks one of {', '.join(_COLUMNS)}; restore the file")
    rows = table.select(list(_COLUMNS)).to_pylist()
    found = [
        Found(row["workload"], row["iteration_time_s"], row["label_source"])
        for row in rows
        if row["graph"] == key
    ]
    return sorted(found, key=lambda item: item.workload)
