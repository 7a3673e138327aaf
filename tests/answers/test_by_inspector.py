"""The interval of an inspector's step time: its own error and that of its labels, in squares."""

from __future__ import annotations

from math import exp, expm1, hypot, inf, log, log1p
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from driple.answers.by_inspector import _interval, ask_inspector
from driple.answers.checked import predict
from driple.answers.error_statement import StatedError
from driple.answers.ready_job import ReadyJob
from driple.cluster.setting import Setting
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.checkpoint_places import checkpoint_path
from driple.jobs.load import load_job
from driple.remarks import Remark

EXAMPLE = Path(__file__).parents[2] / "datasets" / "examples" / "resnet20.pbtxt"


def interval(p90_pct: float | None = None, *, stated: bool = False, **changes: Any) -> Any:
    """Of a prediction of 2 s; without ends it has a mean error of 10 % on its test set."""
    values = {
        "iteration_time_s": 2.0, "ends": None, "level": 0.9, "warnings": (), "outdated": None,
        "metrics": {"test_iteration_time_mape_pct": 10.0}, **changes,
    }  # fmt: skip
    error = StatedError(runs=Remark.of_text("runs"), p90_pct=p90_pct)
    is_stated = stated or p90_pct is not None
    return _interval(SimpleNamespace(**values), error if is_stated else None)  # type: ignore[arg-type]


ENDS = np.array([[9.0, 99.0], [1.0, 4.0]])  # the last row is that of the step time


def test_measured_labels_leave_the_interval_as_it_is() -> None:
    """From 1 to 4 s of 2 s: a true time of up to twice is an error of up to 100 %."""
    p90, ends, level = interval(ends=ENDS)
    assert p90 == pytest.approx(1.0)
    assert (ends, level) == ((1.0, 4.0), 0.9)


def test_the_error_of_labels_is_added_in_squares() -> None:
    """Of a factor of 2 and one of 1.5, on a logarithmic scale."""
    p90, ends, level = interval(50.0, ends=ENDS)
    half = hypot(log(2), log1p(0.5))
    assert p90 == pytest.approx(expm1(half))
    assert ends == pytest.approx((2 / exp(half), 2 * exp(half)))
    assert level == 0.9
    assert ends[0] < 1.0 and ends[1] > 4.0


def test_no_share_is_claimed_where_an_error_is_not_known() -> None:
    """Of the labels, or of the inspector itself."""
    assert interval(stated=True, ends=ENDS) == (None, (1.0, 4.0), None)
    assert interval(50.0, ends=ENDS, level=None) == (None, (1.0, 4.0), None)
    assert interval(stated=True) == (None, None, None)
    remark = Remark.of_text("unlike its training set")
    assert interval(warnings=(remark,)) == (None, None, None)
    assert interval(outdated=remark) == (None, None, None)
    assert interval(metrics={}) == (None, None, None)


@pytest.mark.parametrize(("p90_pct", "expected"), [(None, 0.206), (20.0, hypot(0.206, 0.2))])
def test_without_ends_the_mean_error_of_the_test_set_counts(
    p90_pct: float | None, expected: float
) -> None:
    """Of normal errors of 10 % in the mean, nine of ten are below 20.6 %."""
    p90, ends, level = interval(p90_pct)
    assert p90 == pytest.approx(expected)
    assert ends == pytest.approx((2 / (1 + expected), 2 / (1 - expected)))
    assert level == 0.9
    assert interval(metrics={"test_iteration_time_mape_pct": 50.0})[1][1] == inf


def test_the_inspector_that_is_given_answers() -> None:
    """Of another preset than the usual one, which answers where none is given."""
    setting = Setting.parse("V100-P1w2")
    ready = ReadyJob(load_job(EXAMPLE))
    paper = load_checkpoint(checkpoint_path(setting, "paper"))
    given = ask_inspector(ready, setting, checkpoint=paper).prediction
    usual = ask_inspector(ready, setting).prediction
    assert given is not None and usual is not None
    alone = predict(ready.job.graph, paper, job=ready.prepared)
    assert given.iteration_time_s == alone.iteration_time_s != usual.iteration_time_s
