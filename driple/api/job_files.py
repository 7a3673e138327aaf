"""A job file for the recommended offer: of Slurm, of Kueue on Kubernetes, or of SkyPilot.

PlanResult, name of the form -> text; the command is the user's own, and is marked where it goes
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from driple.checks import check_choice
from driple.errors import ConfigError
from driple.quantities import duration, size

if TYPE_CHECKING:
    from driple.api.plan_results import PlanResult
    from driple.planning.offers import Offer

__all__ = ["FORMS", "job_file_of"]

_COMMAND = "YOUR_TRAINING_SCRIPT.py"
_HERE = "REPLACE the line below by the command that starts your training on one machine"
_MOST_NAME = 40
_CLOUDS = {"AWS": "aws", "Google Cloud": "gcp", "Azure": "azure", "Lambda": "lambda"}
_PORT = 29500


def job_file_of(result: PlanResult, form: str) -> str:
    """The job file of the recommended offer.

    The time limit is the upper end of the offer's interval, rounded up to minutes; where that is
    not known, the deadline, and without one the line is left for the user to fill in.

    Args:
        result: the answer.
        form: `slurm`, `kueue` or `skypilot`.

    Raises:
        ConfigError: no such form, or nothing is recommended.
    """
    check_choice("--format", form, FORMS)
    best = result.choice.best
    if best is None:
        raise ConfigError(
            f"--format {form} needs a recommended offer, and there is none; driple plan without "
            "--format says why"
        )
    if best.candidate is None:
        raise ConfigError(
            f"--format {form} is for offers that were simulated, and {best.name} was measured; "
            "give a JOB"
        )
    return FORMS[form](result, best)


def _minutes(result: PlanResult, best: Offer) -> int | None:
    """Time limit in minutes; None if neither the error nor a deadline is known."""
    ends = best.factors
    if ends is not None and math.isfinite(ends[1]):
        return max(math.ceil(ends[1] * best.training_s / 60), 1)
    deadline_s = result.limits.deadline_s
    return None if deadline_s is None else max(math.ceil(deadline_s / 60), 1)


def _facts(result: PlanResult, best: Offer) -> list[str]:
    """What the file is for, as lines of comments."""
    job, ends = result.job, best.factors
    name = "a job" if job is None else job.name
    lines = [
        f"Training of {name} on {best.full_name}, planned by Driple.",
        f"Estimate: {duration(best.training_s)}"
        + (
            "; its error is not known."
            if ends is None
            else f", 90 % interval {duration(ends[0] * best.training_s)} to "
            + ("no limit." if math.isinf(ends[1]) else f"{duration(ends[1] * best.training_s)}.")
        ),
    ]
    needed = best.memory_bytes
    if needed is not None:
        lines.append(
            f"Memory of each device: {size(needed)}; fits: {best.fits_words or 'unknown'}."
        )
    variant = best.variant
    if variant is not None:
        lines.append(
            f"Set in your script: batch of a device {variant.batch_size}, gradient accumulation "
            f"{variant.grad_accumulation}, activation checkpointing "
            f"{variant.activation_checkpointing}, precision "
            f"{variant.precision or 'as you have it'}, scheme {best.scheme}."
        )
    return [_one_line(line) for line in lines]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _name(result: PlanResult) -> str:
    """A name that all schedulers take: letters, digits and dashes."""
    source = "job" if result.job is None else result.job.name
    bare = re.sub(r"[^a-z0-9]+", "-", source.lower()).strip("-")[:_MOST_NAME].strip("-")
    return f"driple-{bare or 'job'}"


def _shape(best: Offer) -> tuple[int, int]:
    """Machines, and devices of each."""
    if best.candidate is None:
        raise ConfigError("a measured offer has no machines of its own; give a JOB")
    machines = best.candidate.setting.cluster.machines
    return len(machines), len(machines[0].devices)


def _host_gb(best: Offer) -> int | None:
    """Main memory of a machine, GB; None if it is not known."""
    if best.instance is None or best.instance.memory_gb is None:
        return None
    return int(best.instance.memory_gb)


def _cpus(best: Offer) -> int | None:
    if best.instance is None or best.instance.vcpus is None:
        return None
    return int(best.instance.vcpus)


def _slurm(result: PlanResult, best: Offer) -> str:
    machines, each = _shape(best)
    minutes, cpus = _minutes(result, best), _cpus(best)
    device = "" if best.candidate is None else best.candidate.setting.device.lower()
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={_name(result)}",
        f"#SBATCH --nodes={machines}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={each}",
        *([f"#SBATCH --cpus-per-task={cpus}"] if cpus else []),
        "#SBATCH --mem=0",
        f"#SBATCH --time={_slurm_time(minutes)}"
        if minutes is not None
        else "##SBATCH --time=FILL_IN  (the error of the estimate is not known)",
        "#SBATCH --output=%x-%j.log",
        "",
        *(f"# {line}" for line in _facts(result, best)),
        "# --mem=0 is all memory of a machine.",
        f"# The devices are {device}; where they have names: --gpus-per-node=NAME:{each}.",
        "",
        "set -euo pipefail",
        'head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f"# {_HERE}.",
        f'srun torchrun --nnodes={machines} --nproc-per-node={each} --rdzv-id="$SLURM_JOB_ID" \\',
        f'  --rdzv-backend=c10d --rdzv-endpoint="$head_node:{_PORT}" {_COMMAND}',
    ]
    return "\n".join(lines) + "\n"


def _slurm_time(minutes: int) -> str:
    """Minutes as Slurm writes them: days-hours:minutes:seconds."""
    days, rest = divmod(minutes, 24 * 60)
    hours, left = divmod(rest, 60)
    return f"{days}-{hours:02d}:{left:02d}:00"


def _kueue(result: PlanResult, best: Offer) -> str:
    machines, each = _shape(best)
    minutes, cpus, memory = _minutes(result, best), _cpus(best), _host_gb(best)
    name = _name(result)
    limit = (
        f"  activeDeadlineSeconds: {60 * minutes}"
        if minutes is not None
        else "  # activeDeadlineSeconds: FILL_IN  (the error of the estimate is not known)"
    )
    command = (
        f"torchrun --nnodes={machines} --nproc-per-node={each} "
        f"--node-rank=$JOB_COMPLETION_INDEX --master-addr={name}-0.{name} "
        f"--master-port={_PORT} {_COMMAND}"
    )
    lines = [
        *(f"# {line}" for line in _facts(result, best)),
        "apiVersion: v1",
        "kind: Service",
        "metadata:",
        f"  name: {name}",
        "spec:",
        "  clusterIP: None",
        "  selector:",
        f"    job-name: {name}",
        "---",
        "apiVersion: batch/v1",
        "kind: Job",
        "metadata:",
        f"  name: {name}",
        "  labels:",
        "    kueue.x-k8s.io/queue-name: YOUR_LOCAL_QUEUE  # REPLACE",
        "spec:",
        "  suspend: true  # Kueue starts it",
        "  completionMode: Indexed",
        f"  completions: {machines}",
        f"  parallelism: {machines}",
        "  backoffLimit: 0",
        limit,
        "  template:",
        "    spec:",
        f"      subdomain: {name}",
        "      restartPolicy: Never",
        "      containers:",
        "        - name: train",
        "          image: YOUR_IMAGE  # REPLACE",
        f"          # {_HERE}.",
        f'          command: ["/bin/sh", "-c", "{command}"]',
        "          resources:",
        "            requests:",
        *([f'              cpu: "{max(cpus - 1, 1)}"'] if cpus else []),
        *([f"              memory: {max(int(0.9 * memory), 1)}G"] if memory else []),
        f"              nvidia.com/gpu: {each}",
        "            limits:",
        f"              nvidia.com/gpu: {each}",
    ]
    return "\n".join(lines) + "\n"


def _skypilot(result: PlanResult, best: Offer) -> str:
    machines, each = _shape(best)
    minutes, instance = _minutes(result, best), best.instance
    resources = []
    if instance is not None:
        cloud = _CLOUDS.get(instance.provider)
        resources += [f"  cloud: {cloud}"] if cloud else []
        resources += [f"  instance_type: {json.dumps(instance.name)}"]
        spot = best.price is not None and best.price.spot
        resources += [f"  use_spot: {str(spot).lower()}"]
        region = None if best.price is None else best.price.region
        resources += [f"  region: {json.dumps(region)}"] if region else []
    elif best.candidate is not None:
        resources += [f"  accelerators: {json.dumps(f'{best.candidate.setting.device}:{each}')}"]
    guard = "" if minutes is None else f"timeout {60 * minutes}s "
    unknown = [] if minutes is not None else [
        "  # No time limit: the error of the estimate is not known."
    ]  # fmt: skip
    lines = [
        *(f"# {line}" for line in _facts(result, best)),
        f"name: {_name(result)}",
        "resources:",
        *resources,
        f"num_nodes: {machines}",
        "run: |",
        *unknown,
        '  head_address=$(echo "$SKYPILOT_NODE_IPS" | head -n 1)',
        f"  # {_HERE}.",
        f"  {guard}torchrun --nnodes={machines} --nproc-per-node={each} \\",
        '    --node-rank="$SKYPILOT_NODE_RANK" --master-addr="$head_address" \\',
        f"    --master-port={_PORT} {shlex.quote(_COMMAND)}",
    ]
    return "\n".join(lines) + "\n"


FORMS: Mapping[str, Callable[[PlanResult, Offer], str]] = MappingProxyType(
    {"slurm": _slurm, "kueue": _kueue, "skypilot": _skypilot}
)
