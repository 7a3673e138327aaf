"""What one worker without parameter servers exchanges in a step, and when.

    OpGraph, seconds of each op -> gradients in order of readiness -> buckets  (DDP, ZeRO-1, -2)
                                -> blocks of parameters: gathers before their forward and backward
                                   pass, gradients after it                    (ZeRO-3, FSDP)

Passes of gradient accumulation follow one another: only the last one sends gradients, or each one
does, as the rule says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from driple.checks import check_number
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase
from driple.step.blocks import blocks_of
from driple.step.plan import Message, OpTimes, Segment, StepPlan, segments_between

__all__ = ["BUCKETS", "ExchangeRule", "grouped", "passes_of", "plan_exchange"]

MIB = 2.0**20


@dataclass(frozen=True, kw_only=True, slots=True)
class ExchangeRule:
    """How a program groups what its workers exchange.

    Attributes:
        grouping: `tensors` sends each gradient when it is ready; `buckets` fills buckets in order
            of readiness; `blocks` gathers the parameters of a block of layers before they are
            used, and sends their gradients together.
        first_bytes: least bytes of the first bucket; small, so that sending starts early.
        most_bytes: least bytes of every other bucket: the gradient that fills it belongs to it.
        each_pass: whether gradients leave in every pass of gradient accumulation.

    Raises:
        ConfigError: a negative number of bytes.
    """

    grouping: Literal["tensors", "buckets", "blocks"]
    first_bytes: float = MIB
    most_bytes: float = 25 * MIB
    each_pass: bool = False

    def __post_init__(self) -> None:
        for name in ("first_bytes", "most_bytes"):
            check_number(f"{name} of buckets", getattr(self, name), least=0)


# torch.nn.parallel.DistributedDataParallel: bucket_cap_mb = 25, and a first bucket of 1 MiB.
BUCKETS = ExchangeRule(grouping="buckets")


def passes_of(graph: OpGraph) -> int:
    """Forward and backward passes of a step; 1 where the graph does not show its phases."""
    if len(graph.phases) != graph.num_nodes or len(graph.executions) != graph.num_nodes:
        return 1
    forward = graph.executions[graph.phases == Phase.FORWARD]
    return max(int(forward.min()), 1) if len(forward) else 1


def plan_exchange(
    graph: OpGraph,
    times: OpTimes,
    rule: ExchangeRule,
    order: npt.NDArray[np.int64],
    groups: npt.NDArray[np.int64] | None = None,
) -> StepPlan:
    """The step of a worker that holds its parameters, or its share of them.

    Args:
        graph: of the worker; its traffic has parameters and gradients alone.
        times: of its ops on the worker's device, all passes together.
        rule: how gradients and parameters are grouped.
        order: of execution.
        groups: shape [p], group of devices that adds up each parameter's gradient; all one group
            if None.

    Raises:
        SimulationError: as `driple.step.plan.plan_step`.
    """
    place = np.empty(graph.num_nodes, dtype=np.int64)
    place[order] = np.arange(len(order))
    passes = passes_of(graph)
    if rule.grouping == "blocks":
        blocks = blocks_of(graph, place, groups)
        pulls = sorted(
            (
                (at, Message(one.group, one.gathered_bytes, one.num_tensors))
                for one in blocks
                for at in (one.forward_at, one.backward_at)
                if at is not None and one.gathered_bytes > 0
            ),
            key=lambda item: item[0],
        )
        pushes = sorted(
            (
                (one.complete_at + 1, Message(one.group, one.gradient_bytes, one.num_tensors))
                for one in blocks
                if one.complete_at is not None
            ),
            key=lambda item: item[0],
        )
    else:
        pulls, pushes = [], grouped(graph, place, rule, groups)
    if passes == 1:
        return segments_between(order, times, pulls, pushes)
    single_pass = segments_between(order, times, pulls, pushes, share=1 / passes)
    return _repeated(single_pass, passes, each_pass=rule.each_pass)


def grouped(
    graph: OpGraph,
    place: npt.NDArray[np.int64],
    rule: ExchangeRule,
    groups: npt.NDArray[np.int64] | None = None,
) -> list[tuple[int, Message]]:
    """Place and message of each bucket of gradients, in order of readiness.

    Args:
        graph: its traffic has gradients alone.
        place: of each node in the order of execution.
        rule: how they are grouped.
        groups: shape [p], group of devices that adds up each parameter's gradient, which is its
            message's `server`; all one group if None.
    """
    ready = place[graph.traffic.senders] + 1
    first = np.argsort(ready, kind="stable")
    sizes, ready = graph.traffic.sent_bytes[first].astype(np.float64), ready[first]
    if groups is None:
        return _buckets(sizes, ready, rule, 0)
    of_node = np.zeros(graph.num_nodes, dtype=np.int64)
    of_node[graph.parameters.gradients[:, 1]] = groups[graph.parameters.gradients[:, 0]]
    own = of_node[graph.traffic.senders][first]
    return sorted(
        (
            each
            for group in np.unique(own).tolist()
            for each in _buckets(sizes[own == group], ready[own == group], rule, group)
        ),
        key=lambda item: item[0],
    )


def _buckets(
    sizes: npt.NDArray[np.float64],
    ready: npt.NDArray[np.int64],
    rule: ExchangeRule,
    group: int,
) -> list[tuple[int, Message]]:
    """The buckets of one group of devices; sizes and places are in order of readiness."""
    if not len(sizes):
        return []
    ends = _bucket_ends(sizes.tolist(), rule) if rule.grouping == "buckets" else range(len(sizes))
    bounds = [0, *(end + 1 for end in ends)]
    return [
        (int(ready[end - 1]), Message(group, float(sizes[begin:end].sum()), end - begin))
        for begin, end in pairwise(bounds)
    ]


def _bucket_ends(sizes: Sequence[float], rule: ExchangeRule) -> list[int]:
    """Last gradient of each bucket."""
    ends: list[int] = []
    filled = 0.0
    for i, nbytes in enumerate(sizes):
        filled += nbytes
        if filled >= (rule.most_bytes if ends else rule.first_bytes):
            ends.append(i)
            filled = 0.0
    if not ends or ends[-1] != len(sizes) - 1:
        ends.append(len(sizes) - 1)
    return ends


def _repeated(plan: StepPlan, passes: int, *, each_pass: bool) -> StepPlan:
    """A step of several passes, from the plan of one."""
    if not plan.pulls and not each_pass:
        alone = Segment(
            needs=0,
            duration_s=(passes - 1) * plan.compute_s,
            busy_s=(passes - 1) * sum(segment.busy_s for segment in plan.segments),
            memory_s=(passes - 1) * sum(segment.memory_s for segment in plan.segments),
            sent_bytes=(passes - 1) * sum(segment.sent_bytes for segment in plan.segments),
            parts=(passes - 1) * tuple(part for one in plan.segments for part in one.parts),
        )
        return StepPlan(pulls=(), segments=(alone, *plan.segments))
    segments = [
        replace(
            segment,
            needs=segment.needs + number * len(plan.pulls),
            sends=segment.sends if each_pass or number == passes - 1 else (),
        )
        for number in range(passes)
        for segment in plan.segments
    ]
    return StepPlan(
        pulls=plan.pulls * passes,
        segments=tuple(segments),
        passes=passes if each_pass else 1,
    )
