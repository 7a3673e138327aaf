"""Ops of a graph that a step runs: TensorFlow leaves out ops that nobody reads.

OpGraph -> updates and tensors sent (the step) -> all that leads to them -> what data of it is read

An op that only control edges lead on from gives no data to the step: TensorFlow's Grappler turns it
into a NoOp, unless it does something else than giving a tensor. The gradient by the input images is
one: `Optimizer.minimize` has other gradients wait for it, and nobody reads it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.graph.cost.updates import UPDATES
from driple.graph.opgraph import OpGraph

__all__ = ["executed_nodes"]

# Kinds of ops that change a variable; a bare `assign` sets one before any step.
_UPDATES = frozenset(
    {*UPDATES, "update_other", "assign_sum", "assign_sum_to_handle", "scatter_add",
     "scatter_arithmetic", "scatter_write"}
)  # fmt: skip
# Ops that Grappler's dependency optimizer keeps for what they do, if anything waits for them.
_ACTS = frozenset(
    {
        "all_reduce", "assign", "assign_to_handle", "broadcast_parameters", "check", "check_inf",
        "host_send", "print", "python_call", "send",
    }
)  # fmt: skip


def executed_nodes(graph: OpGraph) -> npt.NDArray[np.bool_]:
    """Whether each node runs, shape [num_nodes].

    All do in a graph without updates and traffic, and in one of PyTorch, which runs each op as the
    program comes to it.
    """
    if graph.framework == "pytorch":
        return np.ones(graph.num_nodes, dtype=np.bool_)
    step = graph.nodes_of(_UPDATES)
    step[graph.traffic.senders] = True
    if not step.any():
        return np.ones(graph.num_nodes, dtype=np.bool_)
    reached = _leading_to(step, graph.edges)
    acts = graph.nodes_of(_ACTS)
    return _leading_to(step | (acts & reached), graph.edges[~graph.is_control])


def _leading_to(ends: npt.NDArray[np.bool_], edges: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """The nodes of `ends`, and all from which edges lead to them."""
    reached = ends.copy()
    order = np.argsort(edges[:, 1], kind="stable")
    sources = edges[order, 0]
    first = np.searchsorted(edges[order, 1], np.arange(len(ends) + 1))
    todo = np.flatnonzero(reached).tolist()
    while todo:
        node = todo.pop()
        for source in sources[first[node] : first[node + 1]].tolist():
            if not reached[source]:
                reached[source] = True
                todo.append(source)
    return reached
