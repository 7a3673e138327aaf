"""The learning curve: a line through measured errors, and what it promises."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from driple.evaluation.curve import (
    TYPICAL_SLOPE,
    TYPICAL_WEIGHT,
    WORTH_IT,
    CurvePoint,
    LearningCurve,
    curve_sizes,
    learning_curve,
    why_no_curve,
)
from driple.training.metrics import Scores

RESULTS = Path(__file__).parents[2] / "scripts/studies/transfer/results.jsonl"


def point(size: int, error: float) -> CurvePoint:
    """A transfer with this average NRMSE."""
    scores = Scores(
        nrmse=np.full(12, error),
        smape_pct=np.full(12, 100 * error),
        iteration_time_mape_pct=1.0,
        num_workloads=5,
    )
    return CurvePoint(size=size, scores=scores, seconds=1.0)


def test_a_power_law_is_found_and_drawn_to_the_typical_slope() -> None:
    """n^-0.5 at sizes of -1, 0 and 1 doublings: (2 * 0.5 + weight * typical) / (2 + weight)."""
    curve = learning_curve(lambda size: point(size, size**-0.5), point(120, 120**-0.5))
    assert curve is not None
    assert [item.size for item in curve.points] == [30, 60, 120]
    slope = (1 + TYPICAL_WEIGHT * TYPICAL_SLOPE) / (2 + TYPICAL_WEIGHT)
    assert curve.slope == pytest.approx(slope)
    assert curve.nrmse_at(120) == pytest.approx(120**-0.5)
    assert curve.nrmse_at(480) == pytest.approx(120**-0.5 * 4**-slope)
    assert curve.gain_of_doubling == pytest.approx(1 - 2**-slope)
    low, high = curve.gain_range
    assert WORTH_IT < low < curve.gain_of_doubling < high
    assert curve.advice == "measuring more is worth it"
    shown = curve.to_json_dict()
    assert [item["workloads"] for item in shown["estimates"]] == [240, 480]
    for estimate in shown["estimates"]:
        low, high = estimate["nrmse_range"]
        assert low < estimate["nrmse"] < high


def test_nothing_is_promised_where_more_labels_did_not_help() -> None:
    """A curve that rises is level; a flat one falls by less than what is worth it."""
    curve = LearningCurve.through([point(20, 0.1), point(40, 0.1), point(80, 0.13)])
    assert curve.slope == 0
    assert curve.nrmse_at(1000) == pytest.approx(0.13)
    assert curve.gain_range[0] == 0
    flat = LearningCurve.through([point(20, 0.1), point(40, 0.1), point(80, 0.1)])
    assert 0 < flat.gain_of_doubling < WORTH_IT
    assert not curve.worth_measuring_more
    assert not flat.worth_measuring_more
    assert flat.advice == "more would probably bring little"


def test_a_first_point_that_failed_does_not_make_labels_worth_it() -> None:
    """12 labels are too few to count, whatever their error."""
    errors = {12: 7.0, 24: 0.0767, 48: 0.0729, 96: 0.0692}
    curve = learning_curve(lambda size: point(size, errors[size]), point(96, errors[96]))
    assert curve is not None
    assert [item.size for item in curve.points] == [24, 48, 96]
    assert curve.gain_of_doubling < 0.07


def test_too_few_labels_have_no_curve_and_say_why() -> None:
    """A half of less than twenty workloads tells nothing."""
    assert curve_sizes(39) == []
    assert curve_sizes(40) == [20]
    assert learning_curve(lambda _: point(1, 1.0), point(20, 0.1)) is None
    assert "it takes 40 workloads to learn from, here are 20" in why_no_curve(20)


def test_forecasts_of_measured_curves_are_better_than_a_plain_line() -> None:
    """Errors of 80 labels from those of 20 and 40, in scripts/studies/transfer/results.jsonl.

    Less wrong than the least-squares line, on either side of the truth about as often, and within
    the range four times of five.
    """
    ours, plain, inside = [], [], []
    for errors in _measured_curves():
        curve = LearningCurve.through([point(size, errors[size]) for size in (20, 40)])
        low, high = curve.nrmse_range(80)
        inside.append(low <= errors[80] <= high)
        ours.append(np.log(curve.nrmse_at(80) / errors[80]))
        plain.append(np.log(errors[40] * min(errors[40] / errors[20], 1) / errors[80]))
    assert len(ours) >= 25
    assert np.sqrt(np.square(ours).mean()) < 0.8 * np.sqrt(np.square(plain).mean())
    assert abs(np.mean(ours)) < 0.03
    assert 0.75 <= np.mean(inside) <= 0.95


def _measured_curves() -> list[dict[int, float]]:
    """NRMSE by size, of each setting and seed, as `driple transfer` does it by default."""
    curves: dict[tuple[str, int], dict[int, float]] = {}
    for line in RESULTS.read_text().splitlines():
        row = json.loads(line)
        if row["preset"] == "default" and row["layers"] == ["mlp"] and row["aligned"]:
            curves.setdefault((row["target"], row["seed"]), {})[row["size"]] = row["nrmse"]
    return [errors for errors in curves.values() if {20, 40, 80} <= set(errors)]
