"""Costs of a training step, of each group and of the whole graph (ours).

    OpGraph --cost_of_graph--> FLOPs, bytes, executions, left elements of each node
            --> sums over groups [M, 4], logarithms of sums over families and of the traffic [C]

Sizes alone do not distinguish a convolution from an addition of the same size; these sums do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.graph.cost import GraphCost, cost_by_family, flops_of_update
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import FAMILIES, PRODUCT_FAMILIES
from driple.graph.placement import server_bytes

__all__ = ["COST_CONTEXT_NAMES", "COST_FEATURE_NAMES", "cost_context", "group_costs"]

FloatArray = npt.NDArray[np.float64]

COST_FEATURE_NAMES = ("flops", "moved_bytes", "executions", "left_elements")
COST_CONTEXT_NAMES = (
    *(f"flops_{family}" for family in PRODUCT_FAMILIES),
    *(f"left_elements_{family}" for family in PRODUCT_FAMILIES),
    *(f"bytes_{family}" for family in FAMILIES),
    *(f"executions_{family}" for family in FAMILIES),
    "total_flops",
    "total_bytes",
    "repeated_executions",
    "sent_tensors",
    "received_tensors",
    "accumulators",
    "accumulated_bytes",
    "fullest_server_bytes",
    "updates",
    "update_flops",
)
_ADDS_GRADIENT = "accumulate_gradient"
_BYTES_OF_PARAMETER = 4


def group_costs(cost: GraphCost, groups: npt.NDArray[np.int32]) -> FloatArray:
    """Sums over each group of `COST_FEATURE_NAMES`, loops counted in full.

    Args:
        cost: costs of the graph.
        groups: shape [num_nodes], group of each node, -1 for none.

    Returns:
        Shape [num_groups, 4].
    """
    inside = groups >= 0
    columns = cost.per_step[inside]
    return np.stack(
        [np.bincount(groups[inside], weights=columns[:, i]) for i in range(columns.shape[1])],
        axis=1,
    )


def cost_context(graph: OpGraph, cost: GraphCost, num_servers: int = 1) -> FloatArray:
    """The whole graph: log(1 + x) of `COST_CONTEXT_NAMES`, shape [len(COST_CONTEXT_NAMES)].

    Args:
        graph: the graph of one worker's training step.
        cost: costs of the graph.
        num_servers: parameter servers that hold the variables; a step waits for the fullest.
    """
    flops, moved, runs, left = cost_by_family(graph, cost)
    accumulators, updates, update_flops = _of_servers(graph)
    sent = float(graph.sent_bytes)
    values = [
        *flops[: len(PRODUCT_FAMILIES)],
        *left[: len(PRODUCT_FAMILIES)],
        *moved,
        *runs,
        flops.sum(),
        moved.sum(),
        runs.sum() - graph.num_nodes,
        len(graph.traffic.sent_bytes),
        len(graph.traffic.received_bytes),
        accumulators,
        sent if accumulators else 0.0,
        server_bytes(graph.traffic.received_bytes, num_servers).max(),
        updates,
        update_flops,
    ]
    return np.log1p(np.array(values, dtype=np.float64))


def _of_servers(graph: OpGraph) -> tuple[int, int, float]:
    """Gradient accumulators (none in asynchronous training), updates, and what these compute.

    Updates behind resource handles have no output that shows their size: those of the kind that
    has most are taken for updates of all that the worker reads.
    """
    accumulators, updates, flops = 0, 0, 0.0
    unsized = [ops for ops in graph.remote if flops_of_update(ops.kind) and not ops.tensor_bytes]
    main = max(unsized, key=lambda ops: ops.num_nodes, default=None)
    for ops in graph.remote:
        if ops.kind == _ADDS_GRADIENT:
            accumulators += ops.num_nodes
        each = flops_of_update(ops.kind)
        if each:
            updates += ops.num_nodes
            updated = graph.received_bytes if ops is main else ops.tensor_bytes
            flops += each * updated / _BYTES_OF_PARAMETER
    if not accumulators and graph.is_synchronous:
        accumulators = updates  # workers wait for each other by tokens, or in an all-reduce
    return accumulators, updates, flops
