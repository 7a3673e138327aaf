"""BUILD: graph -> groups -> features, edges between groups, context (paper, section 3.1).

    OpGraph --group_nodes--> group of each node, edges between groups --> features [M, 3], context

Entry point: `build_input`. Graphs are built one at a time: the others of a batch change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.inputs.config import InputConfig
from driple.inputs.features import context_vector, group_features, unknown_op_types
from driple.inputs.grouped import AnyGraph, GroupedGraph
from driple.inputs.groupings import Groupings

__all__ = ["InspectorInput", "build_input"]


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectorInput:
    """What the inspector takes of one graph.

    Attributes:
        features: shape [num_groups, 3], float32, sums over each group: op-type encoding, tensor
            size in bytes, number of nodes; log(1 + sum) of each with `features="log"`.
        edges: shape [num_group_edges, 2], int32, pairs of connected groups, undirected, each
            once, i < j, sorted.
        context: shape [C], float32, the whole graph (`features.CONTEXT_NAMES`), or empty.
        num_nodes: nodes of the graph, left-out ones included.
        num_edges: edges of the graph.
        unknown_op_types: op types that the table lacks, encoded as 0, and how often they occur.
    """

    features: npt.NDArray[np.float32]
    edges: npt.NDArray[np.int32]
    context: npt.NDArray[np.float32]
    num_nodes: int
    num_edges: int
    unknown_op_types: dict[str, int]

    @property
    def num_groups(self) -> int:
        """Number of groups; fewer than M where the graph has fewer nodes."""
        return len(self.features)


def build_input(
    graph: AnyGraph,
    table: Mapping[str, float],
    config: InputConfig,
    *,
    num_groups: int | None = None,
    groupings: Groupings | None = None,
) -> InspectorInput:
    """Build the inspector's input of one graph (paper, section 3.1).

    Args:
        graph: the graph of one worker's training step; one that is grouped already stays so.
        table: encoding of each op type, as in the checkpoint.
        config: grouping, features and context.
        num_groups: M, where the policy's own is not wanted (the policy `proportional` while
            training takes it from the batch: `proportional_num_groups`).
        groupings: where groupings are kept, if the same graph is built for several tables.

    Raises:
        GraphError: the graph has no nodes, or is grouped already and context is asked for.
        ConfigError: `num_groups` below 1.
    """
    if isinstance(graph, GroupedGraph):
        return _input_of_groups(graph, config)
    grouping = (groupings or Groupings()).of(graph, config, num_groups)
    features = group_features(graph, grouping.groups, table)
    if config.features == "log":
        features = np.log1p(features)
    context = context_vector(graph, table) if config.context else np.zeros(0)
    return InspectorInput(
        features=features.astype(np.float32),
        edges=grouping.edges,
        context=context.astype(np.float32),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        unknown_op_types=unknown_op_types(graph, table, remote=config.context),
    )


def _input_of_groups(graph: GroupedGraph, config: InputConfig) -> InspectorInput:
    """The input of a graph that somebody else has grouped."""
    if config.context:
        raise GraphError(
            "a graph of which only the groups are known has no context; choose a preset without it"
        )
    features = graph.features.astype(np.float64)
    return InspectorInput(
        features=(np.log1p(features) if config.features == "log" else features).astype(np.float32),
        edges=graph.edges,
        context=np.zeros(0, dtype=np.float32),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        unknown_op_types={},
    )
