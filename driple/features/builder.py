"""BUILD: graph -> groups -> features, edges between groups, context (paper, section 3.1).

    OpGraph --group_nodes--> group of each node, edges between groups --> features [M, F], context

Entry point: `build_input`. Graphs are built one at a time: the others of a batch change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.features.config import InputConfig
from driple.features.costs import cost_context, group_costs
from driple.features.features import context_vector, group_features, unknown_op_types
from driple.features.graph_stats import graph_facts
from driple.features.grouping_cache import Groupings
from driple.features.pregrouped import AnyGraph, GroupedGraph
from driple.graph.cost import GraphCost, cost_of_graph
from driple.graph.opgraph import OpGraph

__all__ = ["InspectorInput", "build_input"]


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectorInput:
    """Input of the inspector for one graph.

    Attributes:
        features: shape [num_groups, F], float32, sums over each group, or log(1 + sum)
            of each (`InputConfig.feature_names`).
        edges: shape [num_group_edges, 2], int32, pairs of connected groups, undirected, each
            once, i < j, sorted.
        context: shape [C], float32, the whole graph (`InputConfig.context_names`), log(1 + x).
        num_nodes: nodes of the graph, left-out ones included.
        num_edges: edges of the graph.
        num_ops: nodes of the graph, and with a context those that run elsewhere.
        unknown_op_types: op types that the table lacks, encoded as 0, and how many of those ops
            they are.
        facts: statistics of the graph (`facts.py`); FLOPs only where costs are asked for.
    """

    features: npt.NDArray[np.float32]
    edges: npt.NDArray[np.int32]
    context: npt.NDArray[np.float32]
    num_nodes: int
    num_edges: int
    num_ops: int
    unknown_op_types: dict[str, int]
    facts: dict[str, float]

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
    cost: GraphCost | None = None,
) -> InspectorInput:
    """Build the inspector's input of one graph (paper, section 3.1).

    Args:
        graph: the graph of one worker's training step; one that is grouped already stays so.
        table: encoding of each op type, as in the checkpoint.
        config: grouping, features and context.
        num_groups: M, where the policy's own is not wanted (the policy `proportional` while
            training takes it from the batch: `proportional_num_groups`).
        groupings: where groupings are kept, if the same graph is built for several tables.
        cost: costs of this graph, where it is known already.

    Raises:
        GraphError: the graph has no nodes, is grouped already and context or costs are asked for,
            holds no shapes, which costs depend on, or numbers beyond single precision.
        ConfigError: `num_groups` below 1.
    """
    if isinstance(graph, GroupedGraph):
        return _input_of_groups(graph, config)
    grouping = (groupings or Groupings()).of(graph, config, num_groups)
    features = group_features(graph, grouping.groups, table)
    parts = [context_vector(graph, table)] if config.context != "none" else []
    cost = _cost(graph, cost) if "costs" in (config.features, config.context) else None
    if cost is not None:
        if config.features == "costs":
            features = np.concatenate([features, group_costs(cost, grouping.groups)], axis=1)
        if config.context == "costs":
            parts.append(cost_context(graph, cost, config.num_servers))
    if config.features != "paper":
        features = _logarithm(features)
    context = np.concatenate(parts) if parts else np.zeros(0)
    remote = config.context != "none"
    return InspectorInput(
        features=_single(features),
        edges=grouping.edges,
        context=_single(context),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        num_ops=graph.num_nodes + (sum(ops.num_nodes for ops in graph.remote) if remote else 0),
        unknown_op_types=unknown_op_types(graph, table, remote=remote),
        facts=graph_facts(graph, cost),
    )


def _logarithm(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """log(1 + x) of sums; no number where x is below -1, which only a damaged table gives."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log1p(sums)


def _single(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The same in single precision, with which the inspector computes."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest <= float(np.finfo(np.float32).max):
        raise GraphError(
            f"features of the graph reach {largest:.3g}, and the inspector computes with 3.4e38 at "
            "most: the checkpoint's table of ops or sizes in the graph are damaged; get them again"
        )
    return values.astype(np.float32)


def _cost(graph: OpGraph, known: GraphCost | None) -> GraphCost:
    return cost_of_graph(graph) if known is None else known


def _input_of_groups(graph: GroupedGraph, config: InputConfig) -> InspectorInput:
    """The input of a graph that somebody else has grouped."""
    if config.context != "none" or config.features == "costs":
        raise GraphError(
            "a graph of which only the groups are known has neither context nor costs; choose a "
            "preset without them"
        )
    features = graph.features.astype(np.float64)
    return InspectorInput(
        features=_single(_logarithm(features) if config.features == "log" else features),
        edges=graph.edges,
        context=np.zeros(0, dtype=np.float32),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        num_ops=graph.num_nodes,
        unknown_op_types={},
        facts=graph_facts(graph),
    )
