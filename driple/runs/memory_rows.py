"""Published measurements of device memory, as cleaned and labelled rows.

    datasets/published/memory_rows.csv.gz -> MemoryRow, ...

A row is a run with its largest memory, or a run that ran out of memory, with the JOB that Driple
takes and the cluster. `scripts/make_memory_rows.py` makes the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from driple.runs.published_rows import read_packed_table, write_packed_table
from driple.runs.step_key import StepKey
from driple.checks import check_choice, check_whole
from driple.schemes.registry import replica_schemes

__all__ = ["MEMORY_FILE", "MEMORY_KINDS", "MemoryRow", "read_memory_rows", "write_memory_rows"]

MEMORY_FILE = "memory_rows.csv.gz"
MEMORY_KINDS = ("allocated", "reserved", "device")
_SCHEMES = ("none", *replica_schemes())
_IMAGES = frozenset({"own:ssd300", "own:maskrcnn"})
_LIBRARIES = ("torch1", "torch2")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRow:
    """One run.

    Attributes:
        id: unique in the table.
        source: who published it.
        date: as the source states it.
        family: of models that are held out together.
        fold: 0 to 9, of the family; constants are fitted on even folds.
        job: JOB of `scripts/published_models` or timm.
        size: tokens of a sample, or side of an image; 0 for the job's usual.
        precision: as `--precision`; that of the weights as they were stored.
        optimizer: as `--optimizer`.
        checkpointing: as `--activation-checkpointing`.
        accumulates: whether several passes add up their gradients.
        capability: of the device, for kernels of attention: 70 or 80; 0 without fused attention.
        library: `torch1` or `torch2`.
        masters: whether parameters in half precision have a copy in single precision.
        batch: samples of a device in a pass.
        device: by its name in the catalogue; empty if the catalogue has none.
        capacity_gib: memory of the device; 0 if the source does not say.
        generation: of the device's maker; empty if unknown.
        devices: number of devices.
        per_machine: devices of a machine.
        scheme: how the work is distributed.
        allocated_gib: largest bytes of tensors, by PyTorch.
        reserved_gib: largest bytes that PyTorch's allocator held.
        device_gib: largest memory in use, by NVML.
        ran: whether it ran; else it ran out of memory.
    """

    id: str
    source: str
    date: str = ""
    family: str = ""
    fold: int = 0
    job: str = ""
    size: int = 0
    precision: str = "fp32"
    optimizer: str = "adamw"
    checkpointing: str = "none"
    accumulates: bool = False
    capability: int = 80
    library: str = "torch2"
    masters: bool = False
    batch: int = 1
    device: str = ""
    capacity_gib: float = 0.0
    generation: str = ""
    devices: int = 1
    per_machine: int = 1
    scheme: str = "none"
    allocated_gib: float | None = None
    reserved_gib: float | None = None
    device_gib: float | None = None
    ran: bool = True

    def __post_init__(self) -> None:
        check_choice("scheme", self.scheme, _SCHEMES)
        check_choice("library", self.library, _LIBRARIES)
        check_whole("batch", self.batch, 1)
        check_whole("devices", self.devices, 1)

    @property
    def key(self) -> StepKey:
        """The step that it ran; TF32 takes the same memory as single precision."""
        return StepKey(
            job=self.job,
            size=self.size,
            precision="fp32" if self.precision == "tf32" else self.precision,
            checkpointing=self.checkpointing,
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


_COLUMNS = tuple(one.name for one in fields(MemoryRow))
_NUMBERS = ("allocated_gib", "reserved_gib", "device_gib")
_WHOLE = ("fold", "size", "capability", "batch", "devices", "per_machine")
_FLAGS = ("accumulates", "masters", "ran")


def read_memory_rows(file: Path) -> list[MemoryRow]:
    """Read the table.

    Raises:
        ConfigError: it cannot be read, or has wrong cells.
    """
    return read_packed_table(file, _COLUMNS, _row, words="memory rows")


def _row(line: Mapping[str, str]) -> MemoryRow:
    values: dict[str, Any] = {name: _parsed(name, text) for name, text in line.items()}
    return MemoryRow(**values)


def _parsed(name: str, text: str) -> object:
    if name in _NUMBERS:
        return float(text) if text else None
    if name in _WHOLE:
        return int(text)
    if name in _FLAGS:
        return text == "1"
    return float(text) if name == "capacity_gib" else text


def write_memory_rows(file: Path, rows: Iterable[MemoryRow]) -> None:
    """Write a table that `read_memory_rows` reads; the same rows give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_packed_table(file, _COLUMNS, rows)
