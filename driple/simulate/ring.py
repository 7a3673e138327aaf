"""Workers that add up their gradients in a ring, step after step, without servers.

    step: compute -> each message of gradients goes round as soon as all workers have it -> update

A ring of n workers passes 2 (n - 1) / n of each byte out of and into every worker, in 2 (n - 1)
hops (Patarasuk and Yuan, JPDC 2009). Messages go round one after another, while the device computes
on; all workers take part in each, so they end their steps together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driple.simulate.cluster import Computing, WorkerRecord
from driple.simulate.plan import StepPlan

__all__ = ["RingSpec", "simulate_ring"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RingSpec:
    """What joins the workers.

    Attributes:
        bytes_per_s: rate of the slowest link of the ring, each way.
        hop_s: seconds that a message takes for a hop, besides its bytes.
        update_s: seconds of each worker's device to apply the gradients; a kernel runs, and uses
            device memory, all the while.
        jitter: standard deviation of the logarithm of a step's computing time.
    """

    bytes_per_s: float
    hop_s: float
    update_s: tuple[float, ...]
    jitter: float = 0.0


def simulate_ring(
    spec: RingSpec, plans: Sequence[StepPlan], num_steps: int, seed: int = 0
) -> list[WorkerRecord]:
    """Let every worker do its steps.

    Args:
        spec: the ring.
        plans: what each worker does in a step; all send the same messages. What they would pull
            from servers they have.
        num_steps: steps of each worker.
        seed: of the jitter.

    Returns:
        One record per worker.
    """
    random = np.random.default_rng(seed)
    records = [WorkerRecord(tx=[(0.0, 0.0)], rx=[(0.0, 0.0)]) for _ in plans]
    start_s = 0.0
    for _ in range(num_steps):
        slowness = np.exp(random.normal(0.0, spec.jitter, len(plans)))
        ready = [
            _compute(record, plan, start_s, float(slow))
            for record, plan, slow in zip(records, plans, slowness, strict=True)
        ]
        sizes = [message.nbytes for segment in plans[0].segments for message in segment.sends]
        free_s = max(record.computing[-1].end_s if record.computing else start_s
                     for record in records)  # fmt: skip
        if len(plans) > 1:
            free_s = max(free_s, _go_round(spec, records, sizes, ready))
        ends = [free_s + seconds for seconds in spec.update_s]
        for record, end_s in zip(records, ends, strict=True):
            if end_s > free_s:
                record.computing.append(Computing(free_s, end_s, 1.0, 1.0))
        start_s = max(ends)
        for record in records:
            record.step_ends_s.append(start_s)
    return records


def _compute(record: WorkerRecord, plan: StepPlan, start_s: float, slowness: float) -> list[float]:
    """Run the segments one after another; when each message of gradients is ready."""
    now_s, ready = start_s, []
    for segment in plan.segments:
        end_s = now_s + segment.duration_s * slowness
        if segment.duration_s > 0:
            busy, memory = (
                seconds / segment.duration_s for seconds in (segment.busy_s, segment.memory_s)
            )
            record.computing.append(Computing(now_s, end_s, busy, memory))
        now_s = end_s
        ready += [now_s] * len(segment.sends)
    return ready


def _go_round(
    spec: RingSpec, records: list[WorkerRecord], sizes: list[float], ready: list[list[float]]
) -> float:
    """Pass each message round once the last worker has it; when the last is through."""
    num_workers = len(records)
    free_s = 0.0
    for i, size in enumerate(sizes):
        begin_s = max(free_s, *(times[i] for times in ready))
        passed = 2 * (num_workers - 1) / num_workers * size
        free_s = begin_s + passed / spec.bytes_per_s + 2 * (num_workers - 1) * spec.hop_s
        rate = passed / (free_s - begin_s) if free_s > begin_s else 0.0
        for record in records:
            for meter in (record.tx, record.rx):
                if meter[-1][0] == begin_s:
                    meter.pop()
                meter += [(begin_s, rate), (free_s, 0.0)]
    return free_s
