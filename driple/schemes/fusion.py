"""Fusion of gradients while others are on their way, as Horovod has it.

    tensors in order of readiness -> at each turn of the background thread, all that are ready, up
    to the fusion buffer, as one message

A turn begins when the message before has ended, and no sooner than a cycle after the turn before:
HOROVOD_CYCLE_TIME and HOROVOD_FUSION_THRESHOLD, at their defaults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from driple.step.plan import Message, StepPlan

__all__ = ["BUFFER_BYTES", "CYCLE_S", "fused_plans"]

FloatArray = npt.NDArray[np.float64]

BUFFER_BYTES = 64 * 2.0**20  # 64 MiB
CYCLE_S = 1e-3  # since version 0.19; 5 ms before


def fused_plans(
    plans: Sequence[StepPlan],
    seconds_of: Callable[[FloatArray], FloatArray],
    *,
    cycle_s: float = CYCLE_S,
    buffer_bytes: float = BUFFER_BYTES,
) -> tuple[StepPlan, ...]:
    """Plans of all workers with the same fused messages: those of the slowest, whom all wait for.

    Each message is sent when the last of its tensors is ready. Workers with one plan have one plan
    afterwards.

    Args:
        plans: with a message for each tensor.
        seconds_of: duration of collectives by their bytes, shape [num_messages].
        cycle_s: least time between two turns of the background thread, seconds.
        buffer_bytes: most bytes of a fused message; a larger tensor goes alone.
    """
    known = {id(plan): plan for plan in plans}
    slowest = max(known.values(), key=lambda plan: plan.compute_s)
    sends = _fused_sends(slowest, seconds_of, cycle_s, buffer_bytes)
    fused = {key: _with_sends(plan, sends) for key, plan in known.items()}
    return tuple(fused[id(plan)] for plan in plans)


def _fused_sends(
    plan: StepPlan,
    seconds_of: Callable[[FloatArray], FloatArray],
    cycle_s: float,
    buffer_bytes: float,
) -> Mapping[int, Sequence[Message]]:
    """Fused messages by the segment at whose end they leave."""
    ends_s = np.cumsum([segment.duration_s for segment in plan.segments]).tolist()
    waiting = [
        (ends_s[place], place, message)
        for place, segment in enumerate(plan.segments)
        for message in segment.sends
    ]
    sends: dict[int, list[Message]] = {}
    turn_s, position = 0.0, 0
    while position < len(waiting):
        ready_s, place, first = waiting[position]
        turn_s = max(turn_s, ready_s, math.ceil(ready_s / cycle_s) * cycle_s if cycle_s else 0.0)
        nbytes, tensors = first.nbytes, first.tensors
        position += 1
        while position < len(waiting):
            other_s, other_place, other = waiting[position]
            if other_s > turn_s or nbytes + other.nbytes > buffer_bytes:
                break
            nbytes, tensors, place = nbytes + other.nbytes, tensors + other.tensors, other_place
            position += 1
        sends.setdefault(place, []).append(Message(first.server, nbytes, tensors))
        took_s = float(seconds_of(np.array([nbytes]))[0])
        turn_s += max(took_s, cycle_s)
    return sends


def _with_sends(plan: StepPlan, sends: Mapping[int, Sequence[Message]]) -> StepPlan:
    """The plan with other messages, by the segment at whose end they leave."""
    leaving = [tuple(sends.get(place, ())) for place in range(len(plan.segments))]
    segments = tuple(
        replace(segment, sends=leave) if leave or segment.sends else segment
        for segment, leave in zip(plan.segments, leaving, strict=True)
    )
    return replace(plan, segments=segments)
