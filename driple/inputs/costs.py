"""What a training step costs, of each group and of the whole graph (ours).

    OpGraph --cost_of_graph--> FLOPs, bytes, executions of each node
            --> sums over groups [M, 3], logarithms of sums over kinds of ops and of the traffic [C]

Sizes alone do not tell a convolution from an addition of the same size; these sums do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.graph.opgraph import OpGraph
from driple.opcost import KINDS, PRODUCTS, GraphCost, flops_of_update, kind_of

__all__ = ["COST_CONTEXT_NAMES", "COST_FEATURE_NAMES", "cost_context", "group_costs"]

FloatArray = npt.NDArray[np.float64]

COST_FEATURE_NAMES = ("flops", "moved_bytes", "executions")
COST_CONTEXT_NAMES = (
    *(f"flops_{kind}" for kind in PRODUCTS),
    *(f"bytes_{kind}" for kind in KINDS),
    *(f"executions_{kind}" for kind in KINDS),
    "total_flops",
    "total_bytes",
    "repeated_executions",
    "sent_tensors",
    "received_tensors",
    "accumulators",
    "accumulated_bytes",
    "updates",
    "update_flops",
)
_ACCUMULATORS = (
    "ResourceAccumulatorApplyGradient",
    "AccumulatorApplyGradient",
    "SparseAccumulatorApplyGradient",
)
_BYTES_OF_PARAMETER = 4


def group_costs(cost: GraphCost, groups: npt.NDArray[np.int32]) -> FloatArray:
    """Sums over each group: FLOPs, bytes read and written, executions, loops counted in full.

    Args:
        cost: of the graph.
        groups: shape [num_nodes], group of each node, -1 for none.

    Returns:
        Shape [num_groups, 3].
    """
    inside = groups >= 0
    columns = _per_node(cost)[inside]
    return np.stack(
        [np.bincount(groups[inside], weights=columns[:, i]) for i in range(columns.shape[1])],
        axis=1,
    )


def cost_context(graph: OpGraph, cost: GraphCost) -> FloatArray:
    """The whole graph: log(1 + x) of `COST_CONTEXT_NAMES`, shape [len(COST_CONTEXT_NAMES)]."""
    number = {kind: i for i, kind in enumerate(KINDS)}
    kind_of_type = {op_type: number[kind_of(op_type)] for op_type in set(graph.op_types)}
    kinds = np.array([kind_of_type[op_type] for op_type in graph.op_types], dtype=np.intp)
    flops, moved, runs = (
        np.bincount(kinds, weights=column, minlength=len(KINDS)) for column in _per_node(cost).T
    )
    accumulators, updates, update_flops = _of_servers(graph)
    sent = float(graph.sent_bytes)
    values = [
        *flops[: len(PRODUCTS)],
        *moved,
        *runs,
        flops.sum(),
        moved.sum(),
        runs.sum() - graph.num_nodes,
        len(graph.traffic.sent_bytes),
        len(graph.traffic.received_bytes),
        accumulators,
        sent if accumulators else 0.0,
        updates,
        update_flops,
    ]
    return np.log1p(np.array(values, dtype=np.float64))


def _per_node(cost: GraphCost) -> FloatArray:
    """Shape [num_nodes, 3], of a whole step."""
    runs = cost.executions.astype(np.float64)
    moved = (cost.bytes_read + cost.bytes_written) * runs
    return np.stack([cost.flops * runs, moved, runs], axis=1)


def _of_servers(graph: OpGraph) -> tuple[int, int, float]:
    """Gradient accumulators (none in asynchronous training), updates, and what these compute."""
    accumulators, updates, flops = 0, 0, 0.0
    for ops in graph.remote:
        if ops.op_type in _ACCUMULATORS:
            accumulators += ops.num_nodes
        each = flops_of_update(ops.op_type)
        if each:
            updates += ops.num_nodes
            flops += each * ops.tensor_bytes / _BYTES_OF_PARAMETER
    return accumulators, updates, flops
