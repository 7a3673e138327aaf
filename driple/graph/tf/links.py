"""Edges of a graph: who reads what, who waits for what, and an order in which all can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.tf.functions import node_of, output_number
from driple.graph.tf.raw import RawNode
from driple.units import counted

__all__ = ["GraphLinks", "edges_of", "in_order"]

# Ops through which a loop may close; NextIteration carries the value back.
_LOOP_BACK = frozenset({"NextIteration", "RefNextIteration"})


@dataclass(slots=True)
class GraphLinks:
    """Who reads what, as lists of positions.

    Attributes:
        data: for each node, the nodes that it reads.
        control: for each node, the nodes that it waits for.
        readers: for each node, the nodes that read it or wait for it.
    """

    data: list[list[int]]
    control: list[list[int]]
    readers: list[list[int]]

    @classmethod
    def of(
        cls, num_nodes: int, edges: npt.NDArray[np.int32], is_control: npt.NDArray[np.bool_]
    ) -> GraphLinks:
        """The links of a graph's edges, shape [num_edges, 2]."""
        data: list[list[int]] = [[] for _ in range(num_nodes)]
        control: list[list[int]] = [[] for _ in range(num_nodes)]
        readers: list[list[int]] = [[] for _ in range(num_nodes)]
        for (source, target), waits in zip(edges.tolist(), is_control.tolist(), strict=True):
            (control if waits else data)[target].append(source)
            readers[source].append(target)
        return cls(data, control, readers)


def edges_of(
    nodes: Sequence[RawNode],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_], list[list[tuple[int, int]]], int]:
    """Edges, which are control edges, data inputs (node, output), how many inputs lead nowhere."""
    index = {node.name: i for i, node in enumerate(nodes)}
    if len(index) != len(nodes):
        raise GraphError(
            f"graph has {counted(len(nodes) - len(index), 'node name')} twice; it is corrupt"
        )
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


def in_order(nodes: Sequence[RawNode], edges: npt.NDArray[np.int32]) -> list[int]:
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
