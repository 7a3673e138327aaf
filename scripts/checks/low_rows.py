"""Check products in 8 and 4 bits on published rows, traced anew, of which no fit has seen any.

    datasets/runs/published/pytorch_rows.csv.gz -> rows in fp8 and fp4 -> simulated with their
    degrees

Needs the extras for tracing. Formats are those of Transformer Engine on the device: FP8 scaled for
each tensor on Hopper, MXFP8 on Blackwell (`fp8-block`: the tables have no blocks of 32), NVFP4.
Element-wise ops are fused in NVIDIA's programs, and where the definition of a model says so.

    python -m scripts.checks.low_rows --out scripts/studies/published/low_precision_rows.csv
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from driple.catalog import device_named
from driple.runs.published_runs import PublishedRun, read_published
from scripts.checks.split_rows import ROWS, checked, split_setting
from scripts.published.models import definition_of

_LOW = ("fp8", "fp4")
_FUSES = "NVIDIA"  # sources whose programs fuse element-wise ops


def main(argv: list[str] | None = None) -> int:
    """Print the errors of each source and device; write one line a row to --out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=Path, default=ROWS, help="table of published rows")
    parser.add_argument("--out", type=Path, help="table to write: a line for each row")
    parser.add_argument("--source", default="", help="rows of sources that begin so")
    given = parser.parse_args(argv)
    rows = low_rows(read_published(given.rows))
    predictions = checked([row for row in rows if row.source.startswith(given.source)])
    groups = defaultdict(list)
    for row, seconds in predictions:
        for group in ((row.source, row.device), ("all", "")):
            groups[group].append(seconds / row.step_s)
    for (source, device), ratios in sorted(groups.items()):
        ratio = np.array(ratios)
        median, p90 = 100 * np.quantile(abs(ratio - 1), [0.5, 0.9])
        print(f"{source:24} {device:9} {len(ratio):3} rows  median {median:5.1f} %  "
              f"90th percentile {p90:5.1f} %  ratio {np.median(ratio):.2f}")  # fmt: skip
    if given.out:
        with given.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["id", "source", "job", "precision", "setting", "published_s",
                             "simulated_s"])  # fmt: skip
            for row, seconds in predictions:
                writer.writerow([row.id, row.source, row.job, row.precision, split_setting(row),
                                 row.step_s, f"{seconds:.4g}"])  # fmt: skip
    return 0


def low_rows(rows: Sequence[PublishedRun]) -> list[PublishedRun]:
    """Rows in 8 and 4 bits with a time, a model and a known device, in the formats they ran in."""
    return [
        replace(row, precision=_format(row), compiled=_fuses(row))
        for row in rows
        if row.precision in _LOW and row.step_s > 0 and row.device and row.job.startswith("own:")
        and row.task == "train" and not row.unused_why.startswith(("duplicate", "device of no"))
    ]  # fmt: skip


def _format(row: PublishedRun) -> str:
    if row.precision == "fp4":
        return "nvfp4"
    is_blackwell = device_named(row.device).architecture.name.startswith("Blackwell")
    return "fp8-block" if is_blackwell else "fp8"


def _fuses(row: PublishedRun) -> bool:
    return row.compiled or definition_of(row.job).compiled or row.source.startswith(_FUSES)


if __name__ == "__main__":
    raise SystemExit(main())
