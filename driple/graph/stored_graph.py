"""An `OpGraph` as bytes and back, for another process: arrays and JSON, nothing that is executed.

OpGraph <-> .npz with an array for each array, and one of JSON text for all other fields
"""

from __future__ import annotations

import io
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from driple.codec import from_json, to_json
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.signature import signatures_from_json, signatures_to_json
from driple.storedfiles import arrays_of, parse_json, read_bytes

__all__ = ["MAX_GRAPH_BYTES", "graph_from_stored", "graph_to_bytes", "read_stored_graph"]

MAX_GRAPH_BYTES = 2**31
_SIGNATURES, _REST = "signatures", "rest"


def graph_to_bytes(graph: OpGraph) -> bytes:
    """The graph as the content of an .npz file."""
    arrays: dict[str, Any] = {}
    rest: dict[str, object] = {}
    _pack(graph, "", arrays, rest)
    arrays[_SIGNATURES] = np.frombuffer(signatures_to_json(graph.signatures).encode(), np.uint8)
    arrays[_REST] = np.frombuffer(json.dumps(rest).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def read_stored_graph(file: Path) -> OpGraph:
    """The graph in a file that holds what `graph_to_bytes` made.

    Raises:
        GraphError: the file cannot be read, or is damaged.
    """
    try:
        data = read_bytes(file, MAX_GRAPH_BYTES)
    except (OSError, ValueError) as error:
        raise GraphError(f"{file} is no stored graph: {error}; make it again") from error
    return graph_from_stored(data, str(file))


def graph_from_stored(data: bytes, where: str) -> OpGraph:
    """The graph of what `graph_to_bytes` made.

    Args:
        data: its bytes.
        where: they come from, for messages.

    Raises:
        GraphError: they are damaged.
    """
    try:
        names = (*_array_names(OpGraph, ""), _SIGNATURES, _REST)
        arrays = arrays_of(data, names, MAX_GRAPH_BYTES)
        rest = parse_json(arrays[_REST].tobytes())
        signatures = arrays[_SIGNATURES].tobytes().decode()
    except ValueError as error:
        raise GraphError(f"{where} is no stored graph: {error}; make it again") from error
    graph: OpGraph = _unpacked(OpGraph, "", arrays, rest, signatures)
    return graph


def _pack(record: Any, prefix: str, arrays: dict[str, Any], rest: dict[str, object]) -> None:
    for field in fields(record):
        name, value = prefix + field.name, getattr(record, field.name)
        if isinstance(value, np.ndarray):
            arrays[name] = value
        elif is_dataclass(value):
            _pack(value, f"{name}.", arrays, rest)
        elif name != _SIGNATURES:
            rest[name] = to_json(value)


def _array_names(kind: Any, prefix: str) -> list[str]:
    hints = get_type_hints(kind)
    names = []
    for field in fields(kind):
        hint = hints[field.name]
        if is_dataclass(hint):
            names += _array_names(hint, f"{prefix}{field.name}.")
        elif _is_array(hint):
            names.append(prefix + field.name)
    return names


def _is_array(hint: Any) -> bool:
    return getattr(hint, "__origin__", None) is np.ndarray


def _unpacked(
    kind: Any, prefix: str, arrays: dict[str, Any], rest: dict[str, object], signatures: str
) -> Any:
    hints, values = get_type_hints(kind), {}
    for field in fields(kind):
        name, hint = prefix + field.name, hints[field.name]
        if is_dataclass(hint):
            values[field.name] = _unpacked(hint, f"{name}.", arrays, rest, signatures)
        elif _is_array(hint):
            values[field.name] = arrays[name]
        elif name == _SIGNATURES:
            values[field.name] = signatures_from_json(signatures)
        elif name in rest:
            values[field.name] = from_json(hint, rest[name], where="stored graph", error=GraphError)
        else:
            raise GraphError(f"stored graph has no {name}; make it again")
    return kind(**values)
