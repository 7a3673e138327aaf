"""Statistics of a graph that show whether an inspector has seen similar graphs.

OpGraph -> ops, tensor bytes, FLOPs, batch size
"""

from __future__ import annotations

from collections import Counter

from driple.features.pregrouped import AnyGraph
from driple.graph.cost import GraphCost
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import family_of

__all__ = ["graph_facts"]


def graph_facts(graph: AnyGraph, cost: GraphCost | None = None) -> dict[str, float]:
    """Number of ops, bytes of tensors, FLOPs of a step and batch size; one that the graph lacks is
    left out.

    Args:
        graph: the graph.
        cost: costs of the graph, if it is known; there are no FLOPs without it.
    """
    facts = {
        "num_nodes": float(graph.num_nodes),
        "tensor_bytes": float(graph.tensor_bytes.sum(dtype=float)),
    }
    if cost is not None:
        facts["flops"] = cost.total_flops
    batch_size = _batch_size(graph) if isinstance(graph, OpGraph) else None
    if batch_size is not None:
        facts["batch_size"] = float(batch_size)
    return facts


def _batch_size(graph: OpGraph) -> int | None:
    """The usual first dimension of what convolutions read, or else of what a softmax reads."""
    for family in ("convolution", "softmax"):
        sizes: Counter[int] = Counter()
        for signature in graph.signatures:
            if family_of(signature.kind) == family and signature.inputs:
                shape = signature.inputs[0].shape
                if shape and shape[0] > 0:
                    sizes[shape[0]] += 1
        if sizes:
            return sizes.most_common(1)[0][0]
    return None
