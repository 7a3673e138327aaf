"""Steps that we measured ourselves on a GPU: time, utilisation and memory of each.

    datasets/runs/measured-h100/rows.csv.gz -> ProfiledRun, ...

Their whole times, utilisation and memory check what was fitted on published rows; the fit sees what
their kernels took, by groups of ops (`measured_kernels`). `scripts/runs/measure_gpu.py` measures,
`scripts/runs/gpu_tables.py` makes the tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from driple.checks import check_choice, check_whole
from driple.errors import ConfigError
from driple.runs.measured_run import TASKS, MeasuredRun
from driple.runs.tables import read_records
from scripts.fits.writing import write_records

__all__ = [
    "FACTS",
    "MEASURED",
    "MEASURED_FILE",
    "MEASURED_FOLDER",
    "MEASURED_STEPS_FILE",
    "ProfiledRun",
    "measured_beside",
    "read_profiled_runs",
    "write_profiled_runs",
]

# Columns of `measured-h100/rows.csv.gz` that are named otherwise than fields.
MEASURED = {"job": "name", "batch_size": "batch", "activation_checkpointing": "checkpointing"}
MEASURED_FOLDER = "measured-h100"  # beside the folder of published tables
MEASURED_FILE, MEASURED_STEPS_FILE = "rows.csv.gz", "memory_steps.xz"
_CHECKPOINTING = ("none", "full")  # in the table 0 and 1
# In the order of the columns.
FACTS = (
    "job", "family", "batch_size", "size", "precision", "task", "optimizer", "channels_last",
    "activation_checkpointing", "compiled", "ran", "steps", "step_s", "step_p10_s", "step_p90_s",
    "host_s", "busy_s", "kernels", "utilisation_pct", "memory_utilisation_pct", "clock_mhz",
    "allocated_bytes", "reserved_bytes", "kept_bytes", "device_bytes", "parameters",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class ProfiledRun(MeasuredRun):
    """One job on one device; a number is None (a time NaN) where it did not run.

    Attributes:
        job: library (`tv` for torchvision, `timm`, `hf` for transformers) and model.
        batch_size: samples.
        size: side of an image, or tokens of a sample.
        activation_checkpointing: `full` where transformers' own was on, else `none`.
        ran: whether it ran; else it ran out of memory.
        steps: that were timed.
        step_p10_s: 10th percentile of the time of a step, of which `step_s` is the median.
        step_p90_s: its 90th percentile.
        host_s: time in which the CPU had launched a step.
        busy_s: time of a step in which a kernel ran, by the profiler; None if it was not profiled.
        kernels: in a step.
        memory_utilisation_pct: mean of NVML's `utilization.memory` over the timed steps.
        clock_mhz: mean clock of the SMs.
        allocated_bytes: `torch.cuda.max_memory_allocated`, after the first three steps.
        reserved_bytes: `torch.cuda.max_memory_reserved`, likewise.
        kept_bytes: allocated between two steps.
        device_bytes: memory in use by NVML, the driver's included.
        parameters: of the model.
    """

    batch_size: int
    size: int
    ran: bool
    steps: int | None = None
    step_p10_s: float | None = None
    step_p90_s: float | None = None
    host_s: float | None = None
    busy_s: float | None = None
    kernels: float | None = None
    memory_utilisation_pct: float | None = None
    clock_mhz: float | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    kept_bytes: int | None = None
    device_bytes: int | None = None
    parameters: int | None = None

    def __post_init__(self) -> None:
        check_choice("task", self.task, TASKS)
        check_whole("batch_size", self.batch_size, 1)
        if self.ran and self.allocated_bytes is None:
            raise ConfigError(f"{self.key}: a job that ran states its allocated memory")

    @property
    def key(self) -> str:
        """Name of its step in the store of steps."""
        options = (
            ("channels_last", self.channels_last),
            ("checkpointing", self.is_checkpointed),
            ("compiled", self.compiled),
        )
        flags = [name for name, is_on in options if is_on]
        words = (self.job, self.size, self.task, self.precision, self.optimizer or "-", *flags)
        return f"{' '.join(map(str, words))} b{self.batch_size}"

    @property
    def is_checkpointed(self) -> bool:
        """Whether activations are computed again."""
        return self.activation_checkpointing == "full"

    @property
    def has_images(self) -> bool:
        """Whether its samples are images."""
        return not self.job.startswith("hf:")


def measured_beside(tables: Path) -> Path | None:
    """The folder of what we measured, beside that of published tables; None if there is none."""
    folder = tables.resolve().parent / MEASURED_FOLDER
    return folder if folder.exists() else None


def read_profiled_runs(file: Path) -> list[ProfiledRun]:
    """Read the table.

    Raises:
        ConfigError: it cannot be read, or has wrong cells.
    """
    runs = read_records(file, ProfiledRun, FACTS, MEASURED)
    return [
        replace(run, activation_checkpointing=_CHECKPOINTING[run.activation_checkpointing == "1"])
        for run in runs
    ]


def write_profiled_runs(file: Path, runs: Iterable[ProfiledRun]) -> None:
    """Write a table that `read_profiled_runs` reads; the same runs give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    as_stored = (
        replace(run, activation_checkpointing=str(int(run.is_checkpointed))) for run in runs
    )
    write_records(file, FACTS, as_stored, MEASURED)
