"""Ops of a graph that a step runs: TensorFlow leaves out ops that nobody reads.

OpGraph -> updates and tensors sent (the step) -> all that leads to them -> what data of it is read

An op that only control edges lead on from gives no data to the step: TensorFlow's Grappler turns it
into a NoOp, unless it does something else than giving a tensor. The gradient by the input images is
one: `Optimizer.minimize` has other gradients wait for it, and nobody reads it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.graph.opgraph import OpGraph

__all__ = ["executed_nodes"]

# Updates; a bare Assign sets a variable before any step.
_UPDATES = (
    "Apply", "ResourceApply", "SparseApply", "ResourceSparseApply", "AssignAdd", "AssignSub",
    "Scatter", "ResourceScatter",
)  # fmt: skip
# Ops that Grappler's dependency optimizer keeps for what they do, if anything waits for them.
_ACTS = frozenset(
    {
        "Assert", "Assign", "AssignVariableOp", "CheckNumerics", "CheckNumericsV2",
        "CollectiveReduce", "CollectiveReduceV2", "HorovodAllreduce", "HorovodBroadcast",
        "NcclAllReduce", "Print", "PrintV2", "PyFunc", "PyFuncStateless", "EagerPyFunc",
        "_Send", "_HostSend",
    }
)  # fmt: skip


def executed_nodes(graph: OpGraph) -> npt.NDArray[np.bool_]:
    """Whether each node runs, shape [num_nodes]; all do in a graph without updates and traffic."""
    step = np.array([kind.startswith(_UPDATES) for kind in graph.op_types], dtype=np.bool_)
    step[graph.traffic.senders] = True
    if not step.any():
        return np.ones(graph.num_nodes, dtype=np.bool_)
    reached = _leading_to(step, graph.edges)
    acts = np.array([kind in _ACTS for kind in graph.op_types], dtype=np.bool_)
    return _leading_to(step | (acts & reached), graph.edges[~graph.is_control])


def _leading_to(ends: npt.NDArray[np.bool_], edges: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """The nodes of `ends`, and all from which edges lead to them."""
    found = ends.copy()
    order = np.argsort(edges[:, 1], kind="stable")
    sources = edges[order, 0]
    first = np.searchsorted(edges[order, 1], np.arange(len(ends) + 1))
    todo = np.flatnonzero(found).tolist()
    while todo:
        node = todo.pop()
        for source in sources[first[node] : first[node + 1]].tolist():
            if not found[source]:
                found[source] = True
                todo.append(source)
    return found
