"""Rows of a result as a CSV file.

Result.rows() -> FILE.csv: a header, then a line per row; an empty cell is a number that is unknown
"""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from driple.api.results import Result
from driple.errors import ConfigError
from driple.files import atomic_write

__all__ = ["csv_text", "write_csv"]


def csv_text(result: Result) -> str:
    """The rows of a result as CSV."""
    rows = result.rows()
    names = list(dict.fromkeys(name for row in rows for name in row))
    made = StringIO()
    writer = csv.DictWriter(made, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: "" if cell is None else cell for name, cell in row.items()})
    return made.getvalue()


def write_csv(result: Result, path: Path) -> None:
    """Write the rows of a result.

    Raises:
        ConfigError: the file cannot be written.
    """
    atomic_write(path, csv_text(result).encode(), error=ConfigError)
