"""The record beside an answer of `predict`: a table of resources, then what differs in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driple.quantities import duration, rounded, size
from driple.render.remarks import sentences
from driple.render.show import print_table

if TYPE_CHECKING:
    from driple.api.measured_beside import MeasuredRecord, MeasuredRow

__all__ = ["print_measured"]

_LEAST = 1e-3  # MB/s or percent: less is none


def print_measured(record: MeasuredRecord) -> None:
    """The table, and a line for each difference.

    Args:
        record: beside its answer.
    """
    print()
    rows = [
        [
            row.resource,
            _text(row, row.predicted),
            _text(row, row.measured),
            "-"
            if not row.predicted or row.measured is None
            else rounded(row.measured / row.predicted),
        ]
        for row in record.rows
    ]
    print_table(["mean of a step", "predicted", "measured", "ratio"], rows)
    by = "marked" if record.steps_by == "marked" else "by the period of the traces"
    print(f"measured: {record.num_steps} steps, {by}")
    for words in sentences(record.differences):
        print(words)
    for resource, why in record.missing.items():
        print(f"{resource} was not recorded: {why}")


def _text(row: MeasuredRow, value: float | None) -> str:
    if value is None:
        return "-"
    if row.unit == "s":
        return duration(value)
    if row.unit == "bytes":
        return size(value)
    return f"{value:.3g} {row.unit}" if value >= _LEAST else f"0 {row.unit}"
