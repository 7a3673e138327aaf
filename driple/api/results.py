"""What the results of all questions share: JSON, a pandas table and an HTML table.

Result.rows() -> to_frame(), _repr_html_();  Job -> job_facts -> the `job` of every JSON
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, cast

from driple.codec import Json
from driple.errors import MissingExtraError, install_hint
from driple.jobs.options import JOB_OPTIONS

if TYPE_CHECKING:
    from pandas import DataFrame

    from driple.api.json_types.shared import JobJson
    from driple.jobs.load import Job

__all__ = ["Result", "job_facts", "schema_text"]

Cell = str | int | float | None


class Result(ABC):
    """A result of one question."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.rows())} rows; to_frame(), to_dict()>"

    @abstractmethod
    def to_dict(self) -> dict[str, Json]:
        """The object that `--json` prints."""

    @abstractmethod
    def rows(self) -> list[dict[str, Cell]]:
        """One flat row per answer; units are in the names of the columns."""

    def to_frame(self) -> DataFrame:
        """The rows as a pandas table.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingExtraError(
                f"a table needs pandas, which is not installed; {install_hint('train')}, or use "
                "rows()"
            ) from error
        return DataFrame(self.rows())

    def _repr_html_(self) -> str:
        """An HTML table, as notebooks show it."""
        rows = self.rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_text(row.get(name)))}</td>" for name in names) + "</tr>"
            for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def job_facts(job: Job) -> JobJson:
    """What the JSON of every command states about the job."""
    report = job.graph.report
    facts: JobJson = {
        "source": job.source,
        "kind": job.kind,
        "samples": job.samples,
        "assumptions": job.assumptions,
        "undecided": job.undecided,
        "unknown_dimensions": report.unknown_dimensions,
        "unknown_share": report.unknown_share,
        "unknown_turns": report.unknown_turns,
        "notes": report.notes,
        "op_types_without_cost": job.op_types_without_cost,
    }
    options = {row.name: job.stated(row.name) for row in JOB_OPTIONS if row.stated}
    return cast("JobJson", {**facts, **options})  # the schema has them from the same table


def schema_text() -> str:
    """The JSON schema of all results."""
    return (files("driple.api") / "schema.json").read_text(encoding="utf-8")
