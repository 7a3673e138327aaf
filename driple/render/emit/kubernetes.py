"""A Job of Kubernetes, alone or with what a scheduler on top of it needs.

A headless Service lets the pods find the first of them; `activeDeadlineSeconds` is the upper end of
the interval.
"""

from __future__ import annotations

from collections.abc import Mapping

from driple.render.emit.scheduled_job import HERE, MASTER_PORT, SCRIPT, ScheduledJob

__all__ = ["job_manifest", "kubernetes_job"]

_MINUTE_S = 60
_LEFT_FOR_SYSTEM = 0.9  # share of a machine's memory that pods can ask for


def kubernetes_job(job: ScheduledJob) -> str:
    """Service and Job for the scheduler of Kubernetes itself."""
    return job_manifest(job)


def job_manifest(
    job: ScheduledJob,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: tuple[str, ...] = (),
    pod_labels: Mapping[str, str] | None = None,
    scheduler: str = "",
) -> str:
    """Service and Job as YAML.

    Args:
        job: the training.
        labels: of the Job, as YAML; a comment may follow a value.
        annotations: of the Job, as YAML.
        spec: further lines of the Job's spec.
        pod_labels: of its pods, as YAML.
        scheduler: name of the scheduler; empty for the usual one.
    """
    limit = job.limit_minutes
    deadline = (
        f"  activeDeadlineSeconds: {_MINUTE_S * limit}"
        if limit is not None
        else "  # activeDeadlineSeconds: FILL_IN  (the error of the estimate is not known)"
    )
    command = (
        f"torchrun --nnodes={job.num_machines} --nproc-per-node={job.num_devices} "
        f"--node-rank=$JOB_COMPLETION_INDEX --master-addr={job.name}-0.{job.name} "
        f"--master-port={MASTER_PORT} {SCRIPT}"
    )
    lines = [
        *(f"# {line}" for line in job.facts),
        "apiVersion: v1",
        "kind: Service",
        "metadata:",
        f"  name: {job.name}",
        "spec:",
        "  clusterIP: None",
        "  selector:",
        f"    job-name: {job.name}",
        "---",
        "apiVersion: batch/v1",
        "kind: Job",
        "metadata:",
        f"  name: {job.name}",
        *_map_lines("labels", labels, "  "),
        *_map_lines("annotations", annotations, "  "),
        "spec:",
        *spec,
        "  completionMode: Indexed",
        f"  completions: {job.num_machines}",
        f"  parallelism: {job.num_machines}",
        "  backoffLimit: 0",
        deadline,
        "  template:",
        *(["    metadata:", *_map_lines("labels", pod_labels, "      ")] if pod_labels else []),
        "    spec:",
        *([f"      schedulerName: {scheduler}"] if scheduler else []),
        f"      subdomain: {job.name}",
        "      restartPolicy: Never",
        "      containers:",
        "        - name: train",
        "          image: YOUR_IMAGE  # REPLACE",
        f"          # {HERE}.",
        f'          command: ["/bin/sh", "-c", "{command}"]',
        "          resources:",
        "            requests:",
        *_host_lines(job),
        f"              nvidia.com/gpu: {job.num_devices}",
        "            limits:",
        f"              nvidia.com/gpu: {job.num_devices}",
    ]
    return "\n".join(lines) + "\n"


def _host_lines(job: ScheduledJob) -> list[str]:
    """Processors and memory of a machine's host, less what the system keeps."""
    memory = job.host_memory_mb
    cpus = [f'              cpu: "{max(job.cpus - 1, 1)}"'] if job.cpus else []
    if memory is None:
        return [*cpus, "              # memory: FILL_IN  (that of the hosts is not known)"]
    return [*cpus, f"              memory: {max(int(_LEFT_FOR_SYSTEM * memory), 1)}M"]


def _map_lines(key: str, values: Mapping[str, str] | None, indent: str) -> list[str]:
    if not values:
        return []
    return [f"{indent}{key}:", *(f"{indent}  {name}: {value}" for name, value in values.items())]
