"""`GroupedGraph`: a graph of which only the groups were published, as in the public Driple data.

Names, op types and shapes of its nodes are not known, only sums over each group. It stands where an
`OpGraph` would: it is not grouped again, and has no context.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph

__all__ = ["AnyGraph", "GroupedGraph"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupedGraph:
    """Groups and the edges between them.

    Attributes:
        features: shape [num_groups, 3], float32, sums over each group, in the order of
            `features.FEATURE_NAMES`: op-type encoding, tensor bytes, number of nodes.
        edges: shape [num_group_edges, 2], int32, pairs of connected groups, undirected, each
            once, i < j, sorted.

    Raises:
        GraphError: no groups, other shapes, numbers that are not finite, edges to no group.
    """

    features: npt.NDArray[np.float32]
    edges: npt.NDArray[np.int32]

    def __post_init__(self) -> None:
        shape = self.features.shape
        if len(shape) != 2 or shape[0] < 1 or shape[1] != 3:
            raise GraphError(f"group features have shape {shape}, needed is [1 or more, 3]")
        if not np.isfinite(self.features).all():
            raise GraphError("group features hold NaN or infinity; check the file")
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise GraphError(f"edges of groups have shape {self.edges.shape}, needed is [n, 2]")
        if len(self.edges) and not (
            (self.edges[:, 0] < self.edges[:, 1]).all()
            and self.edges.min() >= 0
            and self.edges.max() < shape[0]
        ):
            raise GraphError(f"an edge of groups is no pair i < j below {shape[0]}")

    @property
    def num_nodes(self) -> int:
        """Nodes in all groups."""
        return round(float(self.features[:, 2].sum(dtype=np.float64)))

    @property
    def num_edges(self) -> int:
        """Edges between groups; those within are not known."""
        return len(self.edges)

    @property
    def op_types(self) -> tuple[str, ...]:
        """None: only sums of their encodings are known."""
        return ()

    @property
    def tensor_bytes(self) -> npt.NDArray[np.float64]:
        """Shape [num_groups], bytes of each group."""
        return self.features[:, 1].astype(np.float64)


AnyGraph = OpGraph | GroupedGraph
