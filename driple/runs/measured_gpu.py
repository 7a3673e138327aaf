"""Steps that we measured ourselves on a GPU: time, utilisation and memory of each.

    datasets/measured-h100/rows.csv.gz -> MeasuredRow, ...

Their whole times, utilisation and memory check what was fitted on published rows; the fit sees what
their kernels took, by groups of ops (`measured_kernels`). `scripts/measure_gpu.py` measures,
`scripts/make_measured_gpu.py` makes the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

from driple.runs.published_rows import read_packed_table, write_packed_table
from driple.checks import check_choice, check_whole
from driple.errors import ConfigError

__all__ = ["MEASURED_FILE", "MEASURED_FOLDER", "MEASURED_STEPS_FILE", "MeasuredRow",
           "measured_beside", "read_measured_rows", "write_measured_rows"]  # fmt: skip

MEASURED_FOLDER = "measured-h100"  # beside the folder of published tables
MEASURED_FILE, MEASURED_STEPS_FILE = "rows.csv.gz", "memory_steps.xz"


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredRow:
    """One job on one device; numbers are None where it did not run.

    Attributes:
        name: library (`tv` for torchvision, `timm`, `hf` for transformers) and model.
        family: of the model, as published rows name it.
        batch: samples.
        size: side of an image, or tokens of a sample.
        precision: as `--precision`.
        task: `train` or `forward`.
        optimizer: as `--optimizer`; empty for a forward pass.
        channels_last: whether model and images were in PyTorch's channels-last format.
        checkpointing: whether transformers' own activation checkpointing was on.
        compiled: whether `torch.compile` compiled it.
        ran: whether it ran; else it ran out of memory.
        steps: that were timed.
        step_s: median time of a step, by the GPU's events.
        step_p10_s: its 10th percentile.
        step_p90_s: its 90th percentile.
        host_s: time in which the CPU had launched a step.
        busy_s: time of a step in which a kernel ran, by the profiler; None if it was not profiled.
        kernels: in a step.
        utilisation_pct: mean of NVML's `utilization.gpu` over the timed steps.
        memory_utilisation_pct: mean of its `utilization.memory`.
        clock_mhz: mean clock of the SMs.
        allocated_bytes: `torch.cuda.max_memory_allocated`, after the first three steps.
        reserved_bytes: `torch.cuda.max_memory_reserved`, likewise.
        kept_bytes: allocated between two steps.
        device_bytes: memory in use by NVML, the driver's included.
        parameters: of the model.
    """

    name: str
    family: str
    batch: int
    size: int
    precision: str
    task: str
    optimizer: str
    channels_last: bool
    checkpointing: bool
    compiled: bool
    ran: bool
    steps: int | None = None
    step_s: float | None = None
    step_p10_s: float | None = None
    step_p90_s: float | None = None
    host_s: float | None = None
    busy_s: float | None = None
    kernels: float | None = None
    utilisation_pct: float | None = None
    memory_utilisation_pct: float | None = None
    clock_mhz: float | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    kept_bytes: int | None = None
    device_bytes: int | None = None
    parameters: int | None = None

    def __post_init__(self) -> None:
        check_choice("task", self.task, ("train", "forward"))
        check_whole("batch", self.batch, 1)
        if self.ran and self.allocated_bytes is None:
            raise ConfigError(f"{self.key}: a job that ran states its allocated memory")

    @property
    def key(self) -> str:
        """Name of its step in the store of steps."""
        flags = [name for name in ("channels_last", "checkpointing", "compiled")
                 if getattr(self, name)]  # fmt: skip
        words = (self.name, self.size, self.task, self.precision, self.optimizer or "-", *flags)
        return f"{' '.join(map(str, words))} b{self.batch}"

    @property
    def has_images(self) -> bool:
        """Whether its samples are images."""
        return not self.name.startswith("hf:")


_COLUMNS = tuple(one.name for one in fields(MeasuredRow))
_TYPES = MappingProxyType(get_type_hints(MeasuredRow))


def measured_beside(tables: Path) -> Path | None:
    """The folder of what we measured, beside that of published tables; None if there is none."""
    folder = tables.resolve().parent / MEASURED_FOLDER
    return folder if folder.exists() else None


def read_measured_rows(file: Path) -> list[MeasuredRow]:
    """Read the table.

    Raises:
        ConfigError: it cannot be read, or has wrong cells.
    """
    return read_packed_table(file, _COLUMNS, _row, words="measured rows")


def _row(line: Mapping[str, str]) -> MeasuredRow:
    values: dict[str, Any] = {name: _parsed(name, text) for name, text in line.items()}
    return MeasuredRow(**values)


def _parsed(name: str, text: str) -> object:
    kind = _TYPES[name]
    if kind is str:
        return text
    if kind is bool:
        return text == "1"
    if not text and kind is not int:
        return None
    return int(text) if kind in (int, int | None) else float(text)


def write_measured_rows(file: Path, rows: Iterable[MeasuredRow]) -> None:
    """Write a table that `read_measured_rows` reads; the same rows give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_packed_table(file, _COLUMNS, rows)
