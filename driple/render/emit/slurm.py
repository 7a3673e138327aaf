"""A batch script for sbatch, and the line of it that a submit filter reads.

`--time` is the upper end of the interval, `--time-min` the expected time: Slurm may lower the limit
to it if the job can start earlier then.
"""

from __future__ import annotations

from pathlib import Path

from driple.render.emit.scheduled_job import HERE, MASTER_PORT, SCRIPT, ScheduledJob

__all__ = ["ANSWER_COLUMNS", "SUBMIT_FILTER", "answer_line", "batch_script"]

SUBMIT_FILTER = Path(__file__).with_name("job_submit.lua")
"""The submit filter: install it as `job_submit.lua` beside slurm.conf."""
ANSWER_COLUMNS = ("name", "nodes", "gpus_per_node", "time_minutes", "time_min_minutes", "mem_mb")
_DAY, _HOUR = 24 * 60, 60
_UNKNOWN = "-"


def batch_script(job: ScheduledJob) -> str:
    """A script for sbatch."""
    limit = job.limit_minutes
    times = (
        [
            f"#SBATCH --time={_slurm_time(limit)}",
            f"#SBATCH --time-min={_slurm_time(min(job.expected_minutes, limit))}",
        ]
        if limit is not None
        else [
            "##SBATCH --time=FILL_IN  (the error of the estimate is not known)",
            f"#SBATCH --time-min={_slurm_time(job.expected_minutes)}",
        ]
    )
    machines, each = job.num_machines, job.num_devices
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={job.name}",
        f"#SBATCH --nodes={machines}",
        f"#SBATCH --ntasks={machines}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={each}",
        *([f"#SBATCH --cpus-per-task={job.cpus}"] if job.cpus else []),
        "#SBATCH --mem=0",
        *times,
        "#SBATCH --output=%x-%j.log",
        "",
        *(f"# {line}" for line in job.facts),
        "# --mem=0 is all memory of a machine: what data loaders take there is not estimated.",
        "# --time-min is the expected time: keep it if your script writes checkpoints.",
        f"# The devices are {job.device.lower()}; where they have names: "
        f"--gpus-per-node=NAME:{each}.",
        "",
        "set -euo pipefail",
        'head_node=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f"# {HERE}.",
        f'srun torchrun --nnodes={machines} --nproc-per-node={each} --rdzv-id="$SLURM_JOB_ID" \\',
        f'  --rdzv-backend=c10d --rdzv-endpoint="$head_node:{MASTER_PORT}" {SCRIPT}',
    ]
    return "\n".join(lines) + "\n"


def answer_line(job: ScheduledJob) -> str:
    """The line of a file of answers, under a comment that names its columns."""
    limit = job.limit_minutes
    memory = None if job.instance is None else job.host_memory_mb
    cells = [
        job.name,
        str(job.num_machines),
        str(job.num_devices),
        _UNKNOWN if limit is None else str(limit),
        str(job.expected_minutes if limit is None else min(job.expected_minutes, limit)),
        _UNKNOWN if memory is None else str(int(0.9 * memory)),
    ]
    return "# " + "\t".join(ANSWER_COLUMNS) + "\n" + "\t".join(cells) + "\n"


def _slurm_time(minutes: int) -> str:
    """Minutes as Slurm writes them: days-hours:minutes:seconds."""
    days, rest = divmod(minutes, _DAY)
    hours, left = divmod(rest, _HOUR)
    return f"{days}-{hours:02d}:{left:02d}:00"
