"""Tables of pages and of results."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from driple.errors import ConfigError
from driple.files import atomic_write


def markdown(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False
) -> list[str]:
    """Lines of a table of a page.

    Args:
        head: names of the columns.
        rows: cells, a row as long as the head.
        right: align all columns but the first to the right.
    """
    rule = "|---" + ("|---:" if right else "|---") * (len(head) - 1) + "|"
    return [_line(head), rule, *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def least(values: Mapping[str, float]) -> str:
    """Name of the least value, the first of equal ones; empty without any."""
    return min(values, key=values.__getitem__, default="")


def cells(line: str) -> list[str]:
    """Cells of a line of a table."""
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file with a head."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of equal columns as a CSV file; it appears whole or not at all."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(path, text.getvalue().encode(), error=ConfigError)
