"""Stages of a pipeline: which part of a step each has, and when it has its turns.

    OpGraph, seconds of each op, number of stages -> PipelineStage, ...
    Stages, micro-batches -> 1F1B schedule -> StepPlan of each stage

A stage has as many neighbouring blocks as any other, or one fewer; where one more is over a tenth
of the mean, the pipeline is refused. What comes before the first block belongs to the first stage,
what comes after the last block to the last one. Micro-batches are the passes of gradient
accumulation; `pipeline_schedule` has their turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from driple.cluster.schemes import divisors_near
from driple.errors import GraphError
from driple.graph.opgraph import OpGraph, Traffic
from driple.graph.step_facts import Phase
from driple.step.blocks import Block, blocks_of
from driple.step.exchange import BUCKETS, grouped, passes_of
from driple.step.pipeline_schedule import check_interleaved, first_and_last_s
from driple.step.plan import OpTimes, Segment, StepPlan, segments_between

__all__ = [
    "PipelineStage",
    "blocks_per_stage",
    "divides_into",
    "plan_stages",
    "stages_of",
    "stages_of_places",
]

IntArray = npt.NDArray[np.int64]
# Blocks of the fullest stage over the mean. No published pipeline in the data exceeds 1.05 (61
# blocks of DeepSeek-V3 on 4 to 32 stages).
_MOST_OVER_MEAN = 1.10


@dataclass(frozen=True, kw_only=True, slots=True)
class PipelineStage:
    """One stage of a pipeline.

    Attributes:
        forward: its forward pass of one micro-batch.
        backward: its backward pass of one micro-batch, with the gradients that leave.
        parameter_share: share of the parameters that it has.
        handed_bytes: bytes of activations of a micro-batch that the next stage reads; 0 for the
            last.
    """

    forward: Segment
    backward: tuple[Segment, ...]
    parameter_share: float
    handed_bytes: float

    @property
    def backward_s(self) -> float:
        """Seconds of a backward pass."""
        return sum(segment.duration_s for segment in self.backward)


def stages_of(
    graph: OpGraph,
    times: OpTimes,
    count: int,
    order: IntArray,
    groups: IntArray | None = None,
) -> list[PipelineStage]:
    """The stages of a step.

    Args:
        graph: of one device, with phases and named parameters.
        times: of its ops, all passes together.
        count: of stages.
        order: of execution.
        groups: shape [p], group of devices that adds up each parameter's gradient; all one group
            if None.

    Raises:
        GraphError: as `stages_of_places`.
    """
    place = np.empty(graph.num_nodes, dtype=np.int64)
    place[order] = np.arange(len(order))
    stage_of = stages_of_places(graph, place, count)
    is_forward = graph.phases[order] == Phase.FORWARD
    passes = passes_of(graph)
    traffic, table = graph.traffic, graph.parameters
    holder = np.zeros(len(table.names), dtype=np.int64)  # the stage that computes its gradient
    holder[table.gradients[:, 0]] = stage_of[place[table.gradients[:, 1]]]
    held = np.bincount(holder, weights=table.nbytes, minlength=count)
    stages = []
    for number in range(count):
        own = stage_of == number
        forward = segments_between(order[own & is_forward], times, [], [], share=1 / passes)
        back = order[own & ~is_forward]
        sent = stage_of[place[traffic.senders]] == number
        position = np.zeros(graph.num_nodes, dtype=np.int64)
        position[back] = np.arange(len(back))
        gradients = Traffic(sent_bytes=traffic.sent_bytes[sent], senders=traffic.senders[sent])
        pushes = grouped(replace(graph, traffic=gradients), position, BUCKETS, groups)
        backward = segments_between(back, times, [], pushes, share=1 / passes)
        stages.append(
            PipelineStage(
                forward=forward.segments[0],
                backward=backward.segments,
                parameter_share=float(held[number] / max(held.sum(), 1)),
                handed_bytes=_handed_bytes(graph, place, stage_of, number),
            )
        )
    return stages


def stages_of_places(graph: OpGraph, place: IntArray, count: int) -> IntArray:
    """Stage of each place in the order of execution.

    Args:
        graph: with phases and named parameters.
        place: shape [num_nodes], place of each node.
        count: of stages.

    Raises:
        GraphError: the graph does not show its phases, has fewer blocks than stages, or blocks that
            do not divide into stages.
    """
    blocks = _numbered(graph, place, count)
    sizes = _sizes(len(blocks), count)
    parts = np.split(np.arange(len(blocks)), np.cumsum(sizes)[:-1])
    stage_of = np.zeros(graph.num_nodes, dtype=np.int64)
    backward = graph.phases != Phase.FORWARD
    turn = int(place[backward].min()) if backward.any() else graph.num_nodes
    for number, part in enumerate(parts[1:], start=1):
        stage_of[_begin_of(blocks[part[0]], graph, place) : turn] = number
    # The backward pass of a stage ends with the last gradient of its blocks.
    done = [max(blocks[i].complete_at or 0 for i in part) + 1 for part in parts]
    bounds = np.maximum.accumulate([turn, *reversed(done[1:]), graph.num_nodes]).tolist()
    for number, (begin, end) in zip(range(count - 1, -1, -1), pairwise(bounds), strict=True):
        stage_of[begin:end] = number
    _place_updates(graph, place, stage_of)
    return stage_of


def blocks_per_stage(graph: OpGraph, place: IntArray, count: int) -> tuple[int, ...]:
    """Blocks of each stage; arguments and errors as those of `stages_of_places`."""
    return _sizes(len(_numbered(graph, place, count)), count)


def divides_into(num_blocks: int, count: int) -> bool:
    """Whether no stage has over a tenth more blocks than the mean, and each has some."""
    return 0 < count <= num_blocks and (
        _sizes(num_blocks, count)[0] * count <= _MOST_OVER_MEAN * num_blocks
    )


def _sizes(num_blocks: int, count: int) -> tuple[int, ...]:
    """Blocks of each stage, the first ones having one more where they do not divide."""
    each, rest = divmod(num_blocks, count)
    return (each + 1,) * rest + (each,) * (count - rest)


def _numbered(graph: OpGraph, place: IntArray, count: int) -> list[Block]:
    """The blocks that stages are made of.

    Raises:
        GraphError: there are none, fewer than stages, or they do not divide into stages.
    """
    blocks = [
        block for block in blocks_of(graph, place) if block.name and block.complete_at is not None
    ]
    if len(graph.phases) != graph.num_nodes or not any(
        not _is_group(block.name) for block in blocks
    ):
        raise GraphError(
            f"pp{count} cuts a step between numbered blocks of layers, and this graph shows none; "
            "use ddp or fsdp"
        )
    if len(blocks) < count:
        raise GraphError(
            f"a pipeline of {count} stages (pp x vpp) needs a block of layers for each, and the "
            f"graph has {len(blocks)}: at most {len(blocks)} stages do"
        )
    if not divides_into(len(blocks), count):
        fullest = _sizes(len(blocks), count)[0]
        raise GraphError(
            f"{len(blocks)} blocks do not divide into {count} stages (pp x vpp): the fullest would "
            f"have {fullest}, {fullest * count / len(blocks) - 1:.0%} over the mean; "
            f"{divisors_near(len(blocks), count, least=2)} stages do".replace("%", " %")
        )
    return blocks


def _begin_of(block: Block, graph: OpGraph, place: IntArray) -> int:
    """Place of the first op of a block: by its module, or that which reads the first parameter."""
    inside = [
        i
        for i, path in enumerate(graph.modules)
        if path == block.name or path.startswith(f"{block.name}.")
    ]
    if not inside:
        return block.forward_at
    own = np.isin(graph.module_of, inside) & (graph.phases == Phase.FORWARD)
    return int(min(block.forward_at, place[own].min(initial=block.forward_at)))


def _place_updates(graph: OpGraph, place: IntArray, stage_of: IntArray) -> None:
    """Clipping and the like runs where the gradients are that it reads."""
    updates = graph.phases == Phase.UPDATE
    data = graph.edges[~graph.is_control]
    data = data[updates[data[:, 1]]]
    for source, target in data[np.argsort(place[data[:, 1]], kind="stable")].tolist():
        stage_of[place[target]] = stage_of[place[source]]


def _is_group(name: str) -> bool:
    return name.startswith("group ")


def _handed_bytes(graph: OpGraph, place: IntArray, stage_of: IntArray, number: int) -> float:
    """Bytes of the last tensor that a stage makes for the next one in the forward pass."""
    data = graph.edges[~graph.is_control]
    forward = (graph.phases[data] == Phase.FORWARD).all(axis=1)
    source, target = place[data[forward, 0]], place[data[forward, 1]]
    crossing = (stage_of[source] == number) & (stage_of[target] > number)
    if not crossing.any():
        return 0.0
    last = data[forward, 0][crossing][int(source[crossing].argmax())]
    return float(graph.signatures[graph.signature_of[last]].outputs[0].nbytes)


def plan_stages(
    stages: list[PipelineStage],
    passes: int,
    handing_s: list[float],
    handed_bytes: list[float],
    chunks: int = 1,
) -> list[StepPlan]:
    """The step of each device of a pipeline.

    Args:
        stages: in order.
        passes: micro-batches.
        handing_s: seconds in which each stage hands a micro-batch on to the next one, or gets its
            gradients back; one fewer than stages. Both sides wait, but for interleaved stages,
            which compute meanwhile.
        handed_bytes: bytes that a device sends for it.
        chunks: stages of each device.

    Raises:
        GraphError: the devices do not divide the micro-batches of interleaved stages.
    """
    devices = len(stages) // chunks
    check_interleaved(devices, chunks, passes)
    waited_s = handing_s if chunks == 1 else [0.0] * len(handing_s)
    ahead_s, ahead_bytes = [*waited_s, 0.0], [*handed_bytes, 0.0]
    back_s, back_bytes = [0.0, *waited_s], [0.0, *handed_bytes]
    firsts, lasts = first_and_last_s(
        [one.forward.duration_s + more for one, more in zip(stages, ahead_s, strict=True)],
        [one.backward_s + more for one, more in zip(stages, back_s, strict=True)],
        passes,
        chunks=chunks,
        handing_s=() if chunks == 1 else handing_s,
    )
    plans = []
    for device in range(devices):
        own = range(device, len(stages), devices)
        last = stages[device]  # its backward pass is the last of the device
        last_bytes = back_bytes[device] if chunks == 1 else 0.0
        handed = passes * sum(ahead_bytes[i] + back_bytes[i] for i in own) - last_bytes
        steady = Segment(
            needs=0,
            duration_s=lasts[device] - firsts[device],
            busy_s=sum(_sum(stages[i], "busy_s", passes, i == device) for i in own),
            memory_s=sum(_sum(stages[i], "memory_s", passes, i == device) for i in own),
            sent_bytes=sum(_sum(stages[i], "sent_bytes", passes, i == device) for i in own)
            + handed,
            sends=tuple(
                message for i in own[1:] for one in stages[i].backward for message in one.sends
            ),
        )
        waits = Segment(needs=0, duration_s=firsts[device], busy_s=0.0, memory_s=0.0)
        hands_back = Segment(
            needs=0,
            duration_s=back_s[device],
            busy_s=0.0,
            memory_s=0.0,
            sent_bytes=last_bytes,
        )
        plans.append(StepPlan(pulls=(), segments=(waits, steady, *last.backward, hands_back)))
    return plans


def _sum(stage: PipelineStage, name: str, passes: int, is_last: bool) -> float:
    """All passes of a stage, without the last backward pass of its device's last one."""
    back = sum(getattr(segment, name) for segment in stage.backward)
    return float(passes * getattr(stage.forward, name) + (passes - is_last) * back)
