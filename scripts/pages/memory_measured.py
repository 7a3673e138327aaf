"""Memory of steps that we measured, datasets/runs/measured-h100 and -h200, against estimates.

rows.csv.gz, memory_steps.xz, MemoryCalibration -> tables of scripts/studies/memory/published

Nothing was fitted on these rows. A row is one run, and all weigh the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
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
from scripts.studies.kit.written import Table

_DATASETS = Path(__file__).resolve().parents[2] / "datasets"
FOLDERS = {
    "H100": _DATASETS / "runs" / "measured-h100",
    "H200": _DATASETS / "runs" / "measured-h200",
}
_NUMBERS = (
    ("allocated", "allocated", "allocated_bytes"),
    ("reserved", "reserved", "reserved_bytes"),
    ("device", "device_total", "device_bytes"),
)
NOT_COMPILED = "all that are not compiled"
_FAR = 0.05  # errors beyond it are listed one by one
_KINDS: Sequence[tuple[str, Callable[[ProfiledRun], bool]]] = (
    (NOT_COMPILED, lambda row: not row.compiled),
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
    estimate: MemoryEstimate

    def error(self, number: str, measured: str) -> float:
        """Relative error of an estimate."""
        estimate, truth = getattr(self.estimate, number), getattr(self.row, measured)
        return float(estimate.value / truth - 1.0)


def _is_plain(row: ProfiledRun) -> bool:
    return row.task == "train" and not row.compiled and not row.is_checkpointed


def checked(known: MemoryCalibration, device: str = "H100") -> tuple[list[Checked], int]:
    """Rows of a device with their estimates, and how many rows have no step."""
    rows = read_profiled_runs(FOLDERS[device] / MEASURED_FILE)
    store = MemoryStore.open(FOLDERS[device] / MEASURED_STEPS_FILE)
    place = MemoryPlace.of(Setting.parse(f"1x{device}"))
    pairs = [
        Checked(row=row, estimate=memory_of_step(line.at(row.batch_size), place, known))
        for row in rows
        if (line := store.steps.get(row.key)) is not None
    ]
    return pairs, len(rows) - len(pairs)


def measured_tables(known: MemoryCalibration) -> dict[str, Table]:
    """All tables, by name; each has a line for each device, number and kind of run."""
    errors, intervals, fits, far = [], [], [], []
    for device in FOLDERS:
        pairs, missing = checked(known, device)
        ran = [pair for pair in pairs if pair.row.ran]
        failed = [pair for pair in pairs if not pair.row.ran]
        plain = [pair for pair in ran if not pair.row.compiled]
        errors += [[device, *cells] for cells in _errors(ran)]
        intervals += [[device, *cells] for cells in _coverage(plain)]
        fits += [
            [device, *_answers("ran", plain)],
            [device, *_answers("ran out of memory", failed)],
            [device, "no estimate", str(missing), "", "", ""],
        ]
        far += [[device, *cells] for cells in _far(ran)]
    return {
        "measured": Table(
            ["device", "number", "kind", "runs", "median_pct", "p90_pct", "signed_median_pct"],
            errors,
        ),
        "measured_intervals": Table(["device", "number", "runs", "inside_pct", "width"], intervals),
        "measured_fits": Table(["device", "what", "runs", "yes", "likely_not", "no"], fits),
        "measured_far": Table(["device", "run", "allocated_gib", "error_pct"], far),
    }


def _errors(ran: Sequence[Checked]) -> list[list[str]]:
    lines = []
    for words, number, measured in _NUMBERS:
        for kind, wanted in _KINDS:
            errors = np.array([pair.error(number, measured) for pair in ran if wanted(pair.row)])
            if not len(errors):
                continue
            median, p90 = 100 * np.quantile(np.abs(errors), [0.5, 0.9])
            lines.append(
                [words, kind, str(len(errors)), f"{median:.1f}", f"{p90:.1f}",
                 f"{100 * np.median(errors):+.1f}"]
            )  # fmt: skip
    return lines


def _coverage(ran: Sequence[Checked]) -> list[list[str]]:
    lines = []
    for words, number, measured in _NUMBERS:
        ends = [
            (estimate.lower, getattr(pair.row, measured), estimate.upper)
            for pair in ran
            if isinstance(estimate := getattr(pair.estimate, number), Bytes)
            and estimate.lower is not None
            and estimate.upper is not None
        ]
        if not ends:
            continue
        inside = np.mean([low <= truth <= high for low, truth, high in ends])
        width = np.median([high / low for low, _, high in ends])
        lines.append([words, str(len(ends)), f"{100 * inside:.0f}", f"{width:.2f}"])
    return lines


def _answers(words: str, some: Sequence[Checked]) -> list[str]:
    counts = Counter(pair.estimate.fits for pair in some)
    return [words, str(len(some)), *(str(counts[answer]) for answer in ("yes", "likely not", "no"))]


def _far(ran: Sequence[Checked]) -> list[list[str]]:
    gib = 2.0**30
    return [
        [pair.row.key, f"{(pair.row.allocated_bytes or 0) / gib:.2f}", f"{100 * error:+.1f}"]
        for pair in ran
        if abs(error := pair.error("allocated", "allocated_bytes")) > _FAR
    ]
