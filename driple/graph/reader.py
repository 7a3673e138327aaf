"""READ: a graph file -> OpGraph. No TensorFlow, nothing executed, everything bounded.

    file --gunzip--> bytes --text or binary?--> RawGraph --inline--> nodes --select--> OpGraph

Entry points: `read_graph` for files, `graph_from_graphdef_bytes` for bytes in memory.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.describe import describe_nodes
from driple.graph.functions import Inlined, inline_functions, node_of, output_number
from driple.graph.loops import count_executions
from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps, Traffic
from driple.graph.raw import RawGraph, RawNode
from driple.graph.select import Selection, select_nodes
from driple.graph.sizes import OutputSize, output_size

__all__ = ["DEFAULT_MAX_BYTES", "graph_from_graphdef_bytes", "graph_from_text", "read_graph"]

DEFAULT_MAX_BYTES = 512 * 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's number for a gzip header
_GZIP_CHUNK_BYTES = 65_536
_MOST_GZIP_MEMBERS = 100_000
_SNIFFED_BYTES = 4096
# Bytes below 32 that a text may hold: tab, line feed, form feed, carriage return.
_TEXT_CONTROLS = frozenset(b"\t\n\f\r")
# Ops through which a loop may close; NextIteration carries the value back.
_LOOP_BACK = frozenset({"NextIteration", "RefNextIteration"})
_MOST_BYTES = 2**62


def read_graph(path: str | Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> OpGraph:
    """Read a GraphDef (`.pb`, `.pbtxt`), a SavedModel's `saved_model.pb` or a `.meta` file.

    Each may be gzipped. The format is told by the content. A SavedModel's folder may be given too.

    Args:
        path: the file.
        max_bytes: largest file that is read, and largest size after gunzip.

    Raises:
        GraphError: no such file, too large, corrupt, no graph, or a graph without a worker's ops.
    """
    file = Path(path)
    if file.is_dir() and (file / "saved_model.pb").exists():
        file = file / "saved_model.pb"
    try:
        return _graph_from_bytes(_read(file, max_bytes))
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror or error}; give a graph file") from error
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def graph_from_graphdef_bytes(data: bytes) -> OpGraph:
    """The OpGraph of a serialised GraphDef, SavedModel or MetaGraphDef.

    Raises:
        GraphError: as for `read_graph`.
    """
    from driple.graph.graphdef import raw_from_bytes

    raw, notes = raw_from_bytes(data)
    return _graph_of(raw, notes)


def graph_from_text(text: str) -> OpGraph:
    """The OpGraph of a GraphDef in text format.

    Raises:
        GraphError: as for `read_graph`.
    """
    from driple.graph.pbtxt import raw_from_text

    return _graph_of(raw_from_text(text), ())


def _read(file: Path, max_bytes: int) -> bytes:
    size = file.stat().st_size
    if size > max_bytes:
        raise GraphError(_too_large(f"{size} bytes", max_bytes))
    with file.open("rb") as opened:
        data = opened.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise GraphError(_too_large(f"over {max_bytes} bytes", max_bytes))
    return _gunzip(data, max_bytes) if data.startswith(_GZIP_MAGIC) else data


def _too_large(size: str, max_bytes: int) -> str:
    return f"file has {size}, at most {max_bytes} are read; raise the limit with --max-mib"


def _gunzip(data: bytes, max_bytes: int) -> bytes:
    """Unpack all members, in chunks, never more than `max_bytes`."""
    pieces, left, num_members = [], max_bytes, 0
    member = zlib.decompressobj(_GZIP_WINDOW)
    try:
        for start in range(0, len(data), _GZIP_CHUNK_BYTES):
            chunk = data[start : start + _GZIP_CHUNK_BYTES]
            while chunk:
                if member.eof:
                    chunk = chunk.lstrip(b"\0")  # padding between members
                    if not chunk:
                        break
                    member = zlib.decompressobj(_GZIP_WINDOW)
                    num_members += 1
                piece = member.decompress(chunk, left + 1)
                if len(piece) > left:
                    raise GraphError(_too_large(f"over {max_bytes} bytes when unpacked", max_bytes))
                if num_members > _MOST_GZIP_MEMBERS:
                    raise GraphError(f"gzip has over {_MOST_GZIP_MEMBERS} members; pack it again")
                pieces.append(piece)
                left -= len(piece)
                chunk = member.unused_data
    except zlib.error as error:
        raise GraphError(f"gzip file is corrupt ({error}); copy it again") from error
    if not member.eof:
        raise GraphError("gzip file is cut off; copy it again")
    return b"".join(pieces)


def _graph_from_bytes(data: bytes) -> OpGraph:
    if not data.strip():
        raise GraphError("file is empty; a GraphDef (.pb, .pbtxt) was expected")
    if not _is_text(data[:_SNIFFED_BYTES]):
        return graph_from_graphdef_bytes(data)
    try:
        return graph_from_text(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise GraphError(
            f"neither text nor a binary GraphDef: byte {error.start} is no UTF-8"
        ) from error


def _is_text(head: bytes) -> bool:
    return all(byte >= 32 or byte in _TEXT_CONTROLS for byte in head)


def _graph_of(raw: RawGraph, notes: tuple[str, ...]) -> OpGraph:
    inlined = inline_functions(raw)
    nodes = inlined.nodes
    if not nodes:
        raise GraphError("graph has no nodes; a GraphDef of a training step was expected")
    nameless = sum(not node.name or not node.op for node in nodes)
    if nameless:
        raise GraphError(
            f"{nameless} of {len(nodes)} node(s) have no name or no op; no GraphDef, or "
            "a corrupt one: write the graph again (tf.io.write_graph)"
        )
    edges, is_control, inputs, dangling = _edges(nodes)
    order = _in_order(nodes, edges)
    selection = select_nodes(nodes, edges)
    sizes = [output_size(node) for node in nodes]
    kept = np.flatnonzero(selection.kept)
    position = np.full(len(nodes), -1, dtype=np.int32)
    position[kept] = np.arange(len(kept), dtype=np.int32)
    inside = selection.kept[edges].all(axis=1) if len(edges) else np.zeros(0, dtype=np.bool_)
    num_elements = np.array([sizes[i].elements for i in kept], dtype=np.int64)
    num_bytes = np.array([sizes[i].tensor_bytes for i in kept], dtype=np.int64)
    if num_bytes.sum(dtype=np.float64) > _MOST_BYTES:
        raise GraphError("tensors of the graph add up to over 2^62 bytes; the file is corrupt")
    signatures, signature_of = describe_nodes(nodes, inputs, order, kept.tolist())
    executions = count_executions(nodes, inputs, edges, order)
    return OpGraph(
        names=tuple(nodes[i].name for i in kept),
        op_types=tuple(nodes[i].op for i in kept),
        devices=tuple(nodes[i].device for i in kept),
        edges=position[edges[inside]].reshape(-1, 2),
        is_control=is_control[inside],
        tensor_elements=num_elements,
        tensor_bytes=num_bytes,
        remote=_remote(nodes, sizes, selection),
        traffic=_traffic(edges[~is_control], selection.kept, position, sizes),
        report=_report(
            raw,
            inlined,
            selection,
            sizes=[sizes[i] for i in kept],
            dangling=dangling,
            unknown_loops=executions.num_unknown,
            notes=notes,
        ),
        signatures=signatures,
        signature_of=signature_of,
        executions=executions.count[kept],
    )


def _edges(
    nodes: Sequence[RawNode],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], list[list[tuple[int, int]]], int]:
    """Edges, which are control edges, data inputs (node, output), how many inputs lead nowhere."""
    index = {node.name: i for i, node in enumerate(nodes)}
    if len(index) != len(nodes):
        raise GraphError(f"graph has {len(nodes) - len(index)} node name(s) twice; it is corrupt")
    pairs: list[tuple[int, int]] = []
    control: list[bool] = []
    inputs: list[list[tuple[int, int]]] = [[] for _ in nodes]
    dangling = 0
    for target, node in enumerate(nodes):
        for reference in node.inputs:
            source, number = index.get(reference), 0
            if source is None:
                source, number = index.get(node_of(reference)), output_number(reference)
            if source is None:
                dangling += 1
                continue
            pairs.append((source, target))
            is_control = reference.startswith("^")
            control.append(is_control)
            if not is_control:
                inputs[target].append((source, number))
    edges = np.array(pairs, dtype=np.int32).reshape(-1, 2)
    return edges, np.array(control, dtype=np.bool_), inputs, dangling


def _in_order(nodes: Sequence[RawNode], edges: npt.NDArray[np.int32]) -> list[int]:
    """Positions, each after all that it reads but for the edges back of loops (Kahn's algorithm).

    A cycle is sound only if a loop closes it; any other is refused.
    """
    readers: list[list[int]] = [[] for _ in nodes]
    waiting = [0] * len(nodes)
    back = [node.op in _LOOP_BACK for node in nodes]
    for source, target in edges.tolist():
        if not back[source]:
            readers[source].append(target)
            waiting[target] += 1
    ready = [i for i, count in enumerate(waiting) if not count]
    done = []
    while ready:
        done.append(ready.pop())
        for target in readers[done[-1]]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    if len(done) < len(nodes):
        stuck = next(i for i, count in enumerate(waiting) if count)
        raise GraphError(
            f"graph has a cycle that no while-loop closes, through or before node "
            f"'{nodes[stuck].name}'; a training step must be acyclic"
        )
    return done


def _remote(
    nodes: Sequence[RawNode], sizes: Sequence[OutputSize], selection: Selection
) -> tuple[RemoteOps, ...]:
    totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for i in np.flatnonzero(~selection.kept).tolist():
        total = totals[nodes[i].op]
        total[0] += 1
        total[1] = min(total[1] + sizes[i].tensor_bytes, _MOST_BYTES)
    return tuple(
        RemoteOps(op_type=op, num_nodes=count, tensor_bytes=size)
        for op, (count, size) in sorted(totals.items())
    )


def _traffic(
    data_edges: npt.NDArray[np.int32],
    kept: npt.NDArray[np.bool_],
    position: npt.NDArray[np.int32],
    sizes: Sequence[OutputSize],
) -> Traffic:
    """What data edges carry in and out; `position` is that of the kept nodes among themselves."""

    def nbytes(nodes: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        return np.array([sizes[i].tensor_bytes for i in nodes.tolist()], dtype=np.int64)

    from_kept, to_kept = kept[data_edges[:, 0]], kept[data_edges[:, 1]]
    incoming = np.unique(data_edges[~from_kept & to_kept], axis=0)
    sources, number = np.unique(incoming[:, 0], return_inverse=True)
    senders = np.unique(data_edges[from_kept & ~to_kept, 0])
    return Traffic(
        received_bytes=nbytes(sources),
        readers=np.stack([number, position[incoming[:, 1]]], axis=1).astype(np.int32),
        sent_bytes=nbytes(senders),
        senders=position[senders],
    )


def _report(
    raw: RawGraph,
    inlined: Inlined,
    selection: Selection,
    *,
    sizes: Sequence[OutputSize],
    dangling: int,
    unknown_loops: int,
    notes: tuple[str, ...],
) -> ReadReport:
    """Count what could not be taken at face value, and say it."""
    shapeless = sum(not size.has_shape for size in sizes)
    untyped = sum(not size.has_type for size in sizes)
    unknown = sum(size.unknown_dimensions for size in sizes)
    said = [*notes, *selection.notes]
    if not any(node.shapes for node in inlined.nodes):
        said.append(
            "no node has a shape, so every tensor size is 0 and predictions are guesses; write the "
            "graph with as_graph_def(add_shapes=True)"
        )
    elif shapeless:
        said.append(f"{shapeless} of {len(sizes)} nodes have no known shape; their size counts 0")
    if unknown:
        said.append(f"{unknown} unknown dimension(s) count as 1; give the graph a fixed batch size")
    if untyped:
        said.append(f"{untyped} node(s) without a data type; their elements count 4 bytes")
    if dangling:
        said.append(f"{dangling} input(s) name nodes that are not in the file")
    if unknown_loops:
        said.append(f"{unknown_loops} loop(s) of unknown length count as one turn")
    if inlined.unresolved:
        said.append(f"functions not in the file, kept as calls: {', '.join(inlined.unresolved)}")
    return ReadReport(
        nodes_in_file=len(raw.nodes),
        nodes_inlined=inlined.num_inlined,
        nodes_without_shape=shapeless,
        unknown_dimensions=unknown,
        nodes_without_device=selection.without_device,
        dangling_inputs=dangling,
        loops_of_unknown_length=unknown_loops,
        unresolved_functions=inlined.unresolved,
        notes=tuple(said),
    )
