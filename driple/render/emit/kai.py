"""A Job for KAI-Scheduler, with the annotation `kai.scheduler/expected-runtime`.

Its PodGroup inherits the annotations of the Job. After that time, a preemptible job may give way to
one of higher priority, so it is the upper end of the interval where that is known.
"""

from __future__ import annotations

from driple.render.emit.kubernetes import job_manifest
from driple.render.emit.scheduled_job import ScheduledJob

__all__ = ["kai_job"]

_QUEUE = "YOUR_QUEUE  # REPLACE"


def kai_job(job: ScheduledJob) -> str:
    """Service and Job, which KAI-Scheduler places."""
    minutes = job.expected_minutes if job.limit_minutes is None else job.limit_minutes
    annotations = {"kai.scheduler/expected-runtime": f'"{minutes}m"'}
    if job.num_machines > 1:
        annotations["kai.scheduler/batch-min-member"] = f'"{job.num_machines}"'
    return job_manifest(
        job,
        labels={"kai.scheduler/queue": _QUEUE},
        annotations=annotations,
        pod_labels={"kai.scheduler/queue": _QUEUE},
        scheduler="kai-scheduler",
    )
