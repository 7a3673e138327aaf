"""Grouped graphs as the rows of one Arrow table: `graphs.parquet` of an imported data set.

{content hash: GroupedGraph}  <->  table: hash, features row by row, edges pair by pair
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driple.dataset.tables import check_columns, require_pyarrow
from driple.errors import DatasetError, GraphError
from driple.features.pregrouped import GroupedGraph

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["groups_from_table", "groups_to_table", "holds_groups"]

HASH_COLUMN = "graph"
LISTS = {"features": "float32", "edges": "int32"}


def holds_groups(table: pa.Table) -> bool:
    """Whether the table is of grouped graphs."""
    return "features" in table.column_names


def groups_to_table(graphs: Mapping[str, GroupedGraph]) -> pa.Table:
    """The table of the graphs."""
    pa = require_pyarrow()
    columns: dict[str, Any] = {HASH_COLUMN: pa.array(list(graphs), pa.string())}
    for name, kind in LISTS.items():
        rows = [getattr(graph, name).ravel() for graph in graphs.values()]
        columns[name] = pa.array(rows, pa.list_(pa.type_for_alias(kind)))
    return pa.table(columns)


def groups_from_table(table: pa.Table, file: Path) -> dict[str, GroupedGraph]:
    """The graphs of a table by content hash; the hashes themselves are not checked here.

    Raises:
        DatasetError: a column is missing, empty, of another type, or holds no groups.
    """
    lists = {name: f"list<{kind}>" for name, kind in LISTS.items()}
    check_columns(table, {HASH_COLUMN: "string"} | lists, file)
    graphs = {}
    rows = [table[name].to_pylist() for name in (HASH_COLUMN, *LISTS)]
    for key, features, edges in zip(*rows, strict=True):
        try:
            graphs[key] = GroupedGraph(
                features=np.array(features, dtype=np.float32).reshape(-1, 3),
                edges=np.array(edges, dtype=np.int32).reshape(-1, 2),
            )
        except (ValueError, TypeError, GraphError) as error:
            raise DatasetError(
                f"{file}: graph {key[:12]} is damaged ({error}); restore the file"
            ) from error
    return graphs
