"""A task of SkyPilot (YAML), and a time estimator for its optimizer (Python).

SkyPilot calls `time_estimator_func(resources)` for each choice of machines, once a program has
passed it to `Task.set_time_estimator`; a YAML file has no field for it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from driple.render.emit.scheduled_job import HERE, MASTER_PORT, SCRIPT, ScheduledJob

__all__ = ["skypilot_estimator", "skypilot_task"]

_CLOUDS = {"AWS": "aws", "Google Cloud": "gcp", "Azure": "azure", "Lambda": "lambda"}
_MINUTE_S = 60
# Where SkyPilot writes a name otherwise; consumer cards have RTX before their number.
_ACCELERATORS = {
    "A100-80G": "A100-80GB",
    "V100-SXM2-32G": "V100-32GB",
}


def skypilot_task(job: ScheduledJob) -> str:
    """The task as YAML."""
    minutes = job.limit_minutes
    guard = "" if minutes is None else f"timeout {_MINUTE_S * minutes}s "
    unknown = [] if minutes is not None else [
        "  # No time limit: the error of the estimate is not known."
    ]  # fmt: skip
    lines = [
        *(f"# {line}" for line in job.facts),
        f"name: {job.name}",
        "resources:",
        *_resource_lines(job),
        f"num_nodes: {job.num_machines}",
        "run: |",
        *unknown,
        '  head_address=$(echo "$SKYPILOT_NODE_IPS" | head -n 1)',
        f"  # {HERE}.",
        f"  {guard}torchrun --nnodes={job.num_machines} --nproc-per-node={job.num_devices} \\",
        '    --node-rank="$SKYPILOT_NODE_RANK" --master-addr="$head_address" \\',
        f"    --master-port={MASTER_PORT} {shlex.quote(SCRIPT)}",
    ]
    return "\n".join(lines) + "\n"


def _resource_lines(job: ScheduledJob) -> list[str]:
    instance, price = job.instance, job.price
    if instance is None:
        name = accelerator_name(job.device)
        return [f"  accelerators: {json.dumps(f'{name}:{job.num_devices}')}"]
    cloud = _CLOUDS.get(instance.provider)
    spot = price is not None and price.spot
    region = None if price is None else price.region
    return [
        *([f"  cloud: {cloud}"] if cloud else []),
        f"  instance_type: {json.dumps(instance.name)}",
        f"  use_spot: {str(spot).lower()}",
        *([f"  region: {json.dumps(region)}"] if region else []),
    ]


def accelerator_name(device: str) -> str:
    """Name of a device in SkyPilot's catalogue."""
    if re.fullmatch(r"[2-5]0[5-9]0\w*", device):
        return f"RTX{device}"
    return _ACCELERATORS.get(device, device)


def _literal(key: Sequence[str | int]) -> str:
    """A tuple in Python, with the double quotes that formatters write."""
    return f"({', '.join(json.dumps(part) for part in key)})"


def skypilot_estimator(jobs: Sequence[ScheduledJob]) -> str:
    """A Python file with `time_estimator_func`, over all machines that an answer has.

    Of several ways to train on the same machines, the first counts: that is the better one.

    Args:
        jobs: one for each kind of machine; the first is the recommended one.
    """
    by_instance: dict[tuple[str, int], float] = {}
    by_device: dict[tuple[str, int, int], float] = {}
    for job in jobs:
        device = (accelerator_name(job.device), job.num_devices, job.num_machines)
        by_device.setdefault(device, job.training_s)
        if job.instance is not None:
            by_instance.setdefault((job.instance.name, job.num_machines), job.training_s)
    lines = [
        "# Training times that Driple predicts, for the optimizer of SkyPilot:",
        "#     task = sky.Task.from_yaml('task.yaml')",
        "#     task.set_time_estimator(time_estimator_func)",
        *(f"# {line}" for line in jobs[0].facts),
        "",
        f"NUM_NODES = {jobs[0].num_machines}  # of the task",
        "# Seconds by instance and number of nodes, and by accelerator, number and nodes.",
        "BY_INSTANCE = {",
        *(f"    {_literal(key)}: {round(value)}," for key, value in by_instance.items()),
        "}",
        "BY_ACCELERATOR = {",
        *(f"    {_literal(key)}: {round(value)}," for key, value in by_device.items()),
        "}",
        "",
        "",
        "def time_estimator_func(resources):",
        '    """Seconds that the training takes on `resources`, a sky.Resources."""',
        "    seconds = BY_INSTANCE.get((resources.instance_type, NUM_NODES))",
        "    for name, count in (resources.accelerators or {}).items():",
        "        if seconds is None:",
        "            seconds = BY_ACCELERATOR.get((name, int(count), NUM_NODES))",
        "    if seconds is None:",
        '        raise ValueError(f"Driple was not asked about {resources}; ask for it too")',
        "    return seconds",
    ]
    return "\n".join(lines) + "\n"
