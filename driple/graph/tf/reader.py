"""READ: a graph file -> OpGraph. No TensorFlow, nothing executed, everything bounded.

    file --gunzip--> bytes --text or binary?--> RawGraph --build.py--> OpGraph

Entry points: `read_graph` for files, `graph_from_graphdef_bytes` for bytes in memory.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from driple.errors import GraphError
from driple.graph.filebytes import DEFAULT_MAX_BYTES, unpacked, unpacked_bytes
from driple.graph.opgraph import OpGraph
from driple.graph.options import GRAPH_FORMATS, GRAPH_SUFFIXES, ReadOptions
from driple.graph.tf.build import graph_of
from driple.storedfiles import is_lfs_pointer, lfs_advice

__all__ = [
    "DEFAULT_MAX_BYTES",
    "graph_from_file_bytes",
    "graph_from_graphdef_bytes",
    "graph_from_text",
    "read_graph",
]

_NO_OPTIONS = ReadOptions()
_SNIFFED_BYTES = 4096
_SAVED_MODELS = ("saved_model.pb", "saved_model.pbtxt")
_MOST_LOOKED_AT, _MOST_NAMED = 10_000, 5  # files of a folder
# Bytes below 32 that a text may hold: tab, line feed, form feed, carriage return.
_TEXT_CONTROLS = frozenset(b"\t\n\f\r")


def read_graph(
    path: str | Path,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    options: ReadOptions = _NO_OPTIONS,
) -> OpGraph:
    """Read a GraphDef (`.pb`, `.pbtxt`), a SavedModel's `saved_model.pb` or a `.meta` file.

    Each may be binary or text, and gzipped. The content decides the format. A SavedModel's folder
    may be given too.

    Args:
        path: the file.
        max_bytes: largest file that is read, and largest size after gunzip.
        options: sizes that the graph leaves open, and which train op is meant.

    Raises:
        GraphError: no such file, too large, corrupt, no graph, a graph without a worker's ops, or
            options that contradict it.
    """
    file = Path(path)
    try:
        if file.is_dir():
            file = _graph_in(file)
        return _graph_from_bytes(unpacked_bytes(file, max_bytes), options)
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}; give a graph file") from error
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def graph_from_file_bytes(
    data: bytes, max_bytes: int = DEFAULT_MAX_BYTES, options: ReadOptions = _NO_OPTIONS
) -> OpGraph:
    """What `read_graph` makes of a file with this content.

    Args:
        data: binary or text, gzipped or not.
        max_bytes: largest size, also after gunzip.
        options: as for `read_graph`.

    Raises:
        GraphError: as for `read_graph`.
    """
    return _graph_from_bytes(unpacked(data, max_bytes), options)


def graph_from_graphdef_bytes(data: bytes, options: ReadOptions = _NO_OPTIONS) -> OpGraph:
    """The OpGraph of a serialised GraphDef, SavedModel or MetaGraphDef.

    Raises:
        GraphError: as for `read_graph`.
    """
    from driple.graph.tf.graphdef import raw_from_bytes

    raw, notes = raw_from_bytes(data)
    return graph_of(raw, notes, options)


def graph_from_text(text: str, options: ReadOptions = _NO_OPTIONS) -> OpGraph:
    """The OpGraph of a GraphDef, SavedModel or MetaGraphDef in text format.

    Raises:
        GraphError: as for `read_graph`.
    """
    from driple.graph.tf.text_containers import raw_of_any_text

    raw, notes = raw_of_any_text(text)
    return graph_of(raw, notes, options)


def _graph_in(folder: Path) -> Path:
    """The SavedModel in a folder.

    Raises:
        GraphError: there is none; the message names the graph files that are there.
    """
    for name in _SAVED_MODELS:
        if (folder / name).exists():
            return folder / name
    names = sorted(
        item.name for item in islice(folder.iterdir(), _MOST_LOOKED_AT)
        if item.name.removesuffix(".gz").endswith(GRAPH_SUFFIXES)
    )  # fmt: skip
    if not names:
        raise GraphError(
            f"it is a directory without a SavedModel or graph file; give a {GRAPH_FORMATS} file"
        )
    named = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    raise GraphError(f"it is a directory without a SavedModel; give a graph file in it: {named}")


def _graph_from_bytes(data: bytes, options: ReadOptions) -> OpGraph:
    if not data.strip():
        raise GraphError("file is empty; a GraphDef (.pb, .pbtxt, .meta) was expected")
    if is_lfs_pointer(data):
        raise GraphError(lfs_advice("graph"))
    if not _is_text(data[:_SNIFFED_BYTES]):
        return graph_from_graphdef_bytes(data, options)
    try:
        return graph_from_text(data.decode("utf-8-sig"), options)
    except UnicodeDecodeError as error:
        raise GraphError(
            f"neither text nor a binary GraphDef: byte {error.start} is no UTF-8"
        ) from error


def _is_text(head: bytes) -> bool:
    return all(byte >= 32 or byte in _TEXT_CONTROLS for byte in head)
