"""Steps of workers on a plain ring, by the timeline of all collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driple.schemes.records import WorkerRecord
from driple.schemes.ring import RingSpec
from driple.schemes.timeline import StepCollectives, simulate_timeline
from driple.step.plan import StepPlan


def simulate_ring(
    spec: RingSpec, plans: Sequence[StepPlan], num_steps: int, seed: int = 0
) -> list[WorkerRecord]:
    """Simulate every worker; messages are those of the plans, and all but one share of each pass.

    A worker sends each share of a message twice, but for its own.
    """
    messages = [message for segment in plans[0].segments for message in segment.sends]
    sizes = spec.share * np.array([message.nbytes for message in messages], dtype=np.float64)
    tensors = np.array([message.tensors for message in messages], dtype=np.int64)
    ring = spec.exchange()
    exchange = StepCollectives(
        send_s=ring.seconds(sizes, tensors), send_bytes=2 * (ring.count - 1) / ring.count * sizes
    )
    return simulate_timeline(spec.step(), exchange, plans, num_steps, seed)
