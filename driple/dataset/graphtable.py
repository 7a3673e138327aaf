"""Graphs as the rows of one Arrow table: the inside of `graphs.parquet`.

    {content hash: OpGraph}  <->  table, one row per graph, one list per attribute

Op types and devices repeat, so Parquet's dictionaries hold them; node names share long beginnings,
and edges are small steps apart, so both are stored as differences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driple.errors import DatasetError
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["graphs_from_table", "graphs_to_table"]

HASH_COLUMN = "graph"
REPORT_COLUMN = "report"
TEXT_LISTS = ("names", "op_types", "devices", "remote_op_types")
NUMBER_LISTS = {
    "edge_sources": "int32",
    "edge_destinations": "int32",
    "is_control": "bool",
    "tensor_elements": "int64",
    "tensor_bytes": "int64",
    "remote_num_nodes": "int64",
    "remote_tensor_bytes": "int64",
}
SCALARS = ("sent_bytes", "received_bytes")
ENCODINGS = {
    "names.list.element": "DELTA_BYTE_ARRAY",
    "edge_sources.list.element": "DELTA_BINARY_PACKED",
    "edge_destinations.list.element": "DELTA_BINARY_PACKED",
    "is_control.list.element": "RLE",
}


def graphs_to_table(graphs: Mapping[str, OpGraph]) -> tuple[pa.Table, dict[str, str]]:
    """The table of the graphs, and the Parquet encodings that suit its columns."""
    import pyarrow as pa  # an extra, loaded when needed

    rows = list(graphs.values())
    columns: dict[str, Any] = {HASH_COLUMN: pa.array(list(graphs), pa.string())}
    for name in TEXT_LISTS:
        texts = [_texts(graph, name) for graph in rows]
        columns[name] = pa.array(texts, pa.list_(pa.string()))
    for name, kind in NUMBER_LISTS.items():
        numbers = [_numbers(graph, name) for graph in rows]
        columns[name] = pa.array(numbers, pa.list_(pa.type_for_alias(kind)))
    for name in SCALARS:
        columns[name] = pa.array([getattr(graph, name) for graph in rows], pa.int64())
    reports = [json.dumps(asdict(graph.report)) for graph in rows]
    columns[REPORT_COLUMN] = pa.array(reports, pa.string())
    return pa.table(columns), dict(ENCODINGS)


def graphs_from_table(table: pa.Table, file: Path) -> dict[str, OpGraph]:
    """The graphs of a table by content hash; the hashes themselves are not checked here.

    Raises:
        DatasetError: a column is missing or empty, or lists of unequal length.
    """
    wanted = (HASH_COLUMN, *TEXT_LISTS, *NUMBER_LISTS, *SCALARS, REPORT_COLUMN)
    for name in wanted:
        if name not in table.column_names:
            raise DatasetError(f"{file}: column {name!r} is missing; write the data set again")
        if table[name].null_count:
            raise DatasetError(f"{file}: column {name!r} has empty rows; restore the file")
    hashes = table[HASH_COLUMN].to_pylist()
    texts = {name: _text_rows(table[name]) for name in TEXT_LISTS}
    numbers = {name: _number_rows(table[name], NUMBER_LISTS[name], file) for name in NUMBER_LISTS}
    scalars = {name: table[name].to_pylist() for name in SCALARS}
    reports = table[REPORT_COLUMN].to_pylist()
    graphs = {}
    for i, key in enumerate(hashes):
        row_texts = {name: rows[i] for name, rows in texts.items()}
        row_numbers = {name: rows[i] for name, rows in numbers.items()}
        try:
            graph = _graph(row_texts, row_numbers, reports[i])
            sums: dict[str, Any] = {name: int(scalars[name][i]) for name in SCALARS}
            graphs[key] = replace(graph, **sums)
        except (ValueError, TypeError) as error:
            raise DatasetError(
                f"{file}: graph {key[:12]} is damaged ({error}); restore the file"
            ) from error
    return graphs


def _texts(graph: OpGraph, name: str) -> tuple[str, ...]:
    if name == "remote_op_types":
        return tuple(ops.op_type for ops in graph.remote)
    texts: tuple[str, ...] = getattr(graph, name)
    return texts


def _numbers(graph: OpGraph, name: str) -> npt.NDArray[Any]:
    if name == "edge_sources":
        return graph.edges[:, 0]
    if name == "edge_destinations":
        return graph.edges[:, 1]
    if name.startswith("remote_"):
        attribute = name.removeprefix("remote_")
        return np.array([getattr(ops, attribute) for ops in graph.remote], dtype=np.int64)
    numbers: npt.NDArray[Any] = getattr(graph, name)
    return numbers


def _text_rows(column: pa.ChunkedArray) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for chunk in column.chunks:
        texts = tuple(chunk.flatten().to_pylist())
        starts = np.concatenate([[0], np.cumsum(chunk.value_lengths())]).tolist()
        rows += [texts[a:b] for a, b in pairwise(starts)]
    return rows


def _number_rows(column: pa.ChunkedArray, kind: str, file: Path) -> list[npt.NDArray[Any]]:
    rows: list[npt.NDArray[Any]] = []
    for chunk in column.chunks:
        flat = chunk.flatten()
        if str(flat.type) != kind or flat.null_count:
            raise DatasetError(f"{file}: a column of {kind} holds {flat.type}; restore the file")
        starts = np.cumsum(chunk.value_lengths())[:-1]
        rows += np.split(flat.to_numpy(zero_copy_only=False), starts)
    return rows


def _graph(texts: dict[str, tuple[str, ...]], numbers: dict[str, Any], report: str) -> OpGraph:
    num_nodes, num_edges = len(texts["names"]), len(numbers["edge_sources"])
    per_node = (texts["op_types"], texts["devices"], *_pick(numbers, "tensor_"))
    per_edge = (numbers["edge_destinations"], numbers["is_control"])
    per_remote = _pick(numbers, "remote_")
    _check_lengths("nodes", num_nodes, per_node)
    _check_lengths("edges", num_edges, per_edge)
    _check_lengths("remote op types", len(texts["remote_op_types"]), per_remote)
    edges = np.stack([numbers["edge_sources"], numbers["edge_destinations"]], axis=1)
    if num_edges and not 0 <= edges.min() <= edges.max() < num_nodes:
        raise ValueError(f"an edge leads outside its {num_nodes} nodes")
    remote = zip(texts["remote_op_types"], *(array.tolist() for array in per_remote), strict=True)
    return OpGraph(
        names=texts["names"],
        op_types=texts["op_types"],
        devices=texts["devices"],
        edges=edges.astype(np.int32, copy=False),
        is_control=numbers["is_control"],
        tensor_elements=numbers["tensor_elements"],
        tensor_bytes=numbers["tensor_bytes"],
        remote=tuple(
            RemoteOps(op_type=op_type, num_nodes=nodes, tensor_bytes=size)
            for op_type, nodes, size in remote
        ),
        report=_report(report),
    )


def _pick(numbers: dict[str, Any], prefix: str) -> tuple[Any, ...]:
    return tuple(array for name, array in numbers.items() if name.startswith(prefix))


def _check_lengths(what: str, expected: int, arrays: tuple[Any, ...]) -> None:
    for array in arrays:
        if len(array) != expected:
            raise ValueError(f"{len(array)} values for {expected} {what}")


def _report(text: str) -> ReadReport:
    stored = json.loads(text)
    values: dict[str, Any] = {}
    for field in fields(ReadReport):
        if field.name in stored:
            value = stored[field.name]
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return ReadReport(**values)
