"""The part of docs/memory.md on steps that we measured on GPUs: measured-h100, measured-h200.

rows.csv.gz, memory_steps.xz, MemoryCalibration -> tables

Nothing was fitted on these rows. A row is one run, and all weigh the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from driple.cluster.setting import Setting
from driple.memory.calibration import MemoryCalibration
from driple.memory.estimate import memory_of_step
from driple.memory.memory_estimate import Bytes, MemoryEstimate
from driple.memory.place import MemoryPlace
from scripts.fits.measured_gpu import (
    MEASURED_FILE,
    MEASURED_STEPS_FILE,
    ProfiledRun,
    read_profiled_runs,
)
from scripts.fits.memory_store import MemoryStore

_DATASETS = Path(__file__).resolve().parents[2] / "datasets"
FOLDERS = {
    "H100": _DATASETS / "runs" / "measured-h100",
    "H200": _DATASETS / "runs" / "measured-h200",
}
_NUMBERS = (
    ("allocated (`max_memory_allocated`)", "allocated", "allocated_bytes"),
    ("reserved (`max_memory_reserved`)", "reserved", "reserved_bytes"),
    ("the device (NVML)", "device_total", "device_bytes"),
)
_FAR = 0.05  # errors beyond it are listed one by one
_KINDS: Sequence[tuple[str, Callable[[ProfiledRun], bool]]] = (
    ("all that are not compiled", lambda row: not row.compiled),
    ("images, training", lambda row: _is_plain(row) and row.has_images),
    ("text, training", lambda row: _is_plain(row) and not row.has_images),
    ("single precision", lambda row: _is_plain(row) and row.precision in ("fp32", "tf32")),
    ("autocast", lambda row: _is_plain(row) and row.precision.startswith("amp")),
    ("half precision", lambda row: _is_plain(row) and row.precision in ("bf16", "fp16")),
    ("checkpointing", lambda row: row.is_checkpointed),
    ("forward pass", lambda row: row.task == "forward" and not row.compiled),
    ("compiled", lambda row: row.compiled),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A row and its estimate."""

    row: ProfiledRun
    made: MemoryEstimate

    def error(self, number: str, measured: str) -> float:
        """Relative error of an estimate."""
        found, truth = getattr(self.made, number), getattr(self.row, measured)
        return float(found.value / truth - 1.0)


def _is_plain(row: ProfiledRun) -> bool:
    return row.task == "train" and not row.compiled and not row.is_checkpointed


def checked(known: MemoryCalibration, device: str = "H100") -> tuple[list[Checked], int]:
    """Rows of a device with their estimates, and how many rows have no step."""
    rows = read_profiled_runs(FOLDERS[device] / MEASURED_FILE)
    store = MemoryStore.open(FOLDERS[device] / MEASURED_STEPS_FILE)
    place = MemoryPlace.of(Setting.parse(f"1x{device}"))
    found = [
        Checked(row=row, made=memory_of_step(line.at(row.batch_size), place, known))
        for row in rows
        if (line := store.steps.get(row.key)) is not None
    ]
    return found, len(rows) - len(found)


def measured_part(known: MemoryCalibration) -> str:
    """Tables of the page, device by device."""
    return "\n\n".join(_part_of(device, known) for device in FOLDERS)


def _part_of(device: str, known: MemoryCalibration) -> str:
    pairs, missing = checked(known, device)
    ran = [one for one in pairs if one.row.ran]
    plain = [one for one in ran if not one.row.compiled]
    capacity = Setting.parse(f"1x{device}").worker.memory_bytes / 1e9
    return "\n\n".join(
        [
            f"### Measured on an {device}\n\nSteps that we measured ourselves "
            f"(`datasets/{FOLDERS[device].name}`, by PyTorch's counters and NVML) on one {device} "
            f"of {capacity:.0f} GB with PyTorch 2.11. No constant was fitted on them. "
            f"{missing} of {len(pairs) + missing} rows have no estimate.",
            _table(
                ["measured", "kind", "runs", "median %", "90th %", "signed median %"],
                _errors(ran),
            ),
            "The intervals, and the answers to `fits`, of rows that are not compiled:",
            _table(["number", "runs", "within", "upper / lower end"], _coverage(plain)),
            _table(
                ["runs", "yes", "likely not", "no"],
                [_answers("ran", plain),
                 _answers("ran out of memory", [one for one in pairs if not one.row.ran])],
            ),
            f"Errors of allocated memory over {100 * _FAR:.0f} %:",
            _table(["run", "measured", "error"], _far(ran)),
        ]
    )  # fmt: skip


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _errors(ran: Sequence[Checked]) -> list[list[str]]:
    found = []
    for words, number, measured in _NUMBERS:
        for kind, wanted in _KINDS:
            errors = np.array([one.error(number, measured) for one in ran if wanted(one.row)])
            if not len(errors):
                continue
            sizes = np.abs(errors)
            cells = (np.median(sizes), np.quantile(sizes, 0.9))
            found.append(
                [words, kind, str(len(errors)), *(f"{100 * one:.1f}" for one in cells),
                 f"{100 * np.median(errors):+.1f}"]
            )  # fmt: skip
    return found


def _coverage(ran: Sequence[Checked]) -> list[list[str]]:
    found = []
    for words, number, measured in _NUMBERS:
        ends = [
            (made.lower, getattr(one.row, measured), made.upper)
            for one in ran
            if isinstance(made := getattr(one.made, number), Bytes)
            and made.lower is not None
            and made.upper is not None
        ]
        if not ends:
            continue
        inside = np.mean([low <= truth <= high for low, truth, high in ends])
        width = np.median([high / low for low, _, high in ends])
        found.append([words, str(len(ends)), f"{100 * inside:.0f} %", f"{width:.2f}"])
    return found


def _answers(words: str, some: Sequence[Checked]) -> list[str]:
    counts = Counter(one.made.fits for one in some)
    return [words, *(str(counts["yes"]), str(counts["likely not"]), str(counts["no"]))]


def _far(ran: Sequence[Checked]) -> list[list[str]]:
    gib = 2.0**30
    return [
        [one.row.key, f"{(one.row.allocated_bytes or 0) / gib:.2f} GiB", f"{100 * error:+.1f} %"]
        for one in ran
        if abs(error := one.error("allocated", "allocated_bytes")) > _FAR
    ]
