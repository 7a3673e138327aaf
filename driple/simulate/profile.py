"""What a job's worker computes and sends in an iteration, for the closed forms.

Job, device -> step plan -> seconds and bytes of each bucket of gradients -> Profile
"""

from __future__ import annotations

import numpy as np

from driple.errors import GraphError
from driple.perfmodel.sweep import Profile
from driple.simulate.device import CalibratedDevice
from driple.simulate.job import Job

__all__ = ["profile_of"]


def profile_of(job: Job, device: CalibratedDevice) -> Profile:
    """The buckets of a job on a device; the forward pass counts to the first of them.

    Raises:
        GraphError: the job sends no gradients.
    """
    seconds: list[float] = []
    nbytes: list[float] = []
    since = 0.0
    for segment in job.plan(device, 1, "round_robin").segments:
        since += segment.duration_s
        if segment.sends:
            seconds.append(since)
            nbytes.append(sum(message.nbytes for message in segment.sends))
            since = 0.0
    if not seconds:
        raise GraphError(
            "the graph sends no gradients to a parameter server; give the graph of a worker of "
            "distributed training"
        )
    return Profile(
        forward_s=0.0,
        backward_s=np.array(seconds),
        bucket_bytes=np.array(nbytes),
        update_s=since,
    )
