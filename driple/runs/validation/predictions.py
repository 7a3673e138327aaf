"""Predictions of rows that a predictor had not seen: one compact table, and any tool's own.

    id, split, seconds[, low, high] --read_predictions--> Predictions

`split` states what the fit had not seen: the row's `family`, the `size` of its job, its `device`,
its `source`, or `nothing`. A tool that learns from no rows leaves the column out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from driple.remarks import Remark
from driple.runs.tables import ignored_columns, read_table

__all__ = ["SPLITS", "Predictions", "RowPrediction", "read_predictions"]

# What a fit had not seen, and the words of tables.
SPLITS = {
    "family": "model family",
    "device": "device",
    "source": "source",
    "nothing": "nothing",
    "size": "size of a known family",
}
_COLUMNS = ("id", "split", "seconds", "low", "high")
_ANY = ""  # of a tool that learns from no rows


@dataclass(frozen=True, slots=True)
class RowPrediction:
    """Seconds of a step, and where the true time is expected.

    Attributes:
        seconds: predicted.
        low: lower end of the 90 % interval; None without an interval.
        high: upper end.
    """

    seconds: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Predictions:
    """Predictions by split and by id of the row."""

    by_split: Mapping[tuple[str, str], RowPrediction]

    def of(self, row_id: str, split: str) -> RowPrediction | None:
        """The prediction of a row where the split held it out; None if there is none."""
        return self.by_split.get((split, row_id)) or self.by_split.get((_ANY, row_id))


def read_predictions(
    file: Path,
    known: Iterable[str] | None = None,
    report: Callable[[Remark], None] = lambda _: None,
) -> Predictions:
    """Predictions from a table with the columns `id` and `seconds`, and perhaps the others.

    Args:
        file: the table.
        known: ids of the rows; None accepts any.
        report: called with a remark on columns that are not read, if there are any.

    Raises:
        ConfigError: the table is not as described, names an unknown row, or one row twice, or a
            column is called almost as one that is read.
    """
    ids = None if known is None else set(known)
    predictions: dict[tuple[str, str], RowPrediction] = {}
    lines = read_table(file, ("id", "seconds"))
    ignored = ignored_columns(lines, _COLUMNS)
    if ignored is not None:
        report(ignored)
    for line in lines:
        row_id, split = line.text("id"), line.choice("split", (*SPLITS, _ANY), _ANY)
        if ids is not None and row_id not in ids:
            known = ", ".join(sorted(ids)[:3])
            raise line.error(
                "id",
                f"no row has the id {row_id[:60]!r}; ids are those of the rows' column id, or the "
                f"number of a row's line, such as {known}",
            )
        if (split, row_id) in predictions:
            raise line.error("id", f"row {row_id[:60]} has a prediction already")
        seconds = line.number_of("seconds")
        low = line.number_of("low") if line.text("low") else None
        high = line.number_of("high") if line.text("high") else None
        if (low is None) != (high is None):
            raise line.error("low", "an interval needs low and high; give both or neither")
        if low is not None and high is not None and not low <= high:
            raise line.error("high", f"is below low ({high:g} < {low:g})")
        predictions[split, row_id] = RowPrediction(seconds, low, high)
    return Predictions(predictions)
