"""A Job for Kueue: suspended, with its queue and the longest time that it may run.

Kueue reads `kueue.x-k8s.io/max-exec-time-seconds`, a label, into the Workload's
`maximumExecutionTimeSeconds`; it has no field for an expected time.
"""

from __future__ import annotations

from driple.render.emit.kubernetes import job_manifest
from driple.render.emit.scheduled_job import ScheduledJob

__all__ = ["kueue_job"]

_MINUTE_S = 60


def kueue_job(job: ScheduledJob) -> str:
    """Service and Job, which Kueue starts."""
    labels = {"kueue.x-k8s.io/queue-name": "YOUR_LOCAL_QUEUE  # REPLACE"}
    if job.limit_minutes is not None:
        seconds = _MINUTE_S * job.limit_minutes
        labels["kueue.x-k8s.io/max-exec-time-seconds"] = f'"{seconds}"'
    return job_manifest(job, labels=labels, spec=("  suspend: true  # Kueue starts it",))
