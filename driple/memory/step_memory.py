"""What decides the memory of a training step, whatever the scheme: tensors, parameters, update.

    OpGraph -> StepMemory                      (graph, batch 8), (graph, batch 16) -> BatchedMemory

Tensors live from the node that makes them to the last node that uses them. Parameters, gradients
and optimizer states are kept apart from other tensors, since schemes share them out.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError, GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import OptimizerUpdate, Phase, TensorRole
from driple.memory.graph_lifetimes import with_lifetimes
from driple.step.blocks import blocks_of
from driple.step.exchange import passes_of
from driple.step.plan import execution_order

__all__ = ["BatchedMemory", "StepMemory", "Weights"]

IntArray = npt.NDArray[np.int64]

_HALF_BYTES, _FULL_BYTES = 2, 4
_IMAGE_RANK = 4  # of a batch
_CASTS = frozenset({"cast", "copy"})
NO_LIFETIMES = (
    "this graph does not show how long its tensors live, so its memory over a step is unknown"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Parameters one by one.

    Attributes:
        nbytes: shape [p], as stored.
        elements: shape [p].
        is_trained: shape [p], whether it has a gradient.
        gradient_at: shape [p], node that completes its gradient; -1 if it has none.
        block_of: shape [p], position in the blocks of a model that FSDP gathers together.
        forward_at: shape [b], first node of each block that needs it.
        forward_end: shape [b], last node of the forward pass that needs it.
        backward_at: shape [b], first node of the backward pass that needs it; -1 if none does, or
            the block stays gathered.
        complete_at: shape [b], node that completes its last gradient or is the last to read it.
        sharers: shape [p], devices among which a parameter's share is shared out, over those of
            most parameters; below 1 of experts, of which fewer devices have a copy.
    """

    nbytes: IntArray
    elements: IntArray
    is_trained: npt.NDArray[np.bool_]
    gradient_at: IntArray
    block_of: IntArray
    forward_at: IntArray
    forward_end: IntArray
    backward_at: IntArray
    complete_at: IntArray
    sharers: npt.NDArray[np.float64]

    @property
    def trained_bytes(self) -> int:
        """Bytes of the parameters that are trained, and of their gradients."""
        return int(self.nbytes[self.is_trained].sum())


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMemory:
    """Tensors of one step of one device.

    Attributes:
        num_nodes: ops of a forward and backward pass.
        nbytes: shape [t], bytes of each tensor that is neither a parameter nor an optimizer state.
        made_by: shape [t], node that makes it; -1 if it exists before the step.
        freed_after: shape [t], last node that uses it; `num_nodes` if it outlives the step.
        roles: shape [t], a `TensorRole` each.
        is_cast: shape [t], whether it is a parameter in half precision that autocast has made.
        weights: parameters.
        update: of the optimizer.
        passes: forward and backward passes of a step.
        is_lower_bound: whether sizes or turns of loops are unknown.
        computes_in_half: whether products read half precision.
        framework: that runs it.
        has_images: whether it convolves in two dimensions, so that samples are images.
        known: what was worked out of this very step; each copy begins anew.
    """

    num_nodes: int
    nbytes: IntArray
    made_by: IntArray
    freed_after: IntArray
    roles: npt.NDArray[np.int8]
    is_cast: npt.NDArray[np.bool_]
    weights: Weights
    update: OptimizerUpdate = field(default_factory=OptimizerUpdate)
    passes: int = 1
    is_lower_bound: bool = False
    computes_in_half: bool = False
    framework: str = "pytorch"
    has_images: bool = False
    known: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, graph: OpGraph) -> StepMemory:
        """The memory of a graph's step.

        Raises:
            GraphError: the graph does not show how long its tensors live.
        """
        graph = with_lifetimes(graph)
        lives = graph.lifetimes
        if not len(lives.nbytes):
            raise GraphError(NO_LIFETIMES)
        weights = _weights(graph)
        kept = lives.roles != TensorRole.OPTIMIZER_STATE
        kept[_own_rows(graph)] = False
        return cls(
            num_nodes=graph.num_nodes,
            nbytes=lives.nbytes[kept].astype(np.int64),
            made_by=lives.made_by[kept].astype(np.int64),
            freed_after=np.minimum(lives.freed_after[kept], graph.num_nodes).astype(np.int64),
            roles=lives.roles[kept].astype(np.int8),
            is_cast=_casts(graph)[kept],
            weights=weights,
            update=graph.update,
            passes=passes_of(graph),
            is_lower_bound=graph.report.has_unknown,
            computes_in_half=bool(_casts(graph).any()),
            framework=graph.framework,
            has_images=any(
                op.kind == "conv" and any(len(one.shape or ()) == _IMAGE_RANK for one in op.outputs)
                for op in graph.signatures
            ),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchedMemory:
    """The memory of a step at every batch size, on a straight line between two of them.

    Attributes:
        step: at the smaller batch size.
        batch_size: that one.
        bytes_each: shape [t], bytes that one more sample adds to each tensor.
    """

    step: StepMemory
    batch_size: int
    bytes_each: npt.NDArray[np.float64]

    @classmethod
    def between(cls, few: tuple[int, StepMemory], many: tuple[int, StepMemory]) -> BatchedMemory:
        """A line through two batch sizes of one job.

        Args:
            few: a batch size, and the step at it.
            many: a larger one.

        Raises:
            ConfigError: the two steps are not of one job, or of one batch size.
        """
        first, second = few[1], many[1]
        same = len(first.nbytes) == len(second.nbytes) and all(
            np.array_equal(getattr(first, name), getattr(second, name))
            for name in ("made_by", "freed_after")
        )
        if few[0] >= many[0] or not same:
            raise ConfigError(
                f"the steps at {few[0]} and {many[0]} samples per device are not the same job's, "
                "so that the memory between them is unknown"
            )
        slope = (second.nbytes - first.nbytes) / (many[0] - few[0])
        return cls(step=first, batch_size=few[0], bytes_each=slope)

    def at(self, batch_size: int) -> StepMemory:
        """The step at a batch size."""
        more = np.rint(self.bytes_each * (batch_size - self.batch_size)).astype(np.int64)
        return replace(self.step, nbytes=np.maximum(self.step.nbytes + more, 0))


def _own_rows(graph: OpGraph) -> IntArray:
    """Rows of lifetimes that are parameters of the table, in its order; none if they differ."""
    lives, table = graph.lifetimes, graph.parameters
    rows = np.flatnonzero((lives.roles == TensorRole.PARAMETER) & (lives.made_by < 0))
    sizes = table.nbytes[table.nbytes > 0]
    rows = rows[: len(sizes)]
    if len(rows) != len(sizes) or not np.array_equal(lives.nbytes[rows], sizes):
        return np.zeros(0, dtype=np.int64)
    return rows.astype(np.int64)


def _casts(graph: OpGraph) -> npt.NDArray[np.bool_]:
    """Tensors that are a parameter in half precision, made from it as it stands."""
    lives = graph.lifetimes
    inside = lives.made_by >= 0
    casts = np.zeros(len(lives.nbytes), dtype=np.bool_)
    if not inside.any() or not graph.signatures:
        return casts
    of_kind = np.array(
        [
            op.kind in _CASTS
            and len(op.inputs) == 1
            and op.inputs[0].is_parameter
            and op.inputs[0].nbytes == _FULL_BYTES * op.inputs[0].elements
            and len(op.outputs) == 1
            and op.outputs[0].nbytes == _HALF_BYTES * op.outputs[0].elements
            for op in graph.signatures
        ]
    )
    casts[inside] = of_kind[graph.signature_of[lives.made_by[inside]]]
    return casts


def _weights(graph: OpGraph) -> Weights:
    """Parameters, and the blocks in which FSDP gathers them."""
    table = graph.parameters
    has_rows = bool(len(_own_rows(graph)))
    count = len(table.nbytes) if has_rows else 0
    place = np.arange(graph.num_nodes, dtype=np.int64)
    if graph.framework != "pytorch":
        place[execution_order(graph)] = np.arange(graph.num_nodes)
    gradient_at = np.full(count, -1, dtype=np.int64)
    if count:
        np.maximum.at(gradient_at, table.gradients[:, 0], place[table.gradients[:, 1]])
    blocks = blocks_of(graph, place) if count and len(table.gradients) else []
    number_of = {i: number for number, one in enumerate(blocks) for i in one.members}
    block_of = np.array([number_of.get(i, -1) for i in range(count)], dtype=np.int64)
    turn = graph.num_nodes
    if len(graph.phases) == graph.num_nodes:
        later = np.flatnonzero(np.isin(graph.phases, (Phase.BACKWARD, Phase.RECOMPUTE)))
        turn = int(place[later].min()) if len(later) else turn
    forward_end = np.zeros(len(blocks), dtype=np.int64)
    complete_at = np.zeros(len(blocks), dtype=np.int64)
    if blocks and len(table.readers):
        readers = table.readers[table.readers[:, 0] < count]
        places, owners = place[readers[:, 1]], block_of[readers[:, 0]]
        forward = places < turn
        np.maximum.at(forward_end, owners[forward], places[forward])
        np.maximum.at(complete_at, owners, places)
    if blocks:
        np.maximum.at(complete_at, block_of, gradient_at)
    return Weights(
        nbytes=table.nbytes[:count].astype(np.int64),
        elements=table.elements[:count].astype(np.int64),
        is_trained=table.is_trained[:count] & (gradient_at >= 0),
        gradient_at=gradient_at,
        block_of=block_of,
        forward_at=np.array([one.forward_at for one in blocks], dtype=np.int64),
        forward_end=forward_end,
        backward_at=np.array(
            [-1 if one.backward_at is None else one.backward_at for one in blocks], dtype=np.int64
        ),
        complete_at=complete_at,
        sharers=np.ones(count),
    )
