"""The part of an input that depends on the graph alone, found once however often it is asked for.

    OpGraph, InputConfig, M  ->  Grouping: group of each node, edges between the groups

Features and context depend on the op-type table as well, hence on the training part of a split; the
grouping, which takes most of the time, is the same in every fold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.features.communities import group_nodes, num_groups_of
from driple.features.config import InputConfig
from driple.graph.opgraph import OpGraph

__all__ = ["Grouping", "Groupings"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Grouping:
    """The groups of one graph.

    Attributes:
        groups: shape [num_nodes], int32, group of each node; -1 for nodes that are left out.
        edges: shape [num_group_edges, 2], int32, pairs of connected groups, undirected, each
            once, i < j, sorted.
    """

    groups: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int32]


class Groupings:
    """Groupings by graph and by all that decides them; they live as long as this object."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, str], Grouping] = {}
        self._graphs: dict[int, OpGraph] = {}  # held, so that no other graph gets its id

    def __reduce__(self) -> tuple[type[Groupings], tuple[()]]:
        """A copy is empty: in another process other graphs have these ids."""
        return Groupings, ()

    def of(self, graph: OpGraph, config: InputConfig, num_groups: int | None = None) -> Grouping:
        """The grouping of this very object `graph`; its arrays are shared and read-only.

        Args:
            graph: the graph.
            config: policy, seed and which components.
            num_groups: M; the policy's own if not given.

        Raises:
            GraphError: the graph has no nodes.
            ConfigError: `num_groups` below 1.
        """
        wanted = num_groups_of(graph, config) if num_groups is None else num_groups
        key = (id(graph), wanted, config.seed, config.components)
        if key not in self._known:
            groups = group_nodes(graph, config, wanted)
            grouping = Grouping(groups=groups, edges=_group_edges(graph.edges, groups))
            for array in (grouping.groups, grouping.edges):
                array.flags.writeable = False
            self._graphs[id(graph)] = graph
            self._known[key] = grouping
        return self._known[key]


def _group_edges(
    edges: npt.NDArray[np.int32], groups: npt.NDArray[np.int32]
) -> npt.NDArray[np.int32]:
    """Pairs of different groups that an edge joins: each once, smaller number first, sorted."""
    pairs = groups[edges].reshape(-1, 2)
    pairs = np.sort(pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])], axis=1)
    return np.unique(pairs, axis=0).astype(np.int32)
