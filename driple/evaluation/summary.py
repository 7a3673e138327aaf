"""Whole-graph summaries: features of a workload for predictors without a graph network.

    OpGraph --op cost, traffic, remote ops-->  vector [NUM], one number for each of SUMMARY_NAMES

All of it comes from the graph itself, nothing from the workload's name or details.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driple.dataset.example import Example
from driple.errors import DatasetError
from driple.features.pregrouped import GroupedGraph
from driple.graph.cost import cost_by_family, cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import FAMILIES
from driple.graph.optimizers import optimizer_of_kind

__all__ = ["SUMMARY_NAMES", "Summaries", "summary_of"]

FloatArray = npt.NDArray[np.float64]

# Ops with which parameter servers apply a gradient; one of them identifies the optimizer.
_OPTIMIZERS = ("sgd", "momentum", "adam", "rmsprop")
# In synchronous training servers accumulate the gradients of all workers before they apply them.
_ACCUMULATOR = "gradient_accumulator"
_LOSSES = frozenset({"cross_entropy", "soft_cross_entropy"})

# The columns of `cost_by_family`.
_OF_FAMILIES = ("flops", "memory_bytes", "executions", "left_elements")
_TOTALS = (
    "flops",
    "memory_bytes",
    "parameters",
    "nodes",
    "edges",
    "executions",
    "tensor_bytes",
    "largest_tensor_bytes",
    "mean_tensor_bytes",
    "received_bytes",
    "received_tensors",
    "sent_bytes",
    "sent_tensors",
    "remote_nodes",
    "remote_bytes",
    "loss_rows",
)
SUMMARY_NAMES = (
    *(f"{what}_{family}" for what in _OF_FAMILIES for family in FAMILIES),
    *_TOTALS,
    "is_sync",
    *(f"is_{name}" for name in _OPTIMIZERS),
)


def summary_of(graph: OpGraph) -> FloatArray:
    """One workload's summary.

    Args:
        graph: graph of one worker's training step, with signatures.

    Returns:
        Shape [len(SUMMARY_NAMES)]: logarithms of 1 + FLOPs, bytes and counts, then flags of 0 or 1.
        `loss_rows` is the first dimension of the softmax loss's logits: the batch size, in sequence
        models times their length; 0 in a graph with another loss.

    Raises:
        GraphError: the graph lacks the signatures of its ops.
    """
    cost = cost_of_graph(graph)
    by_family = cost_by_family(graph, cost)
    sizes = graph.tensor_bytes.astype(np.float64)
    totals = {
        "flops": cost.total_flops,
        "memory_bytes": cost.total_bytes,
        "parameters": cost.parameters.sum(),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "executions": cost.executions.sum(),
        "tensor_bytes": sizes.sum(),
        "largest_tensor_bytes": sizes.max(initial=0.0),
        "mean_tensor_bytes": sizes.mean() if len(sizes) else 0.0,
        "received_bytes": graph.received_bytes,
        "received_tensors": len(graph.traffic.received_bytes),
        "sent_bytes": graph.sent_bytes,
        "sent_tensors": len(graph.traffic.sent_bytes),
        "remote_nodes": sum(ops.num_nodes for ops in graph.remote),
        "remote_bytes": sum(ops.tensor_bytes for ops in graph.remote),
        "loss_rows": _loss_rows(graph),
    }
    amounts = np.concatenate([*by_family, [float(totals[name]) for name in _TOTALS]])
    return np.concatenate([np.log1p(amounts), _flags(graph)])


class Summaries:
    """Summaries of graphs, each made once however many data sets and splits share the graph."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[OpGraph, FloatArray]] = {}  # by id; the graph keeps it its own

    def __reduce__(self) -> tuple[type[Summaries], tuple[()]]:
        """A copy is empty: in another process other graphs have these ids."""
        return Summaries, ()

    def of(self, examples: Sequence[Example]) -> FloatArray:
        """Shape [len(examples), len(SUMMARY_NAMES)].

        Raises:
            DatasetError: graphs of which only the groups are known.
            GraphError: graphs that lack the signatures of their ops.
        """
        rows = [self._row(example) for example in examples]
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(SUMMARY_NAMES))

    def _row(self, example: Example) -> FloatArray:
        graph = example.graph
        if isinstance(graph, GroupedGraph):
            raise DatasetError(
                f"workload {example.workload!r}: only the groups of its graph are known, "
                "without FLOPs and op counts; give a data set with whole graphs"
            )
        if id(graph) not in self._made:
            self._made[id(graph)] = (graph, summary_of(graph))
        return self._made[id(graph)][1]


def _loss_rows(graph: OpGraph) -> int:
    """The largest first dimension of any softmax loss's logits."""
    counts = Counter(graph.signature_of.tolist())
    rows = [
        (signature.inputs[0].shape or (0,))[0]
        for number, signature in enumerate(graph.signatures)
        if counts[number] and signature.kind in _LOSSES and signature.inputs
    ]
    return max(0, *rows) if rows else 0


def _flags(graph: OpGraph) -> FloatArray:
    kinds = {ops.kind for ops in graph.remote}
    is_sync = _ACCUMULATOR in kinds
    used = {optimizer_of_kind(kind) for kind in kinds}
    optimizers = [name in used for name in _OPTIMIZERS]
    return np.array([is_sync, *optimizers], dtype=np.float64)
