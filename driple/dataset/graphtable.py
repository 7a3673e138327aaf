"""Graphs as the rows of one Arrow table: the inside of `graphs.parquet`.

    {content hash: OpGraph}  <->  table, one row per graph, one list per attribute

Op types and devices repeat, so Parquet's dictionaries hold them; node names share long beginnings,
and edges are small steps apart, so both are stored as differences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driple.codec import from_json
from driple.dataset.tables import check_columns
from driple.errors import DatasetError, GraphError
from driple.graph.opgraph import FRAMEWORKS, LAYOUTS, OpGraph, ReadReport, RemoteOps, Traffic
from driple.graph.opkind import family_of
from driple.graph.optimizers import update_of_remote
from driple.graph.signature import signatures_from_json, signatures_to_json
from driple.graph.tf.op_kinds import kind_of_op_type
from driple.storedfiles import parse_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HASH_COLUMN", "graphs_from_table", "graphs_to_table"]

HASH_COLUMN = "graph"
REPORT_COLUMN = "report"
SIGNATURES_COLUMN = "signatures"
# What a graph says as a whole; it lies with the report. Files of earlier versions have none of it.
_SAID = ("is_training", "layout")
_FRAMEWORK = "framework"
_MARK = "@"  # before the kind of a remote op whose name is not TensorFlow's
_USUAL = FRAMEWORKS[0]
TEXT_LISTS = ("names", "op_types", "devices", "remote_op_types")
NUMBER_LISTS = {
    "edge_sources": "int32",
    "edge_destinations": "int32",
    "is_control": "bool",
    "tensor_elements": "int64",
    "tensor_bytes": "int64",
    "signature_of": "int32",
    "executions": "int64",
    "remote_num_nodes": "int64",
    "remote_tensor_bytes": "int64",
    "received_bytes": "int64",
    "received": "int32",
    "received_by": "int32",
    "sent_bytes": "int64",
    "sent_by": "int32",
}
_KINDS = {
    HASH_COLUMN: "string",
    SIGNATURES_COLUMN: "string",
    REPORT_COLUMN: "string",
    **dict.fromkeys(TEXT_LISTS, "list<string>"),
    **{name: f"list<{kind}>" for name, kind in NUMBER_LISTS.items()},
}
ENCODINGS = {
    "names.list.element": "DELTA_BYTE_ARRAY",
    "edge_sources.list.element": "DELTA_BINARY_PACKED",
    "edge_destinations.list.element": "DELTA_BINARY_PACKED",
    "is_control.list.element": "RLE",
    "signature_of.list.element": "DELTA_BINARY_PACKED",
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
    reports = [
        json.dumps(
            {
                **asdict(graph.report),
                **{name: getattr(graph, name) for name in _SAID},
                **({} if graph.framework == _USUAL else {_FRAMEWORK: graph.framework}),
            }
        )
        for graph in rows
    ]
    signature_texts = [signatures_to_json(graph.signatures) for graph in rows]
    columns[SIGNATURES_COLUMN] = pa.array(signature_texts, pa.string())
    columns[REPORT_COLUMN] = pa.array(reports, pa.string())
    return pa.table(columns), dict(ENCODINGS)


def graphs_from_table(table: pa.Table, file: Path) -> dict[str, OpGraph]:
    """The graphs of a table by content hash; the hashes themselves are not checked here.

    Raises:
        DatasetError: a column is missing, of another type or empty, or lists of unequal length.
    """
    check_columns(table, _KINDS, file)
    hashes = table[HASH_COLUMN].to_pylist()
    texts = {name: _text_rows(table[name]) for name in TEXT_LISTS}
    numbers = {name: _number_rows(table[name]) for name in NUMBER_LISTS}
    signatures = table[SIGNATURES_COLUMN].to_pylist()
    reports = table[REPORT_COLUMN].to_pylist()
    graphs = {}
    for i, key in enumerate(hashes):
        row_texts = {name: rows[i] for name, rows in texts.items()}
        row_numbers = {name: rows[i] for name, rows in numbers.items()}
        try:
            graphs[key] = _graph(row_texts, row_numbers, signatures[i], reports[i])
        except (ValueError, TypeError, GraphError) as error:
            raise DatasetError(
                f"{file}: graph {key[:12]} is damaged ({error}); restore the file"
            ) from error
    return graphs


def _texts(graph: OpGraph, name: str) -> tuple[str, ...]:
    if name == "remote_op_types":
        return tuple(_remote_name(ops) for ops in graph.remote)
    texts: tuple[str, ...] = getattr(graph, name)
    return texts


def _remote_name(ops: RemoteOps) -> str:
    """TensorFlow's op type, whose kind is known by it; otherwise `@`, the kind, and the op type."""
    if kind_of_op_type(ops.op_type) == ops.kind and not ops.op_type.startswith(_MARK):
        return ops.op_type
    return f"{_MARK}{ops.kind} {ops.op_type}"


def _op_type_and_kind(stored: str) -> tuple[str, str]:
    """The inverse of `_remote_name`."""
    if not stored.startswith(_MARK):
        return stored, kind_of_op_type(stored)
    kind, _, op_type = stored.removeprefix(_MARK).partition(" ")
    family_of(kind)  # that there is one
    return op_type, kind


def _numbers(graph: OpGraph, name: str) -> npt.NDArray[Any]:
    traffic = graph.traffic
    named: dict[str, npt.NDArray[Any]] = {
        "edge_sources": graph.edges[:, 0],
        "edge_destinations": graph.edges[:, 1],
        "received_bytes": traffic.received_bytes,
        "received": traffic.readers[:, 0],
        "received_by": traffic.readers[:, 1],
        "sent_bytes": traffic.sent_bytes,
        "sent_by": traffic.senders,
    }
    if name in named:
        return named[name]
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


def _number_rows(column: pa.ChunkedArray) -> list[npt.NDArray[Any]]:
    rows: list[npt.NDArray[Any]] = []
    for chunk in column.chunks:
        starts = np.cumsum(chunk.value_lengths())[:-1]
        rows += np.split(chunk.flatten().to_numpy(zero_copy_only=False), starts)
    return rows


def _graph(
    texts: dict[str, tuple[str, ...]], numbers: dict[str, Any], signatures: str, report: str
) -> OpGraph:
    num_nodes, num_edges = len(texts["names"]), len(numbers["edge_sources"])
    per_node = (texts["op_types"], texts["devices"], *_pick(numbers, "tensor_"))
    per_edge = (numbers["edge_destinations"], numbers["is_control"])
    per_remote = _pick(numbers, "remote_")
    _check_lengths("nodes", num_nodes, per_node)
    _check_lengths("edges", num_edges, per_edge)
    _check_lengths("remote op types", len(texts["remote_op_types"]), per_remote)
    edges = np.stack([numbers["edge_sources"], numbers["edge_destinations"]], axis=1)
    table, signature_of = signatures_from_json(signatures), numbers["signature_of"]
    _check_positions("edges", edges, num_nodes)
    _check_positions("signatures", signature_of, len(table))
    if len(signature_of):  # empty in a graph that does not tell
        _check_lengths("nodes", num_nodes, (signature_of, numbers["executions"]))
    names = map(_op_type_and_kind, texts["remote_op_types"])
    remote_rows = zip(names, *(array.tolist() for array in per_remote), strict=True)
    remote = tuple(
        RemoteOps(op_type=op_type, kind=kind, num_nodes=nodes, tensor_bytes=size)
        for (op_type, kind), nodes, size in remote_rows
    )
    stored = parse_json(report.encode())
    if not isinstance(stored, dict):
        raise GraphError("its report is no JSON object")
    traffic, reported = _traffic(numbers, num_nodes), _report(stored)
    return OpGraph(
        names=texts["names"],
        op_types=texts["op_types"],
        devices=texts["devices"],
        edges=edges.astype(np.int32, copy=False),
        is_control=numbers["is_control"],
        tensor_elements=numbers["tensor_elements"],
        tensor_bytes=numbers["tensor_bytes"],
        remote=remote,
        traffic=traffic,
        report=reported,
        update=update_of_remote(remote, traffic, reported.state_bytes),
        **_said(stored),
        signatures=table,
        signature_of=signature_of,
        executions=numbers["executions"],
    )


def _traffic(numbers: dict[str, Any], num_nodes: int) -> Traffic:
    readers = np.stack([numbers["received"], numbers["received_by"]], axis=1)
    traffic = Traffic(
        received_bytes=numbers["received_bytes"],
        readers=readers.astype(np.int32, copy=False),
        sent_bytes=numbers["sent_bytes"],
        senders=numbers["sent_by"],
    )
    _check_positions("transfers", traffic.readers[:, 0], len(traffic.received_bytes))
    _check_positions("readers", traffic.readers[:, 1], num_nodes)
    _check_positions("senders", traffic.senders, num_nodes)
    return traffic


def _pick(numbers: dict[str, Any], prefix: str) -> tuple[Any, ...]:
    return tuple(array for name, array in numbers.items() if name.startswith(prefix))


def _check_positions(what: str, positions: npt.NDArray[Any], end: int) -> None:
    if positions.size and not 0 <= positions.min() <= positions.max() < end:
        raise ValueError(f"{what} lead outside of 0 to {end - 1}")


def _check_lengths(what: str, expected: int, arrays: tuple[Any, ...]) -> None:
    for array in arrays:
        if len(array) != expected:
            raise ValueError(f"{len(array)} values for {expected} {what}")


def _said(stored: Mapping[str, object]) -> dict[str, Any]:
    """Whether it is a training step, and its layout, as far as they are stored."""
    facts = {name: stored[name] for name in _SAID if name in stored}
    if _FRAMEWORK in stored:
        facts[_FRAMEWORK] = stored[_FRAMEWORK]
    if facts.get(_FRAMEWORK, _USUAL) not in FRAMEWORKS:
        raise ValueError(f"it is of the framework {str(facts[_FRAMEWORK])[:40]!r}")
    if facts.get("layout", LAYOUTS[0]) not in LAYOUTS or facts.get("is_training", True) not in (
        True,
        False,
    ):
        raise ValueError("its layout is none of a graph's")
    return facts


def _report(stored: Mapping[str, object]) -> ReadReport:
    """The reader's remarks; an earlier reader knew fewer, a later one may know others."""
    known = asdict(ReadReport()) | dict(stored)
    values = {field.name: known[field.name] for field in fields(ReadReport)}
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
    return from_json(ReadReport, values, where="its report", error=GraphError)
