"""Rows of a result as a CSV or Parquet file.

    Result.rows() -> FILE.csv: a header, then a line per row; an empty cell is an unknown number
                  -> FILE.parquet: typed columns; a null is an unknown number

Both have the same names of columns, which hold the units.
"""

from __future__ import annotations

import csv
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from driple.dataset.tables import require_pyarrow
from driple.errors import ConfigError
from driple.files import atomic_write

if TYPE_CHECKING:
    from driple.api.results import Cell, Result

__all__ = ["check_table", "csv_text", "parquet_bytes", "write_table"]

_PARQUET = ".parquet"


def check_table(path: Path) -> None:
    """Refuse a name of another form, and Parquet without pyarrow, before any work.

    Raises:
        ConfigError: neither .csv nor .parquet.
        MissingExtraError: pyarrow is not installed.
    """
    if path.suffix.lower() not in {".csv", _PARQUET}:
        raise ConfigError(
            f"--output {path}: rows are written as .csv or .parquet; give such a name"
        )
    if path.suffix.lower() == _PARQUET:
        require_pyarrow("tables in Parquet")


def csv_text(result: Result) -> str:
    """The rows of a result as CSV."""
    rows = result.rows()
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: "" if cell is None else cell for name, cell in row.items()})
    return text.getvalue()


def parquet_bytes(result: Result) -> bytes:
    """The rows of a result as Parquet.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    pyarrow = require_pyarrow("tables in Parquet")
    from pyarrow import parquet

    rows = result.rows()
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: _typed([row.get(name) for row in rows]) for name in names}
    content = BytesIO()
    parquet.write_table(pyarrow.table(columns), content)
    return content.getvalue()


def _typed(cells: list[Cell]) -> list[Cell]:
    """Cells of one type: numbers as floats where one is, and text where one is."""
    if any(isinstance(cell, str) for cell in cells):
        return [None if cell is None else str(cell) for cell in cells]
    if any(isinstance(cell, float) for cell in cells):
        return [None if cell is None else float(cell) for cell in cells]
    return cells


def write_table(result: Result, path: Path) -> None:
    """Write the rows of a result, in the form that the name ends in.

    Raises:
        ConfigError: another form, or the file cannot be written.
        MissingExtraError: pyarrow is needed and not installed.
    """
    check_table(path)
    is_parquet = path.suffix.lower() == _PARQUET
    data = parquet_bytes(result) if is_parquet else csv_text(result).encode()
    atomic_write(path, data, error=ConfigError)
