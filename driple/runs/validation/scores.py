"""Tables of the benchmark: errors of every predictor in every split, by group of rows.

rows, predictions by predictor and split --scores_of--> GroupScore, GroupScore, ...
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.metrics import score
from driple.runs.validation.predictions import RowPrediction

__all__ = ["BY", "GroupScore", "Predicted", "scores_of", "task_of"]

# What rows are grouped by, in this order.
BY = ("task", "device", "source", "precision")
# By split and predictor, a prediction of each row, or None.
Predicted = Mapping[tuple[str, str], Sequence[RowPrediction | None]]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupScore:
    """Errors of one predictor on a group of rows; the numbers are those of `metrics.Score`.

    Attributes:
        by: what the rows were grouped by.
        group: name of the group.
        mode: `train` or `forward`.
        split: what the fit had not seen.
        predictor: `simulator`, a baseline, or `given` for another tool's predictions.
    """

    by: str
    group: str
    mode: str
    split: str
    predictor: str
    rows: int
    families: int
    median_pct: float
    p90_pct: float
    signed_pct: float
    tau: float | None
    coverage_pct: float | None
    width: float | None


def scores_of(rows: Sequence[MeasuredRun], predicted: Predicted) -> list[GroupScore]:
    """Scores by group, split and predictor, in the order of `BY` and of names.

    Args:
        rows: with measured times.
        predicted: by split and predictor, a prediction for each row or None.
    """
    scores = []
    for by in BY:
        for (group, mode), places in sorted(_groups(rows, by).items()):
            for (split, predictor), predictions in predicted.items():
                pairs = [
                    (rows[i], prediction)
                    for i in places
                    if (prediction := predictions[i]) is not None
                ]
                if pairs:
                    scores.append(_scored(by, group, mode, split, predictor, pairs))
    return scores


def task_of(row: MeasuredRun) -> str:
    """Kind of task whose errors stand together: scheme and domain of the model."""
    domain = f", {row.domain}" if row.domain else ""
    return f"{row.scheme}{domain}"


def _groups(rows: Sequence[MeasuredRun], by: str) -> dict[tuple[str, str], list[int]]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        for name in _names(row, by):
            groups[name, row.task].append(i)
    return groups


def _names(row: MeasuredRun, by: str) -> Iterator[str]:
    """Names of the groups that a row belongs to."""
    if by == "task":
        yield task_of(row)
    elif by == "precision":
        yield f"{row.precision or 'not stated'}{', compiled' if row.compiled else ''}"
    else:
        yield str(getattr(row, by))


def _scored(  # noqa: PLR0917  # the key of the line, and the rows
    by: str,
    group: str,
    mode: str,
    split: str,
    predictor: str,
    pairs: Sequence[tuple[MeasuredRun, RowPrediction]],
) -> GroupScore:
    summary = score([row for row, _ in pairs], [one for _, one in pairs])
    return GroupScore(
        by=by,
        group=group,
        mode=mode,
        split=split,
        predictor=predictor,
        rows=summary.rows,
        families=summary.families,
        median_pct=summary.median_pct,
        p90_pct=summary.p90_pct,
        signed_pct=summary.signed_pct,
        tau=summary.tau,
        coverage_pct=summary.coverage_pct,
        width=summary.width,
    )
