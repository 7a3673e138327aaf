"""Memory of devices that split a model: a share of each tensor, stages of the blocks.

    OpGraph, Degrees -> StepMemory of each device of a pipeline

A device has 1/t of what products with split matrices make, and of these matrices, their gradients
and states, and 1/t of the tokens of norms, residuals and dropout (sequence parallelism); 1/c of the
tokens of all; 1/e of the experts. A stage has the parameters that its ops read and the tensors that
they make or are handed, once for each micro-batch that waits for its backward pass: under 1F1B
(Narayanan et al., SC 2021, section 2.2) min(p - i, m) of the m micro-batches in stage i of p. What
a stage hands on and does not read again is freed. The traced step of one device stays the source of
every size and lifetime. What a group gathers for a product is there with it alone, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import ONE_DEVICE, Degrees
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase, TensorLifetimes, TensorRole
from driple.memory.graph_lifetimes import with_lifetimes
from driple.memory.step_memory import BatchedMemory, StepMemory, Weights
from driple.step.device_shard import DeviceShard, device_shard
from driple.step.pipeline_schedule import check_interleaved, passes_in_flight
from driple.step.stages import stages_of_places

__all__ = ["batched_device_steps", "device_steps"]

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_NO_TABLE = (
    "this graph does not show which of its tensors are parameters, so that the memory of devices "
    "that split them is unknown; use ddp or fsdp"
)


def device_steps(graph: OpGraph, degrees: Degrees = ONE_DEVICE) -> tuple[StepMemory, ...]:
    """The steps of the devices that hold a model together: one of each stage.

    Args:
        graph: of a step of a device that holds the whole model.
        degrees: how devices share it out.

    Raises:
        GraphError: the graph does not show how long its tensors live, or cannot be split so.
    """
    if not degrees.is_split:
        return (StepMemory.of(graph),)
    graph = with_lifetimes(graph)
    order = np.arange(graph.num_nodes, dtype=np.int64)
    shard = device_shard(graph, degrees, order)
    own = _with_shares(graph, shard)
    step = StepMemory.of(own)
    if not len(step.weights.nbytes):
        raise GraphError(_NO_TABLE)
    sharers = np.where(shard.is_expert, degrees.tensor / degrees.expert, 1.0)
    step = replace(step, weights=replace(step.weights, sharers=sharers))
    if degrees.pipeline == 1:
        return (step,)
    devices, chunks = degrees.pipeline, degrees.virtual
    check_interleaved(devices, chunks, step.passes)
    stage_of = stages_of_places(own, order, devices * chunks)
    uses = _Uses.of(own, step, stage_of, devices * chunks)
    return tuple(
        _stages(
            step,
            uses,
            range(device, devices * chunks, devices),
            passes_in_flight(device, devices, chunks, step.passes),
        )
        for device in range(devices)
    )


def batched_device_steps(
    few: tuple[int, OpGraph], many: tuple[int, OpGraph], degrees: Degrees = ONE_DEVICE
) -> Callable[[int], tuple[StepMemory, ...]]:
    """The same at every batch size, of one job that was read at two of them.

    Args:
        few: a batch size, and the graph at it.
        many: a larger one.
        degrees: how devices share the model out.

    Raises:
        ConfigError: the two steps are not of one job, or of one batch size.
        GraphError: as `device_steps`.
    """
    lines = [
        BatchedMemory.between((few[0], first), (many[0], second))
        for first, second in zip(
            device_steps(few[1], degrees), device_steps(many[1], degrees), strict=True
        )
    ]
    return lambda batch_size: tuple(line.at(batch_size) for line in lines)


def _with_shares(graph: OpGraph, shard: DeviceShard) -> OpGraph:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rows:
    """Tensors of one stage, as `StepMemory` has them."""

    nbytes: IntArray
    made_by: IntArray
    freed_after: IntArray
    roles: npt.NDArray[np.int8]
    is_cast: BoolArray


def _stages(
    step: StepMemory, uses: _Uses, numbers: Sequence[int], in_flight: Sequence[int]
) -> StepMemory:
    """The step of a device of some stages: what they make, what they are handed, what waits.

    Args:
        step: of all stages.
        uses: of its tensors.
        numbers: of the device's stages.
        in_flight: micro-batches of each of them that wait at the same time.
    """
    rows = [
        _rows(step, uses, number, ahead - 1, is_first=not i)
        for i, (number, ahead) in enumerate(zip(numbers, in_flight, strict=True))
    ]
    weights = _held(step.weights, np.asarray(uses.holds[:, list(numbers)].any(axis=1)))
    lasts = step.freed_after >= step.num_nodes
    older = lasts & (step.roles == TensorRole.GRADIENT) & (step.made_by < 0)
    backward, _ = uses.span(numbers[0], backward=True)
    is_own = np.isin(uses.stage_of[weights.gradient_at], numbers)
    done = np.where(is_own, weights.gradient_at, backward)[weights.is_trained]
    sizes = weights.nbytes[weights.is_trained]
    count = len(sizes)
    rows.append(
        _Rows(
            nbytes=sizes,
            made_by=np.full(count, -1, dtype=np.int64) if older.any() else done,
            freed_after=np.full(count, step.num_nodes, dtype=np.int64),
            roles=np.full(count, TensorRole.GRADIENT, dtype=np.int8),
            is_cast=np.zeros(count, dtype=np.bool_),
        )
    )
    share = weights.trained_bytes / max(step.weights.trained_bytes, 1)
    return replace(
        step,
        nbytes=np.concatenate([one.nbytes for one in rows]),
        made_by=np.concatenate([one.made_by for one in rows]),
        freed_after=np.concatenate([one.freed_after for one in rows]),
        roles=np.concatenate([one.roles for one in rows]),
        is_cast=np.concatenate([one.is_cast for one in rows]),
        weights=weights,
        update=replace(
            step.update,
            state_bytes=round(step.update.state_bytes * share),
            temporary_bytes=round(step.update.temporary_bytes * share),
        ),
    )


def _rows(step: StepMemory, uses: _Uses, number: int, ahead: int, *, is_first: bool) -> _Rows:
    """Tensors of one stage, with the activations of `ahead` more micro-batches.

    What is there before the step counts with a device's first stage alone.
    """
    made_by, lasts = step.made_by, step.freed_after >= step.num_nodes
    outside, back = made_by < 0, uses.is_back[np.maximum(made_by, 0)] & (made_by >= 0)
    own = ~outside & (uses.stage_of[np.maximum(made_by, 0)] == number)
    last = uses.last_read[:, number]
    (forward, _), (backward, end) = (uses.span(number, backward=one) for one in (False, True))
    begins = np.where(own | outside, made_by, np.where(back, backward, forward))
    ends = np.where(lasts | outside, step.freed_after, np.maximum(last, begins))
    kept = np.where(outside, is_first, own | (last >= 0))
    kept &= ~(lasts & (step.roles == TensorRole.GRADIENT))
    crosses = kept & ~outside & ~back & (ends >= backward) & ~lasts
    waiting = max(ahead, 0) * int(crosses.sum())
    # Those that wait are there as long as a pass lasts, and gone before the update.
    return _Rows(
        nbytes=np.concatenate([step.nbytes[kept], *[step.nbytes[crosses]] * max(ahead, 0)]),
        made_by=np.concatenate([begins[kept], np.full(waiting, forward)]),
        freed_after=np.concatenate([ends[kept], np.full(waiting, end)]),
        roles=np.concatenate([step.roles[kept], np.full(waiting, TensorRole.ACTIVATION)]).astype(
            np.int8
        ),
        is_cast=np.concatenate([step.is_cast[kept], np.zeros(waiting, dtype=np.bool_)]),
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
        sharers=weights.sharers[owned],
    )
