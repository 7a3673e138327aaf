"""A graph at any batch size, from the same graph at two.

    OpGraph of batch a, OpGraph of batch b -> BatchedGraph -> Job at batch n

Bytes, and the sides of matrix products, are straight lines over the batch size, so two graphs tell
them all; structure, parameters and gradients do not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.checks import check_whole
from driple.errors import GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.liveness import executed_nodes
from driple.graph.opgraph import OpGraph
from driple.simulate.fused import FusedOps
from driple.simulate.optable import OpTable
from driple.simulate.prepared_job import OpKinds, PreparedJob, Program
from driple.step.plan import execution_order

__all__ = ["BatchedGraph"]

FloatArray = npt.NDArray[np.float64]

_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchedGraph:
    """One model at every batch size.

    Attributes:
        graph: at the smaller batch size.
        batch_sizes: the two that are known.
        tables: of the kinds of ops, at each.
        kind_of: shape [num_nodes], kind of each node.
        executions: shape [num_nodes], how often each runs in a step.
        runs: shape [num_kinds], how often ops of each kind run in a step.
        order: shape [num_nodes], order of execution.
        fused: which ops a compiler fuses; None if it fuses none.
    """

    graph: OpGraph
    batch_sizes: tuple[int, int]
    tables: tuple[OpTable, OpTable]
    kind_of: npt.NDArray[np.int64]
    executions: npt.NDArray[np.int64]
    runs: npt.NDArray[np.float64]
    order: npt.NDArray[np.int64]
    fused: FusedOps | None = None

    @classmethod
    def of(cls, small: tuple[int, OpGraph], large: tuple[int, OpGraph]) -> BatchedGraph:
        """From two pairs of batch size and graph.

        Raises:
            GraphError: the graphs are not of the same model.
        """
        (few, base), (many, other) = small, large
        if base.op_types != other.op_types or few >= many:
            raise GraphError("two graphs of one model at growing batch sizes are needed")
        pairs = np.stack([base.signature_of, other.signature_of], axis=1)
        kinds, kind_of = np.unique(pairs, axis=0, return_inverse=True)
        tables = tuple(
            OpTable.of([graph.signatures[i] for i in kinds[:, column].tolist()])
            for column, graph in enumerate((base, other))
        )
        executions = base.executions * executed_nodes(base)
        runs = np.bincount(kind_of.ravel(), weights=executions, minlength=len(kinds))
        return cls(
            graph=base,
            batch_sizes=(few, many),
            tables=(tables[0], tables[1]),
            kind_of=kind_of.ravel().astype(np.int64),
            executions=executions,
            runs=runs.astype(np.float64),
            order=execution_order(base),
            fused=FusedOps.of(base, cost_of_graph(base)) if len(base.fusion_of) else None,
        )

    def table(self, batch_size: int) -> OpTable:
        """Kinds of ops at a batch size.

        Raises:
            ConfigError: a batch of no examples.
            GraphError: the straight line over the batch size comes to less than nothing.
        """
        check_whole("batch_size", batch_size, 1)
        few, many = self.batch_sizes
        share = (batch_size - few) / (many - few)
        base, other = self.tables
        sides = _on_line(base.sides, other.sides, share)
        return replace(
            base,
            facts=base.facts.at_batch(other.facts, share, sides[:, :3]),
            moved=_on_line(base.moved, other.moved, share),
            sides=sides,
            saved_sides=_on_line(base.saved_sides, other.saved_sides, share),
            flops=_on_line(base.flops, other.flops, share),
            channel_elements=_on_line(base.channel_elements, other.channel_elements, share),
        )

    def job(self, batch_size: int, program: Program) -> PreparedJob:
        """The training job at a batch size."""
        kinds = OpKinds(
            table=self.table(batch_size),
            kind_of=self.kind_of,
            executions=self.executions,
            order=self.order,
            fused=self.fused,
        )
        return PreparedJob(self.graph, kinds=kinds, program=program)


def _on_line(base: FloatArray, other: FloatArray, share: float) -> FloatArray:
    """Sizes on the straight line from one batch size to another, but for rounding not below 0."""
    sizes: FloatArray = base + share * (other - base)
    if (sizes < -_ROUNDING * np.maximum(np.abs(base), np.abs(other))).any():
        raise GraphError(
            f"sizes of ops fall to {sizes.min():.3g} at this batch size; they are no straight line "
            "over it, so give graphs at two batch sizes that are nearer"
        )
    return np.maximum(sizes, 0.0)
