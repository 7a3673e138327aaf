"""Memory of devices that split a model: a shard of each tensor, a stage of the blocks.

    OpGraph, degrees of tensor and pipeline parallelism -> StepMemory of a device of each stage

A shard has 1/t of what products with split matrices make, and of these matrices, their gradients
and states; norms, residuals and the dropout beside them are whole (no sequence parallelism). A
stage has the parameters that its ops read and the tensors that they make or are handed. Under 1F1B
(Narayanan et al., SC 2021, section 2.2) stage i of p waits for the backward passes of min(p - i, m)
of the m micro-batches, and keeps the activations of each. What a stage hands on and does not read
again is freed. The traced step of one device stays the source of every size and lifetime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase, TensorLifetimes, TensorRole
from driple.memory.graph_lifetimes import with_lifetimes
from driple.memory.step_memory import BatchedMemory, StepMemory, Weights
from driple.step.stages import stages_of_places
from driple.step.tensor_shard import TensorShard, tensor_shard

__all__ = ["batched_device_steps", "device_steps"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_NO_TABLE = (
    "this graph does not show which of its tensors are parameters, so that the memory of devices "
    "that split them is unknown; use ddp or fsdp"
)


def device_steps(graph: OpGraph, tensor: int = 1, pipeline: int = 1) -> tuple[StepMemory, ...]:
    """The steps of the devices that hold a model together: one of each stage.

    Args:
        graph: of a step of a device that holds the whole model.
        tensor: devices that share the matrices of each block.
        pipeline: stages.

    Raises:
        GraphError: the graph does not show how long its tensors live, or cannot be split so.
    """
    if tensor * pipeline == 1:
        return (StepMemory.of(graph),)
    graph = with_lifetimes(graph)
    order = np.arange(graph.num_nodes, dtype=np.int64)
    shard = _with_shares(graph, tensor_shard(graph, tensor, order))
    step = StepMemory.of(shard)
    if not len(step.weights.nbytes):
        raise GraphError(_NO_TABLE)
    if pipeline == 1:
        return (step,)
    stage_of = stages_of_places(shard, order, pipeline)
    uses = _Uses.of(shard, step, stage_of, pipeline)
    return tuple(_stage(step, uses, number, pipeline) for number in range(pipeline))


def batched_device_steps(
    few: tuple[int, OpGraph], many: tuple[int, OpGraph], tensor: int = 1, pipeline: int = 1
) -> Callable[[int], tuple[StepMemory, ...]]:
    """The same at every batch size, of one job that was read at two of them.

    Args:
        few: a batch size, and the graph at it.
        many: a larger one.
        tensor: devices that share the matrices of each block.
        pipeline: stages.

    Raises:
        ConfigError: the two steps are not of one job, or of one batch size.
        GraphError: as `device_steps`.
    """
    lines = [
        BatchedMemory.between((few[0], first), (many[0], second))
        for first, second in zip(
            device_steps(few[1], tensor, pipeline),
            device_steps(many[1], tensor, pipeline),
            strict=True,
        )
    ]
    return lambda batch_size: tuple(line.at(batch_size) for line in lines)


def _with_shares(graph: OpGraph, shard: TensorShard) -> OpGraph:
    """A device's graph, with the lifetimes of its shares of all tensors.

    Gradients that outlive the step are made anew from the table of parameters: which of them an
    earlier pass has made, lifetimes do not show.
    """
    lives, table = graph.lifetimes, shard.graph.parameters
    share = np.ones(len(lives.nbytes))
    inside = lives.made_by >= 0
    share[inside] = shard.node_share[lives.made_by[inside]]
    nbytes = np.ceil(lives.nbytes * share - 1e-6).astype(np.int64)
    own = np.flatnonzero((lives.roles == TensorRole.PARAMETER) & ~inside)
    sizes = graph.parameters.nbytes
    held = np.flatnonzero(sizes > 0)
    if not np.array_equal(lives.nbytes[own[: len(held)]], sizes[held]):
        raise GraphError(_NO_TABLE)
    nbytes[own[: len(held)]] = table.nbytes[held]
    is_gradient = lives.roles == TensorRole.GRADIENT
    lasts = is_gradient & (lives.freed_after >= graph.num_nodes)
    has_older = bool((is_gradient & ~inside).any())
    numbers, nodes = _last_gradients(graph)
    return replace(
        shard.graph,
        lifetimes=TensorLifetimes(
            nbytes=np.concatenate([nbytes[~lasts], table.nbytes[numbers]]),
            made_by=np.concatenate(
                [lives.made_by[~lasts], np.full_like(nodes, -1) if has_older else nodes]
            ).astype(np.int32),
            freed_after=np.concatenate(
                [lives.freed_after[~lasts], np.full_like(nodes, graph.num_nodes)]
            ).astype(np.int32),
            roles=np.concatenate(
                [lives.roles[~lasts], np.full(len(nodes), TensorRole.GRADIENT)]
            ).astype(np.int8),
        ),
    )


def _last_gradients(graph: OpGraph) -> tuple[IntArray, IntArray]:
    """Parameters with a gradient, and the nodes that complete them."""
    last = np.full(len(graph.parameters.names), -1, dtype=np.int64)
    pairs = graph.parameters.gradients
    np.maximum.at(last, pairs[:, 0], pairs[:, 1].astype(np.int64))
    numbers = np.flatnonzero(last >= 0)
    return numbers, last[numbers]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Uses:
    """Which stages read each tensor and each parameter, and until when.

    Attributes:
        stage_of: shape [num_nodes].
        is_back: shape [num_nodes], whether a node is of the backward pass.
        last_read: shape [t, stages], last node of each stage that reads a tensor; -1 if none does.
        holds: shape [p, stages], whether a stage reads a parameter or computes its gradient.
    """

    stage_of: IntArray
    is_back: BoolArray
    last_read: IntArray
    holds: BoolArray

    @classmethod
    def of(cls, graph: OpGraph, step: StepMemory, stage_of: IntArray, count: int) -> _Uses:
        """Follow the edges of a graph whose nodes stand in the order of execution."""
        last_read = np.full((len(step.nbytes), count), -1, dtype=np.int64)
        rows, nodes = _reads(graph, step)
        alive = nodes <= step.freed_after[rows]
        rows, nodes = rows[alive], nodes[alive]
        np.maximum.at(last_read, (rows, stage_of[nodes]), nodes)
        frees = np.flatnonzero(step.freed_after < step.num_nodes)
        ends = np.maximum(step.freed_after[frees], 0)
        np.maximum.at(last_read, (frees, stage_of[ends]), ends)
        holds = np.zeros((len(step.weights.nbytes), count), dtype=np.bool_)
        for pairs in (graph.parameters.readers, graph.parameters.gradients):
            holds[pairs[:, 0], stage_of[pairs[:, 1]]] = True
        return cls(
            stage_of=stage_of,
            is_back=np.isin(graph.phases, (Phase.BACKWARD, Phase.RECOMPUTE)),
            last_read=last_read,
            holds=holds,
        )

    def span(self, number: int, *, backward: bool) -> tuple[int, int]:
        """First and last node of a stage's forward or backward pass."""
        nodes = np.flatnonzero((self.stage_of == number) & (self.is_back == backward))
        return int(nodes.min(initial=len(self.stage_of))), int(nodes.max(initial=0))


def _reads(graph: OpGraph, step: StepMemory) -> tuple[IntArray, IntArray]:
    """Tensors and the nodes that read them, also by what is written in place."""
    held: dict[int, list[int]] = {}
    for row, node in enumerate(step.made_by.tolist()):
        if node >= 0:
            held.setdefault(node, []).append(row)
    rows: list[int] = []
    nodes: list[int] = []
    data = graph.edges[~graph.is_control]
    for source, target in data[np.argsort(data[:, 1], kind="stable")].tolist():
        read = held.get(source, [])
        rows += read
        nodes += [target] * len(read)
        held.setdefault(target, read)  # else it allocates nothing, and writes in place
    return np.array(rows, dtype=np.int64), np.array(nodes, dtype=np.int64)


def _stage(step: StepMemory, uses: _Uses, number: int, count: int) -> StepMemory:
    """The step of a device of one stage: what it makes, what it is handed, what waits."""
    made, lasts = step.made_by, step.freed_after >= step.num_nodes
    outside, back = made < 0, uses.is_back[np.maximum(made, 0)] & (made >= 0)
    own = ~outside & (uses.stage_of[np.maximum(made, 0)] == number)
    last = uses.last_read[:, number]
    (forward, _), (backward, end) = (uses.span(number, backward=one) for one in (False, True))
    begins = np.where(own | outside, made, np.where(back, backward, forward))
    ends = np.where(lasts | outside, step.freed_after, np.maximum(last, begins))
    lasting_gradient = lasts & (step.roles == TensorRole.GRADIENT)
    kept = (own | outside | (last >= 0)) & ~lasting_gradient
    crosses = kept & ~outside & ~back & (ends >= backward) & ~lasts
    ahead = min(count - number, step.passes) - 1
    weights = _held(step.weights, uses.holds[:, number])
    sizes = [step.nbytes[kept], *[step.nbytes[crosses]] * ahead, weights.nbytes[weights.is_trained]]
    waiting, gradients = ahead * int(crosses.sum()), len(sizes[-1])
    has_older = bool((lasting_gradient & outside).any())
    at = np.where(uses.stage_of[weights.gradient_at] == number, weights.gradient_at, backward)
    completed = np.full(gradients, -1) if has_older else at[weights.is_trained]
    share = weights.trained_bytes / max(step.weights.trained_bytes, 1)
    return replace(
        step,
        nbytes=np.concatenate(sizes),
        # Those that wait are there as long as a pass lasts, and gone before the update.
        made_by=np.concatenate([begins[kept], np.full(waiting, forward), completed]),
        freed_after=np.concatenate(
            [ends[kept], np.full(waiting, end), np.full(gradients, step.num_nodes)]
        ),
        roles=np.concatenate(
            [
                step.roles[kept],
                np.full(waiting, TensorRole.ACTIVATION),
                np.full(gradients, TensorRole.GRADIENT),
            ]
        ).astype(np.int8),
        is_cast=np.concatenate([step.is_cast[kept], np.zeros(waiting + gradients, dtype=np.bool_)]),
        weights=weights,
        update=replace(
            step.update,
            state_bytes=round(step.update.state_bytes * share),
            temporary_bytes=round(step.update.temporary_bytes * share),
        ),
    )


def _held(weights: Weights, owned: BoolArray) -> Weights:
    """The parameters of one stage; a table of words that two stages read is held by both."""
    return replace(
        weights,
        nbytes=weights.nbytes[owned],
        elements=weights.elements[owned],
        is_trained=weights.is_trained[owned],
        gradient_at=weights.gradient_at[owned],
        block_of=weights.block_of[owned],
    )
