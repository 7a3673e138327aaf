"""Time of ops that a compiler fuses: a group is one kernel that moves its own inputs and outputs.

    groups of the graph -> FusedOps; OpTimes of single ops, FusedOps -> OpTimes

What one member makes for another stays in registers; what several members read comes once. So the
bytes of a group are those that come from outside of it, and those that are read outside later. Its
kernel is started once, with its first op.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.graph.cost import GraphCost
from driple.graph.opgraph import OpGraph
from driple.step.plan import OpTimes

__all__ = ["FusedOps", "fused_bytes", "fused_times"]

FloatArray = npt.NDArray[np.float64]


def fused_bytes(graph: OpGraph, cost: GraphCost) -> FloatArray:
    """Bytes that each node of a fused graph moves, shape [num_nodes]; its own outside of groups.

    Args:
        graph: with groups.
        cost: of this graph.
    """
    read, written = cost.bytes_read.copy(), cost.bytes_written.copy()
    groups = graph.fusion_of
    needed = groups < 0
    needed[graph.traffic.senders] = True
    data = graph.edges[~graph.is_control]
    output_bytes = graph.tensor_bytes.astype(np.float64)
    seen: set[tuple[int, int]] = set()
    for source, target in data.tolist():
        group = int(groups[target])
        if group >= 0 and groups[source] == group:
            read[target] -= output_bytes[source]
            continue
        needed[source] = True
        if group < 0:
            continue
        if (source, group) in seen:
            read[target] -= output_bytes[source]
        seen.add((source, group))
    # An op may read less of a tensor than the whole: rows that indices pick.
    moved: FloatArray = np.maximum(read, 0.0) + np.where(needed, written, 0.0)
    return moved


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedOps:
    """What fusion makes of each node of a compiled graph.

    Attributes:
        bytes_share: shape [num_nodes], share of its bytes that still goes through memory.
        starts: shape [num_nodes], whether a kernel is started with it.
    """

    bytes_share: FloatArray
    starts: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, graph: OpGraph, cost: GraphCost) -> FusedOps | None:
        """What fusion makes of a graph; None if no ops of it are fused."""
        inside = graph.fusion_of >= 0
        if not len(inside) or not inside.any():
            return None
        own = cost.bytes_read + cost.bytes_written
        share = np.ones(graph.num_nodes)
        some = inside & (own > 0)
        share[some] = np.minimum(fused_bytes(graph, cost)[some] / own[some], 1.0)
        first = np.zeros(graph.num_nodes, dtype=np.bool_)
        numbers = graph.fusion_of[inside]
        first[np.flatnonzero(inside)[np.unique(numbers, return_index=True)[1]]] = True
        return cls(bytes_share=share, starts=first | ~inside)


def fused_times(times: OpTimes, fused: FusedOps) -> OpTimes:
    """The times of a graph's ops where groups of them are one kernel each.

    Args:
        times: of the ops as kernels of their own.
        fused: which of them are fused.
    """
    busy_s, memory_s = times.busy_s * fused.bytes_share, times.memory_s * fused.bytes_share
    start_s = np.where(fused.starts, times.duration_s - times.busy_s, 0.0)
    return OpTimes(duration_s=busy_s + start_s, busy_s=busy_s, memory_s=memory_s)
