"""Tables of jobs and clusters, answered where they lie: for Ray Data and other engines of tables.

    ray.data.read_json("jobs.jsonl").map_batches(driple.api.answer_table, batch_format="pyarrow")

pyarrow.Table of lines --answer_lines--> pyarrow.Table of rows
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from driple.api.arguments import PathLike
from driple.api.predicting_lines import COLUMNS, LineBlock, LineOptions, answer_lines
from driple.dataset.tables import require_pyarrow
from driple.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["answer_table", "row_schema"]

_NEEDS = "tables of answers"
_TYPES = {int: "int64", float: "float64", str: "string"}


def answer_table(
    jobs: pyarrow.Table,
    *,
    catalogs: PathLike | Sequence[PathLike] = (),
    machine: PathLike | None = None,
) -> pyarrow.Table:
    """Answer each row of a table of jobs: a row for each job and cluster, in the order of rows.

    Args:
        jobs: a column for each field of a line of `predict_jobs`, such as `job`, `setting` (a name
            or a list of names) and `batch_size`; a value that is null is left out.
        catalogs: files of own devices and links, at the same path on each node.
        machine: file of `driple measure --machine`.

    Returns:
        The columns of `predict_jobs`; `line` counts the rows of this table, from 1. A row that has
        no answer has its reason.

    Raises:
        ConfigError: not a table of pyarrow.
        CatalogError: a catalogue or a machine file that cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
    arrow = require_pyarrow(_NEEDS)
    if not isinstance(jobs, arrow.Table):
        raise ConfigError(
            f"jobs must be a table of pyarrow, got {type(jobs).__name__}; give "
            "batch_format='pyarrow' to map_batches"
        )
    options = LineOptions.of(catalogs, machine)
    lines = tuple(_line(row) for row in jobs.to_pylist())
    rows, _, _ = answer_lines(options, LineBlock(first=1, lines=lines))
    answers = [json.loads(row) for row in rows.splitlines()]
    return arrow.Table.from_pylist(answers, row_schema())


def row_schema() -> pyarrow.Schema:
    """The schema of a table of answers, with the columns of `COLUMNS`.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow = require_pyarrow(_NEEDS)
    return arrow.schema([(name, arrow.type_for_alias(_TYPES[of])) for name, of in COLUMNS.items()])


def _line(row: Mapping[str, Any]) -> bytes:
    """A row as a line of JSON; what JSON does not know is refused as its text."""
    given = {name: value for name, value in row.items() if value is not None}
    return json.dumps(given, default=str).encode()
