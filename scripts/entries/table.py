"""Rows of the benchmark, and the files of entries.

datasets/runs/published -> rows -> seconds by id -> datasets/runs/benchmark/entries/NAME.csv.gz
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from driple.errors import ConfigError
from driple.files import atomic_write
from driple.runs.measured_run import MeasuredRun
from scripts.fits.heldout import ROOT, shipped

__all__ = [
    "BENCHMARK",
    "ENTRIES",
    "Entry",
    "benchmark_rows",
    "packed_csv",
    "write_csv",
    "write_entry",
]

BENCHMARK = ROOT / "datasets" / "runs" / "benchmark"
ENTRIES = BENCHMARK / "entries"
_DIGITS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """Predictions of a predictor that is not fitted to each split.

    Attributes:
        name: of its files.
        seconds: of a step, by id of the row.
        refused: why there is no prediction, by id.
        split: that the predictions are of; empty if the predictor learns from no row.
    """

    name: str
    seconds: Mapping[str, float]
    refused: Mapping[str, str] = field(default_factory=dict)
    split: str = ""


def benchmark_rows() -> tuple[MeasuredRun, ...]:
    """Training rows of the benchmark, in the order of their table."""
    return shipped(training=True).rows


def write_entry(entry: Entry, rows: Sequence[MeasuredRun]) -> None:
    """Write the predictions, and how many rows were refused for which reason.

    Raises:
        ConfigError: a file cannot be written, or a row is neither predicted nor refused.
    """
    lost = [row.id for row in rows if row.id not in entry.seconds and row.id not in entry.refused]
    if lost:
        raise ConfigError(f"{entry.name} neither predicts nor refuses row {lost[0]}")
    lines = [
        (row.id, entry.split, f"{entry.seconds[row.id]:.{_DIGITS}g}")
        for row in rows
        if row.id in entry.seconds
    ]
    write_csv(ENTRIES / f"{entry.name}.csv.gz", [("id", "split", "seconds"), *lines])
    reasons = Counter(entry.refused.values())
    counts = [(why, str(number)) for why, number in sorted(reasons.items())]
    write_csv(ENTRIES / f"{entry.name}-refused.csv", [("reason", "rows"), *counts])


def packed_csv(lines: Sequence[Sequence[str]]) -> bytes:
    """A packed CSV file; the same lines give the same bytes."""
    return gzip.compress(_csv(lines), compresslevel=9, mtime=0)


def _csv(lines: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode()


def write_csv(file: Path, lines: Sequence[Sequence[str]]) -> None:
    """Write a CSV file, packed if its name ends so.

    Raises:
        ConfigError: it cannot be written.
    """
    data = packed_csv(lines) if file.suffix == ".gz" else _csv(lines)
    file.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(file, data, error=ConfigError)
