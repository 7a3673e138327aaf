"""Parts of a training step in words: what a device does, or waits for, at each moment.

    phases of ops in order of execution, sums of their seconds -> PhasePart, ...

Plans and records carry these parts beside their times, so that a step can be shown as forward pass,
backward pass, update and waits. No simulated time depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from driple.graph.step_facts import Phase

__all__ = [
    "COMPUTING",
    "EXCHANGE",
    "HOST",
    "PHASE_NAMES",
    "PHASE_WORDS",
    "STEP_PHASES",
    "UPDATE",
    "PhasePart",
    "parts_between",
]

FloatArray = npt.NDArray[np.float64]

COMPUTING, UPDATE, EXCHANGE, HOST = "computing", "update", "exchange", "host"
PHASE_NAMES = {
    Phase.FORWARD: "forward",
    Phase.BACKWARD: "backward",
    Phase.RECOMPUTE: "recompute",
    Phase.UPDATE: UPDATE,
}
# In the order in which they are listed; the last two are waits.
STEP_PHASES = ("forward", "recompute", "backward", COMPUTING, UPDATE, EXCHANGE, HOST)
PHASE_WORDS = {
    "forward": "forward",
    "recompute": "forward again",
    "backward": "backward",
    COMPUTING: "forward and backward in turn",
    UPDATE: "update",
    EXCHANGE: "waiting for other devices",
    HOST: "waiting for the host",
}


@dataclass(frozen=True, slots=True)
class PhasePart:
    """Ops of one phase that follow one another.

    Attributes:
        phase: one of `STEP_PHASES`.
        duration_s: seconds of the device.
        busy_s: seconds in which a kernel runs.
        memory_s: seconds in which a kernel uses device memory.
        exchange_s: seconds in which the device waits for other devices; for the rest it waits for
            its host.
    """

    phase: str
    duration_s: float
    busy_s: float
    memory_s: float
    exchange_s: float = 0.0


def parts_between(
    phases: npt.NDArray[np.integer], sums: Sequence[FloatArray], begin: int, end: int
) -> tuple[PhasePart, ...]:
    """Parts of the ops at some places in the order of execution.

    Args:
        phases: shape [num_nodes], a `Phase` each, in the order of execution.
        sums: running totals of the ops' durations, kernel seconds, memory seconds and seconds of
            waiting for other devices, shape [num_nodes + 1] each.
        begin: first place.
        end: place after the last.
    """
    own = phases[begin:end]
    turns = np.flatnonzero(np.diff(own)) + 1 + begin
    bounds = [begin, *turns.tolist(), end]
    return tuple(
        PhasePart(
            PHASE_NAMES[Phase(int(phases[first]))], *(float(one[last] - one[first]) for one in sums)
        )
        for first, last in pairwise(bounds)
        if sums[0][last] > sums[0][first]
    )
