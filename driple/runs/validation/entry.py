"""An entry of the benchmark: another predictor's errors in each split, and the simulator's beside.

rows, predictions by split and predictor --entry_scores--> EntryScore, EntryScore, ...

Rows count alike; the numbers of `GroupScore` weigh model families alike, and so do those here whose
name begins with `family_`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.metrics import (
    family_weights,
    intervals_kept,
    rank_correlation,
    weighted_quantile,
)
from driple.runs.validation.predictions import RowPrediction
from driple.runs.validation.scores import Predicted

__all__ = ["GIVEN", "SIMULATOR", "EntryScore", "entry_scores", "errors_on"]

GIVEN, SIMULATOR = "given", "simulator"


@dataclass(frozen=True, kw_only=True, slots=True)
class EntryScore:
    """Errors |p - t| / t of one predictor in one split, in percent.

    Attributes:
        split: what the fit had not seen.
        predictor: `given`, or `simulator` on the rows that the given predictions cover.
        rows: of the benchmark.
        refused: those without a prediction.
        median_pct: median over predicted rows.
        p90_pct: 90th percentile over them.
        family_median_pct: median with model families weighted alike, and machine types of each.
        family_p90_pct: 90th percentile with these weights.
        signed_pct: median of (p - t) / t: below 0 the predictor is too fast.
        spearman: rank correlation of predicted and measured times; None with fewer than three.
        coverage_pct: share of rows within their interval, of those that have one; None if none has.
        width: median of upper over lower end; None without intervals.
    """

    split: str
    predictor: str
    rows: int
    refused: int
    median_pct: float
    p90_pct: float
    family_median_pct: float
    family_p90_pct: float
    signed_pct: float
    spearman: float | None
    coverage_pct: float | None
    width: float | None


def entry_scores(rows: Sequence[MeasuredRun], predicted: Predicted) -> list[EntryScore]:
    """The given predictions in each split, and the simulator on the same rows; empty without them.

    Args:
        rows: with measured times.
        predicted: by split and predictor, a prediction of each row or None.
    """
    scores = []
    for (split, predictor), given in predicted.items():
        if predictor != GIVEN:
            continue
        scores.append(errors_on(rows, given, split=split, predictor=GIVEN))
        own = predicted.get((split, SIMULATOR))
        if own is not None:
            same = [mine if theirs else None for mine, theirs in zip(own, given, strict=True)]
            if any(same):
                scores.append(errors_on(rows, same, split=split, predictor=SIMULATOR))
    return scores


def errors_on(
    rows: Sequence[MeasuredRun],
    predictions: Sequence[RowPrediction | None],
    *,
    split: str,
    predictor: str,
) -> EntryScore:
    """Errors on the rows that are predicted.

    Args:
        rows: with measured times.
        predictions: of each row, one or more of them not None.
        split: what the fit had not seen.
        predictor: whose they are.
    """
    pairs = [
        (row, prediction)
        for row, prediction in zip(rows, predictions, strict=True)
        if prediction is not None
    ]
    some = [row for row, _ in pairs]
    seconds = np.array([prediction.seconds for _, prediction in pairs])
    measured = np.array([row.step_s for row in some])
    signed, weights = seconds / measured - 1, family_weights(some)
    errors = np.abs(signed)
    coverage_pct, width = intervals_kept(
        measured, np.ones(len(pairs)), [prediction for _, prediction in pairs]
    )
    return EntryScore(
        split=split,
        predictor=predictor,
        rows=len(rows),
        refused=len(rows) - len(pairs),
        median_pct=100 * float(np.median(errors)),
        p90_pct=100 * float(np.quantile(errors, 0.9)),
        family_median_pct=100 * weighted_quantile(errors, weights, 0.5),
        family_p90_pct=100 * weighted_quantile(errors, weights, 0.9),
        signed_pct=100 * float(np.median(signed)),
        spearman=rank_correlation(seconds, measured),
        coverage_pct=coverage_pct,
        width=width,
    )
