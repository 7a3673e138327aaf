"""CSV tables that anybody may write: read with the line and the column of whatever is wrong.

FILE.csv or FILE.csv.gz --read_table--> Line, Line, ... --> a text, a number, a choice of a fact
names of its columns, known names --ignored_columns--> those that are not read

Facts have the names of `MeasuredRun`. A table that calls its columns otherwise is listed here, the
only place that knows: fact -> column. The name of the fact is read in every table.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, TypeVar, get_type_hints

from driple.errors import ConfigError
from driple.remarks import Remark, remark

__all__ = ["PUBLISHED", "TENSORFLOW", "USERS", "UTILISATION", "Line",
           "ignored_columns", "read_records", "read_table"]  # fmt: skip

_Record = TypeVar("_Record")

# Of users, of `pytorch_rows.csv.gz` and of `utilisation_runs.csv.gz`.
USERS = {
    "task": "mode", "step_s": "seconds", "channels_last": "layout", "input_shape": "input",
}  # fmt: skip
PUBLISHED = {"num_devices": "devices", "batch_size": "batch", "utilisation_pct": "util_pct"}
UTILISATION = {**PUBLISHED, "id": "row", "utilisation_pct": "util_mean"}
_TF_CNN = {
    "device": "gpu", "num_devices": "n_gpus", "job": "model", "batch_size": "batch_per_gpu",
    "step_s": "step_time_s",
}  # fmt: skip
# By the name of the file.
TENSORFLOW: Mapping[str, Mapping[str, str]] = {
    "lambda_tf_cnn_benchmarks": {**_TF_CNN, "compiled": "xla", "link": "interconnect"},
    "tf_cnn_published_tables": _TF_CNN,
    "azure_horovod_tf_cnn": {
        **_TF_CNN, "num_machines": "n_nodes", "per_machine": "gpus_per_node",
    },
    "zeng_iteration_time": {
        "job": "model", "batch_size": "batch_per_worker", "step_s": "measured_s",
    },
    "single_gpu_cnn_ms": {"device": "gpu", "job": "model", "batch_size": "batch"},
}  # fmt: skip

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
        cells: text of each fact, without spaces around it.
        column_of: columns of facts that the table calls otherwise.
    """

    file: str
    number: int
    cells: dict[str, str]
    column_of: Mapping[str, str] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """File and line, as errors name them."""
        return f"{self.file}, line {self.number}"

    def error(self, fact: str, problem: str) -> ConfigError:
        """The error that names file, line and column."""
        return ConfigError(f"{self.where}, column {self.column_of.get(fact, fact)}: {problem}")

    def text(self, fact: str, default: str = "") -> str:
        """A cell's text; the default where the cell is empty or the column is missing."""
        return self.cells.get(fact, "") or default

    def number_of(self, fact: str, default: float | None = None) -> float:
        """A positive finite number.

        Raises:
            ConfigError: something else, or an empty cell without a default.
        """
        text = self.text(fact)
        if not text:
            if default is None:
                raise self.error(fact, "the cell is empty; give a number above 0")
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            raise self.error(fact, f"needs a number above 0, got {text[:40]!r}")
        return value

    def whole(self, fact: str, default: int | None = None) -> int | None:
        """A whole number of at least 1; the default where the cell is empty.

        Raises:
            ConfigError: something else.
        """
        if not self.text(fact):
            return default
        value = self.number_of(fact)
        if value != int(value):
            raise self.error(fact, f"needs a whole number, got {self.text(fact)[:40]!r}")
        return int(value)

    def choice(self, fact: str, choices: Sequence[str], default: str) -> str:
        """One of some words.

        Raises:
            ConfigError: another word.
        """
        word = self.text(fact, default)
        if word not in choices:
            raise self.error(fact, f"needs one of {', '.join(choices)}, got {word[:40]!r}")
        return word

    def is_set(self, fact: str) -> bool:
        """Yes or no; an empty cell is no.

        Raises:
            ConfigError: neither.
        """
        word = self.text(fact).lower()
        if word not in _YES | _NO:
            raise self.error(fact, f"needs true or false, got {word[:40]!r}")
        return word in _YES


def read_table(
    file: Path,
    needed: Sequence[str],
    column_of: Mapping[str, str] | None = None,
    *,
    may_be_empty: bool = False,
) -> list[Line]:
    """The lines of a CSV file, compressed or not.

    Args:
        file: `.csv`, or `.csv.gz`.
        needed: facts that it must have.
        column_of: columns of facts that the table calls otherwise; those of this module.
        may_be_empty: whether a header alone is a table.

    Raises:
        ConfigError: the file cannot be read, has no lines, lacks a column, or has a line with more
            or fewer cells than its header.
    """
    try:
        with _opened(file) as stream:
            reader = csv.reader(stream, strict=True)
            renamed = column_of or {}
            fact_of = {column: fact for fact, column in renamed.items()}
            columns = [name.strip() for name in next(reader, [])]
            facts = [fact_of.get(name, name) for name in columns]
            _check_header(file, columns, facts, [(one, renamed.get(one, one)) for one in needed])
            lines: list[Line] = []
            for cells in reader:
                if not cells:
                    continue
                if len(lines) >= _MOST_LINES:
                    raise ConfigError(f"{file} has more than {_MOST_LINES} lines; split it")
                checked = _checked_cells(file, reader.line_num, columns, cells)
                pairs = zip(facts, checked, strict=True)
                lines.append(Line(str(file), reader.line_num, dict(pairs), renamed))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"cannot read {file} ({error}); give a CSV file in UTF-8 with a header line"
        ) from error
    if not lines and not may_be_empty:
        raise ConfigError(f"{file} has no lines below its header")
    return lines


def read_records(
    file: Path,
    kind: type[_Record],
    facts: Sequence[str],
    column_of: Mapping[str, str] | None = None,
) -> list[_Record]:
    """The lines of a table of ours as records, each cell by the type of its field.

    Args:
        file: `.csv`, or `.csv.gz`.
        kind: dataclass of the records.
        facts: fields that the table must have, and no others.
        column_of: columns of facts that the table calls otherwise.

    Raises:
        ConfigError: as `read_table`, or a cell or a record is not as it must be.
    """
    lines = read_table(file, facts, column_of)
    odd = sorted(set(lines[0].cells) - set(facts))
    if odd:
        raise ConfigError(f"{file}, line 1: column {odd[0][:40]} is unknown")
    hints = get_type_hints(kind)
    parsers = [(fact, _PARSERS[hints[fact]]) for fact in facts]
    return [_record(line, kind, parsers) for line in lines]


def _record(
    line: Line, kind: type[_Record], parsers: Sequence[tuple[str, Callable[[str], object]]]
) -> _Record:
    values: dict[str, object] = {}
    for fact, parse in parsers:
        try:
            values[fact] = parse(line.cells[fact])
        except ValueError as error:
            raise line.error(fact, str(error)) from error
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{line.where}: {error}") from error


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no finite number")
    return value


def _flag(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"{text!r} is neither 0 nor 1")
    return text == "1"


_PARSERS: dict[object, Callable[[str], object]] = {
    str: str,
    int: int,
    bool: _flag,
    float: lambda text: _finite(text) if text else math.nan,
    int | None: lambda text: int(text) if text else None,
    float | None: lambda text: _finite(text) if text else None,
}


def ignored_columns(
    lines: Sequence[Line], known: Sequence[str], checks: Sequence[str] = ()
) -> Remark | None:
    """A remark on the columns of a table that nothing reads; None if there are none.

    Args:
        lines: of the table.
        known: names of the columns that are read.
        checks: names of columns that no answer depends on.

    Raises:
        ConfigError: a column is called almost as one that is read and is not there, so that a
            misspelt name would change answers without a word.
    """
    renamed = lines[0].column_of if lines else {}
    names = [renamed.get(fact, fact) for fact in lines[0].cells] if lines else []
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
        return None
    return remark(
        "columns_not_read",
        file=str(lines[0].file),
        columns=tuple(name[:40] for name in others[:_MOST_NAMED]),
        num_columns=len(others),
    )


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


def _check_header(
    file: Path,
    columns: Sequence[str],
    facts: Sequence[str],
    needed: Sequence[tuple[str, str]],
) -> None:
    missing = [column for fact, column in needed if fact not in facts]
    if missing:
        raise ConfigError(
            f"{file}, line 1: column {missing[0]} is missing; there are "
            f"{', '.join(name[:40] for name in columns[:20]) or 'none'}"
        )
    twice = [name for name, fact in zip(columns, facts, strict=True) if facts.count(fact) > 1]
    if twice:
        raise ConfigError(f"{file}, line 1: column {min(twice)[:40]} stands there twice")


def _checked_cells(
    file: Path, number: int, columns: Sequence[str], cells: Sequence[str]
) -> list[str]:
    """The cells of a line, without spaces around them."""
    if len(cells) != len(columns):
        raise ConfigError(
            f"{file}, line {number}: {len(cells)} cells, the header has {len(columns)}; put a text "
            'with commas in double quotes (")'
        )
    pairs = zip(columns, cells, strict=True)
    long = [name for name, cell in pairs if len(cell) > _MOST_CHARACTERS]
    if long:
        raise ConfigError(f"{file}, line {number}, column {long[0]}: the cell is too long")
    return [cell.strip() for cell in cells]
