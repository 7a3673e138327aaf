"""Write the rows of the benchmark and the part of each split that a row belongs to.

    python -m scripts.entries.rows [--check]

rows of datasets/runs/published with a stored step -> datasets/runs/benchmark/rows.csv.gz
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.contest import HELD_OUT
from driple.runs.validation.splits import parts_of
from scripts.entries.table import BENCHMARK, packed_csv, write_csv
from scripts.fits.heldout import shipped
from scripts.studies.kit.written import options_of

__all__ = ["COLUMNS", "FILE", "lines_of", "main"]

FILE = BENCHMARK / "rows.csv.gz"
COLUMNS = ("id", "task", *HELD_OUT)


def lines_of(rows: Sequence[MeasuredRun], folds: Mapping[str, int]) -> list[tuple[str, ...]]:
    """Id and task of each row, and the part of each split that it is held out with."""
    part_of: dict[str, list[str]] = {}
    for split in HELD_OUT:
        part_of[split] = [""] * len(rows)
        for part in parts_of(rows, split, folds):
            for place in part.test:
                part_of[split][place] = part.name
    return [
        (row.id, row.task, *(part_of[split][place] for split in HELD_OUT))
        for place, row in enumerate(rows)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file, or say that it is not up to date."""
    check = options_of(__doc__).parse_args(argv).check
    everything = shipped(training=False)
    lines = [COLUMNS, *lines_of(everything.rows, everything.folds)]
    if check:
        stale = not FILE.is_file() or FILE.read_bytes() != packed_csv(lines)
        if stale:
            print(f"{FILE} is not up to date: run python -m scripts.entries.rows", file=sys.stderr)
        return int(stale)
    write_csv(FILE, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
