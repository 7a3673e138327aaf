"""CSV tables that anybody may write: read with the line and the column of whatever is wrong.

FILE.csv or FILE.csv.gz --read_table--> Line, Line, ... --> a text, a number, a choice of a column
names of its columns, known names --ignored_columns--> those that are not read
"""

from __future__ import annotations

import csv
import difflib
import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from driple.errors import ConfigError

__all__ = ["Line", "ignored_columns", "read_table"]

_MOST_LINES = 1_000_000
_MOST_CHARACTERS = 10_000  # of one cell
_ALIKE = 0.75  # precison is precision misspelt, notes is not mode
_LEAST_PREFIX = 3  # batch and seq stand for batch_size and seq_len
_MOST_NAMED = 10  # columns that a remark lists
_YES = frozenset({"1", "true", "yes", "on"})
_NO = frozenset({"", "0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table.

    Attributes:
        file: of the table.
        number: of the line in the file; the header is line 1.
        cells: text of each column, without spaces around it.
    """

    file: str
    number: int
    cells: dict[str, str]

    @property
    def where(self) -> str:
        """File and line, as errors name them."""
        return f"{self.file}, line {self.number}"

    def error(self, column: str, problem: str) -> ConfigError:
        """The error that names file, line and column."""
        return ConfigError(f"{self.where}, column {column}: {problem}")

    def text(self, column: str, default: str = "") -> str:
        """A cell's text; the default where the cell is empty or the column is missing."""
        return self.cells.get(column, "") or default

    def number_of(self, column: str, default: float | None = None) -> float:
        """A positive finite number.

        Raises:
            ConfigError: something else, or an empty cell without a default.
        """
        text = self.text(column)
        if not text:
            if default is None:
                raise self.error(column, "the cell is empty; give a number above 0")
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            raise self.error(column, f"needs a number above 0, got {text[:40]!r}")
        return value

    def whole(self, column: str, default: int | None = None) -> int | None:
        """A whole number of at least 1; the default where the cell is empty.

        Raises:
            ConfigError: something else.
        """
        if not self.text(column):
            return default
        value = self.number_of(column)
        if value != int(value):
            raise self.error(column, f"needs a whole number, got {self.text(column)[:40]!r}")
        return int(value)

    def choice(self, column: str, choices: Sequence[str], default: str) -> str:
        """One of some words.

        Raises:
            ConfigError: another word.
        """
        found = self.text(column, default)
        if found not in choices:
            raise self.error(column, f"needs one of {', '.join(choices)}, got {found[:40]!r}")
        return found

    def is_set(self, column: str) -> bool:
        """Yes or no; an empty cell is no.

        Raises:
            ConfigError: neither.
        """
        found = self.text(column).lower()
        if found not in _YES | _NO:
            raise self.error(column, f"needs true or false, got {found[:40]!r}")
        return found in _YES


def read_table(file: Path, needed: Sequence[str]) -> list[Line]:
    """The lines of a CSV file, compressed or not.

    Args:
        file: `.csv`, or `.csv.gz`.
        needed: columns that it must have.

    Raises:
        ConfigError: the file cannot be read, has no lines, lacks a column, or has a line with more
            or fewer cells than its header.
    """
    try:
        with _opened(file) as stream:
            reader = csv.reader(stream, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(file, header, needed)
            lines: list[Line] = []
            for cells in reader:
                if not cells:
                    continue
                if len(lines) >= _MOST_LINES:
                    raise ConfigError(f"{file} has more than {_MOST_LINES} lines; split it")
                lines.append(_line(file, reader.line_num, header, cells))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"cannot read {file} ({error}); give a CSV file in UTF-8 with a header line"
        ) from error
    if not lines:
        raise ConfigError(f"{file} has no lines below its header")
    return lines


def ignored_columns(lines: Sequence[Line], known: Sequence[str], checks: Sequence[str] = ()) -> str:
    """A remark on the columns of a table that nothing reads; empty if there are none.

    Args:
        lines: of the table.
        known: names of the columns that are read.
        checks: names of columns that no answer depends on.

    Raises:
        ConfigError: a column is called almost as one that is read and is not there, so that a
            misspelt name would change answers without a word.
    """
    names = list(lines[0].cells) if lines else []
    others = [name for name in names if name not in (*known, *checks)]
    missing = [name for name in known if name not in names]
    for name in others:
        near = _meant(name, missing)
        if near:
            raise ConfigError(
                f"{lines[0].file}, line 1: column {name[:40]} is not known; if it is {near}, call "
                "it so, else give it a name that is less like it"
            )
    if not others:
        return ""
    shown = ", ".join(name[:40] or "(no name)" for name in others[:_MOST_NAMED])
    more = f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    return f"columns of {lines[0].file} that are not read: {shown}{more}"


def _meant(name: str, known: Sequence[str]) -> str:
    """The column that a name almost is, or is the beginning of; empty if there is none."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    begun = [one for one in known if one.startswith(plain)] if len(plain) >= _LEAST_PREFIX else []
    near = difflib.get_close_matches(plain, known, n=1, cutoff=_ALIKE) or begun
    return near[0] if near else ""


def _opened(file: Path) -> TextIO:
    if file.name.endswith(".gz"):
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _check_header(file: Path, header: Sequence[str], needed: Sequence[str]) -> None:
    wanted = [name for name in needed if name not in header]
    if wanted:
        raise ConfigError(
            f"{file}, line 1: column {wanted[0]} is missing; there are "
            f"{', '.join(name[:40] for name in header[:20]) or 'none'}"
        )
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise ConfigError(f"{file}, line 1: column {twice[0][:40]} stands there twice")


def _line(file: Path, number: int, header: Sequence[str], cells: Sequence[str]) -> Line:
    if len(cells) != len(header):
        raise ConfigError(
            f"{file}, line {number}: {len(cells)} cells, the header has {len(header)}; put a text "
            'with commas in double quotes (")'
        )
    long = [name for name, cell in zip(header, cells, strict=True) if len(cell) > _MOST_CHARACTERS]
    if long:
        raise ConfigError(f"{file}, line {number}, column {long[0]}: the cell is too long")
    pairs = zip(header, (cell.strip() for cell in cells), strict=True)
    return Line(str(file), number, dict(pairs))
