"""Errors of an entry by hand: rows alike, families alike, ranks, intervals, refused rows."""

from __future__ import annotations

import pytest

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.contest import entry_contest
from driple.runs.validation.entry import entry_scores, errors_on
from driple.runs.validation.predictions import Predictions, RowPrediction

# Measured seconds and family of four runs on like machines.
MEASURED = {"a": (1.0, "f"), "b": (2.0, "f"), "c": (4.0, "f"), "d": (8.0, "g")}


def runs() -> list[MeasuredRun]:
    return [
        MeasuredRun(
            id=name, job=name, setting="1xA100", family=family, step_s=step_s, source="here"
        )
        for name, (step_s, family) in MEASURED.items()
    ]


def test_errors_are_those_of_a_pencil() -> None:
    """Errors of 10, 20, 30 and 60 %; the run of family g weighs as much as the other three."""
    predicted = [
        RowPrediction(1.1, 0.9, 1.8),
        RowPrediction(1.6, 0.5, 1.9),
        RowPrediction(5.2),
        RowPrediction(3.2, 3.0, 12.0),
    ]
    score = errors_on(runs(), predicted, split="family", predictor="given")
    assert (score.rows, score.refused) == (4, 0)
    assert score.median_pct == pytest.approx(25)
    assert score.p90_pct == pytest.approx(30 + 0.7 * 30)
    assert score.family_median_pct == pytest.approx(30)
    assert score.family_p90_pct == pytest.approx(60)
    assert score.signed_pct == pytest.approx(-5)
    # Ranks 1 2 4 3 of 1 2 3 4: 1 - 6 * 2 / (4 * 15).
    assert score.spearman == pytest.approx(0.8)
    assert score.coverage_pct == pytest.approx(200 / 3)
    assert score.width == pytest.approx(3.8)


def test_rows_without_a_prediction_are_refused_and_the_simulator_is_scored_on_the_rest() -> None:
    rows = runs()
    held_out = Predictions({
        ("device", row.id): RowPrediction(row.step_s * (2 if row.id == "d" else 1.5))
        for row in rows
    })  # fmt: skip
    given = Predictions({("device", "a"): RowPrediction(1.0), ("device", "b"): RowPrediction(3.0)})
    own, simulator = entry_contest(rows, given, held_out).entry()
    assert (own.split, own.predictor, own.rows, own.refused) == ("device", "given", 4, 2)
    assert own.median_pct == pytest.approx(25)
    assert (own.spearman, own.coverage_pct, own.width) == (None, None, None)
    assert (simulator.predictor, simulator.refused) == ("simulator", 2)
    assert simulator.p90_pct == pytest.approx(50)


def test_a_predictor_that_learns_from_no_row_is_scored_in_every_split() -> None:
    given = Predictions({("", row.id): RowPrediction(2 * row.step_s) for row in runs()})
    scores = entry_contest(runs(), given).entry()
    assert [score.split for score in scores] == ["nothing", "family", "device", "source"]
    assert {score.median_pct for score in scores} == {100.0}


def test_without_given_predictions_there_is_no_entry() -> None:
    rows = runs()
    predicted = {("family", "simulator"): [RowPrediction(row.step_s) for row in rows]}
    assert entry_scores(rows, predicted) == []
