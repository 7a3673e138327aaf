"""Coarser models of the throughput of asynchronous SGD, for comparison (section 4.4).

Phases (downlink, computing, uplink, update of a step of one worker) -> examples/s of many workers
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from driple.async_sgd.jobtrace import JobTrace, Resource

__all__ = ["Phases", "cynthia", "lin_queues", "linear", "phases_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Phases:
    """Phases of a step of one worker, for models without ops.

    Attributes:
        downlink_s: transfer of the parameters at full rate.
        computing_s: from the end of the downlink to the start of the uplink.
        uplink_s: transfer of the updates at full rate.
        update_s: time of the server's update.
        step_s: the whole step, as measured.
        batch_size: examples of a step.
    """

    downlink_s: float
    computing_s: float
    uplink_s: float
    update_s: float
    step_s: float
    batch_size: int


def phases_of(trace: JobTrace, bytes_per_s: float) -> Phases:
    """The phases of a profiled job with its fullest server, for transfers at this rate.

    The step time is that of untraced steps if the trace has it. The remainder after transfers and
    updates counts as computing, since the models have no overlap.
    """
    nbytes = {
        kind: max(
            float(trace.sizes[(trace.resources == kind) & (trace.servers == server)].sum())
            for server in range(trace.num_servers)
        )
        for kind in (Resource.DOWNLINK, Resource.UPLINK)
    }
    serving = trace.resources == Resource.SERVER
    update_s = float((trace.end_s - trace.start_s)[:, serving].sum(axis=1).mean())
    untraced_s = trace.about.untraced_step_s
    step_s = float(trace.step_s.mean() if untraced_s is None else untraced_s)
    down_s, up_s = (nbytes[kind] / trace.bytes_per_s for kind in nbytes)
    computing_s = max(step_s - down_s - up_s - update_s, 0.0)
    scale = trace.bytes_per_s / bytes_per_s
    return Phases(
        downlink_s=down_s * scale,
        computing_s=computing_s,
        uplink_s=up_s * scale,
        update_s=update_s,
        step_s=step_s + (scale - 1) * (down_s + up_s),
        batch_size=trace.batch_size,
    )


def linear(phases: Phases, num_workers: int) -> float:
    """Examples/s without contention."""
    return num_workers * phases.batch_size / phases.step_s


def cynthia(phases: Phases, num_workers: int, *, halved: bool = False) -> float:
    """Examples/s by Cynthia: W K / (T_P max(1, W U_1) + 2 T_C) (Zheng et al., 2019; section 1).

    Args:
        phases: of one worker.
        num_workers: W.
        halved: halve T_C, since uplink and downlink are separate resources (section 4.4).
    """
    processing_s = phases.computing_s + phases.update_s
    transfer_s = (phases.downlink_s + phases.uplink_s) / 2 * (0.5 if halved else 1.0)
    utilization = 2 * transfer_s / (processing_s + 2 * transfer_s)
    busy = max(1.0, num_workers * utilization)
    return num_workers * phases.batch_size / (processing_s * busy + 2 * transfer_s)


def lin_queues(phases: Phases, num_workers: int) -> float:
    """Examples/s by a closed queueing network (after Lin et al., MASCOTS 2018).

    Downlink, uplink and the server's updates are stations shared by all workers; computing is a
    delay of each worker. The product-form network is solved by exact mean-value analysis: an
    arriving customer sees the mean queue of a network with n - 1 customers.
    """
    demands = np.array([phases.downlink_s, phases.uplink_s, phases.update_s])
    waiting = np.zeros(3)
    per_s = 0.0
    for n in range(1, num_workers + 1):
        response_s = demands * (1 + waiting)
        per_s = n / (phases.computing_s + float(response_s.sum()))
        waiting = per_s * response_s
    return per_s * phases.batch_size
