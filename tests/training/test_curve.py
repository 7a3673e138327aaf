"""The learning curve: a line through measured errors, and what it promises."""

from __future__ import annotations

import numpy as np
import pytest

from driple.training.curve import CurvePoint, LearningCurve, curve_sizes, learning_curve
from driple.training.metrics import Scores


def point(size: int, error: float) -> CurvePoint:
    """A transfer with this average NRMSE."""
    scores = Scores(
        nrmse=np.full(12, error),
        smape_pct=np.full(12, 100 * error),
        iteration_time_mape_pct=1.0,
        num_workloads=5,
    )
    return CurvePoint(size=size, scores=scores, seconds=1.0)


def test_a_power_law_is_found_and_continued() -> None:
    """An error of n^-0.5 falls by 1 - 2^-0.5 with twice the labels."""
    curve = learning_curve(lambda size: point(size, size**-0.5), point(120, 120**-0.5))
    assert curve is not None
    assert [item.size for item in curve.points] == [15, 30, 60, 120]
    assert curve.slope == pytest.approx(0.5)
    assert curve.nrmse_at(480) == pytest.approx(480**-0.5)
    assert curve.gain_of_doubling == pytest.approx(1 - 0.5**0.5)
    assert curve.worth_measuring_more
    shown = curve.to_json_dict()
    assert [item["workloads"] for item in shown["estimates"]] == [240, 480]


def test_nothing_is_promised_where_more_labels_did_not_help() -> None:
    """A curve that rises is level."""
    curve = LearningCurve.through([point(20, 0.1), point(40, 0.1), point(80, 0.12)])
    assert curve.slope == 0
    assert curve.nrmse_at(1000) == pytest.approx(curve.nrmse_at(10))
    assert not curve.worth_measuring_more


def test_too_few_labels_have_no_curve() -> None:
    """A half of less than twelve workloads tells nothing."""
    assert curve_sizes(23) == []
    assert curve_sizes(24) == [12]
    assert learning_curve(lambda _: point(1, 1.0), point(20, 0.1)) is None
