"""Cells of the gathered tables: numbers, dates and words, as the sources write them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from pathlib import Path

from driple.errors import ConfigError

__all__ = ["Raw", "number", "read_raw", "whole", "whole_or"]

Raw = Mapping[str, str]


def read_raw(file: Path) -> list[dict[str, str]]:
    """Rows of a gathered table, with their number in it under the name `row`.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        with gzip.open(file, "rt", encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream, strict=True))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"cannot read the gathered table {file}: {error}") from error
    for index, row in enumerate(rows):
        if None in row or None in row.values():
            raise ConfigError(f"{file}, line {index + 2} has another number of cells")
        row["row"] = str(index)
    return rows


def number(text: str) -> float | None:
    """The number of a cell; None if it is empty or in words."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def whole(text: str) -> int | None:
    """The whole number of a cell above zero; None if it has none."""
    value = number(text)
    return int(value) if value is not None and value >= 1 and value == int(value) else None


def whole_or(text: str, default: int) -> int:
    """The whole number of a cell above zero, or the default."""
    return whole(text) or default
