"""Which ops of a graph a step runs: TensorFlow leaves out what nobody reads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.graph.opgraph import OpGraph

__all__ = ["executed_nodes"]

# Ops that do something besides giving a tensor; a bare Assign sets a variable before any step.
_ACTS = (
    "Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "AssignAdd", "AssignSub",
    "Scatter", "ResourceScatter",
)  # fmt: skip


def executed_nodes(graph: OpGraph, *, gated: bool = True) -> npt.NDArray[np.bool_]:
    """Whether each node runs, shape [num_nodes]: what leads to a tensor sent, or to an update.

    Args:
        graph: of one worker's step.
        gated: whether gradients wait for one another through control edges, as `Optimizer.minimize`
            has them do; the gradient by the images, which nobody reads, then runs too. In programs
            that call `tf.gradients`, such as tf_cnn_benchmarks, it does not.
    """
    runs = np.array([kind.startswith(_ACTS) for kind in graph.op_types], dtype=np.bool_)
    runs[graph.traffic.senders] = True
    if not runs.any():
        return np.ones(graph.num_nodes, dtype=np.bool_)
    edges = graph.edges if gated else graph.edges[~graph.is_control]
    order = np.argsort(edges[:, 1], kind="stable")
    sources = edges[order, 0]
    ends = np.searchsorted(edges[order, 1], np.arange(graph.num_nodes + 1))
    todo = np.flatnonzero(runs).tolist()
    while todo:
        node = todo.pop()
        for source in sources[ends[node] : ends[node + 1]].tolist():
            if not runs[source]:
                runs[source] = True
                todo.append(source)
    return runs
