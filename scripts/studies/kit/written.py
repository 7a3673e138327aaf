"""Files that a program writes as a whole: all of them in one run, or a check that they are current.

{path: text, ...}  --written-->  files, or the names of those that are not up to date
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from driple.errors import DripleError
from driple.files import atomic_write

__all__ = ["Table", "csv_files", "options_of", "stale", "written"]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of cells as text.

    Attributes:
        head: names of the columns; `_pct` ends those in percent.
        rows: cells, a row as long as the head.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]

    def csv(self) -> str:
        """The text of a CSV file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows(self.rows)
        return text.getvalue()

    def markdown(self) -> str:
        """A table of a page, columns of numbers to the right, without spaces beside the cells."""
        columns = zip(*self.rows, strict=True)
        rule = ["--:" if _is_of_numbers(column) else "---" for column in columns]
        lines = [self.head, rule, *self.rows]
        return "\n".join(f"|{'|'.join(line)}|" for line in lines)


def _is_of_numbers(column: Iterable[str]) -> bool:
    return all(cell.strip("*")[:1].isdigit() for cell in column if cell)


def csv_files(folder: Path, tables: Mapping[str, Table]) -> dict[Path, str]:
    """Path and text of a CSV file for each named table."""
    return {folder / f"{name}.csv": table.csv() for name, table in tables.items()}


def stale(files: Mapping[Path, str]) -> list[Path]:
    """Files that are missing or differ from their text."""
    return [
        file
        for file, text in files.items()
        if not file.is_file() or file.read_text(encoding="utf-8") != text
    ]


def options_of(about: str | None) -> argparse.ArgumentParser:
    """Options of a program that writes such files: `--check`.

    Args:
        about: its docstring, whose first line the help shows.
    """
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is not up to date"
    )
    return parser


def written(files: Mapping[Path, str], *, check: bool, program: str) -> int:
    """Write files, or name on stderr those that are not up to date; the exit status.

    Args:
        files: text of each.
        check: write nothing.
        program: that writes them, as one types it.
    """
    if check:
        old = stale(files)
        for file in old:
            print(f"{file} is not up to date: run {program}", file=sys.stderr)
        return int(bool(old))
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(file, text.encode(), error=DripleError)
    return 0
