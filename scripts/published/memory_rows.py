"""Make the table of published memory: datasets/runs/published/memory_rows.csv.gz.

    FOLDER of gathered tables, datasets/runs/published/pytorch_rows.csv.gz -> memory_rows.csv.gz

    python -m scripts.published.memory_rows FOLDER [--out datasets/runs/published]

Every source's rows with a known job are taken; of the perceptrons every seventh, by size.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from driple.errors import DripleError
from driple.runs.published_runs import TRAINING_FILE, read_published
from scripts.fits.memory_rows import MEMORY_FILE, write_memory_runs
from scripts.published.rows.cells import read_raw
from scripts.published.rows.memory import fine_tuning_rows, mlp_rows, step_rows, timm_rows

_PUBLISHED = Path(__file__).resolve().parents[2] / "datasets" / "runs" / "published"
_EVERY_MLP = 7


def make(folder: Path, out: Path) -> None:
    """Write the table into `out`, which holds the cleaned rows and the folds."""
    raw = read_raw(folder / "training_rows.csv.gz")
    cleaned = read_published(out / TRAINING_FILE, usable_only=False)
    with (out / "folds.csv").open(encoding="utf-8", newline="") as stream:
        folds = {row["family"]: int(row["fold"]) for row in csv.DictReader(stream)}
    models = timm_rows(cleaned, folds)
    rows = [
        *step_rows(cleaned, raw, folds),
        *fine_tuning_rows(
            read_raw(folder / "memory_fit.csv.gz"),
            [row for row in raw if row["source"] == "litgpt"],
            folds,
        ),
        *mlp_rows(read_raw(folder / "mlp_memory_utilisation.csv.gz"), _EVERY_MLP),
        *models,
    ]
    write_memory_runs(out / MEMORY_FILE, rows)
    for (source, held), count in sorted(Counter((r.source, r.is_held_out) for r in rows).items()):
        print(f"{source}: {count} rows {'held out' if held else 'to fit'}")


def main(argv: Sequence[str] | None = None) -> int:
    """Make the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="gathered tables")
    parser.add_argument("--out", type=Path, default=_PUBLISHED, help="folder of published tables")
    given = parser.parse_args(argv)
    try:
        make(given.folder, given.out)
    except DripleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
