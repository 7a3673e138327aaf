"""Small graphs for the tests of the input builder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driple.graph.opgraph import OpGraph, RemoteOps

OP_TYPES = ("Conv2D", "MatMul", "Relu", "Add", "Const")


def op_graph(
    num_nodes: int,
    edges: Sequence[tuple[int, int]],
    *,
    op_types: Sequence[str] | None = None,
    tensor_bytes: Sequence[int] | None = None,
    remote: Sequence[RemoteOps] = (),
) -> OpGraph:
    """A graph with the given edges; op types and sizes follow from the node numbers."""
    types = op_types or [OP_TYPES[i % len(OP_TYPES)] for i in range(num_nodes)]
    sizes = np.array(
        [4 * (i + 1) for i in range(num_nodes)] if tensor_bytes is None else tensor_bytes,
        dtype=np.int64,
    )
    return OpGraph(
        names=tuple(f"op_{i}" for i in range(num_nodes)),
        op_types=tuple(types),
        devices=("",) * num_nodes,
        edges=np.array(edges, dtype=np.int32).reshape(-1, 2),
        is_control=np.zeros(len(edges), dtype=np.bool_),
        tensor_elements=sizes // 4,
        tensor_bytes=sizes,
        remote=tuple(remote),
    )


def layered_edges(num_nodes: int, seed: int) -> list[tuple[int, int]]:
    """Edges like those of a training step: a chain, skips, and forward tensors used backward."""
    generator = np.random.default_rng(seed)
    edges = [(i, i + 1) for i in range(num_nodes - 1)]
    starts = generator.integers(0, num_nodes - 1, size=num_nodes // 3)
    spans = generator.integers(1, 60, size=num_nodes // 3)
    edges += [(int(a), int(min(num_nodes - 1, a + s))) for a, s in zip(starts, spans, strict=True)]
    edges += [(i, num_nodes - 1 - i) for i in range(0, num_nodes // 2, 5)]
    return edges


def permuted(graph: OpGraph, order: Sequence[int]) -> OpGraph:
    """The same graph with node `order[i]` at position i."""
    place = np.argsort(np.array(order))
    return OpGraph(
        names=tuple(graph.names[i] for i in order),
        op_types=tuple(graph.op_types[i] for i in order),
        devices=tuple(graph.devices[i] for i in order),
        edges=place[graph.edges].astype(np.int32),
        is_control=graph.is_control,
        tensor_elements=graph.tensor_elements[list(order)],
        tensor_bytes=graph.tensor_bytes[list(order)],
        remote=graph.remote,
    )
