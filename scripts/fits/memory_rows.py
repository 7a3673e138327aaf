"""Published measurements of device memory, as cleaned and labelled rows.

    datasets/runs/published/memory_rows.csv.gz -> MemoryRun, ...

A row is a run with its largest memory, or a run that ran out of memory, with the JOB that Driple
takes and the cluster. `scripts/published/memory_rows.py` makes the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from driple.checks import check_choice, check_whole
from driple.runs.measured_run import MeasuredRun
from driple.runs.step_key import StepKey
from driple.runs.tables import read_records
from driple.schemes.registry import replica_schemes
from scripts.fits.writing import write_records

__all__ = ["GIB", "MEMORY_FILE", "MemoryRun", "read_memory_runs", "write_memory_runs"]

MEMORY_FILE = "memory_rows.csv.gz"
_COLUMNS = {  # that are named otherwise than fields
    "num_devices": "devices", "batch_size": "batch", "activation_checkpointing": "checkpointing",
    "allocated_bytes": "allocated_gib", "reserved_bytes": "reserved_gib",
    "device_bytes": "device_gib", "capacity_bytes": "capacity_gib",
}  # fmt: skip
GIB = 2.0**30
# In the order of the columns; facts in bytes stand there in GiB.
FACTS = (
    "id", "source", "date", "family", "fold", "job", "size", "precision", "optimizer",
    "activation_checkpointing", "accumulates", "capability", "library", "masters", "batch_size",
    "device", "capacity_bytes", "generation", "num_devices", "per_machine", "scheme",
    "allocated_bytes", "reserved_bytes", "device_bytes", "ran",
)  # fmt: skip
_BYTES = ("capacity_bytes", "allocated_bytes", "reserved_bytes", "device_bytes")
_SCHEMES = ("none", *replica_schemes())
_IMAGES = frozenset({"own:ssd300", "own:maskrcnn"})
_LIBRARIES = ("torch1", "torch2")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRun(MeasuredRun):
    """One run with its memory, on a cluster that no setting names.

    Attributes:
        date: as the source states it.
        fold: 0 to 9, of the family; constants are fitted on even folds.
        job: JOB of `scripts/published/models` or timm.
        size: tokens of a sample, or side of an image; 0 for the job's usual.
        precision: that of the weights as they were stored.
        accumulates: whether several passes add up their gradients.
        capability: of the device, for kernels of attention: 70 or 80; 0 without fused attention.
        library: `torch1` or `torch2`.
        masters: whether parameters in half precision have a copy in single precision.
        device: by its name in the catalogue; empty if the catalogue has none.
        capacity_bytes: memory of the device; 0 if the source does not say.
        generation: of the device's maker; empty if unknown.
        num_devices: number of devices.
        per_machine: devices of a machine.
        scheme: how the work is distributed.
        ran: whether it ran; else it ran out of memory.
    """

    date: str = ""
    fold: int = 0
    size: int = 0
    precision: str = "fp32"
    optimizer: str = "adamw"
    activation_checkpointing: str = "none"
    accumulates: bool = False
    capability: int = 80
    library: str = "torch2"
    masters: bool = False
    batch_size: int = 1
    device: str = ""
    capacity_bytes: float = 0.0
    generation: str = ""
    num_devices: int = 1
    per_machine: int = 1
    scheme: str = "none"
    ran: bool = True

    def __post_init__(self) -> None:
        check_choice("scheme", self.scheme, _SCHEMES)
        check_choice("library", self.library, _LIBRARIES)
        check_whole("batch_size", self.batch_size, 1)
        check_whole("num_devices", self.num_devices, 1)

    @property
    def key(self) -> StepKey:
        """The step that it ran; TF32 takes the same memory as single precision."""
        return StepKey(
            job=self.job,
            size=self.size,
            precision="fp32" if self.precision == "tf32" else self.precision,
            activation_checkpointing=self.activation_checkpointing,
            accumulates=self.accumulates,
            capability=self.capability,
        )

    @property
    def step(self) -> str:
        """Name of its step in the store, with optimizer and library."""
        return f"{self.key.name} {self.optimizer} {self.library}"

    @property
    def has_images(self) -> bool:
        """Whether its samples are images."""
        return self.job.startswith("timm:") or self.job in _IMAGES

    @property
    def is_held_out(self) -> bool:
        """Whether no constant is fitted on it."""
        return self.fold % 2 == 1


def read_memory_runs(file: Path) -> list[MemoryRun]:
    """Read the table.

    Raises:
        ConfigError: it cannot be read, or has wrong cells.
    """
    return [_scaled(run, GIB) for run in read_records(file, MemoryRun, FACTS, _COLUMNS)]


def write_memory_runs(file: Path, runs: Iterable[MemoryRun]) -> None:
    """Write a table that `read_memory_runs` reads; the same runs give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_records(file, FACTS, [_scaled(run, 1 / GIB) for run in runs], _COLUMNS)


def _scaled(run: MemoryRun, factor: float) -> MemoryRun:
    """The run with its bytes times a factor."""
    stated = {name: getattr(run, name) for name in _BYTES}
    return replace(
        run, **{name: value * factor for name, value in stated.items() if value is not None}
    )
