"""Errors of devices that a user tuned to runs of his own: never smaller than those runs' own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.answers.error_statement import StatedError
from driple.answers.job_kind import JobKind
from driple.answers.tuned_steps import tuned_steps, with_tuning
from driple.catalog import Device
from driple.remarks import Remark

OURS = tuned_steps()
CNN = JobKind(framework="pytorch", network="convolutional")
PUBLISHED = StatedError(
    runs=Remark.of_text("x"), num_runs=9, median_pct=8.0, p90_pct=20.0, low_factor=0.8,
    high_factor=1.3,
)  # fmt: skip


class Tuned:
    """A device with some facts of a catalogue file."""

    def __init__(self, **facts: float) -> None:
        self.facts = facts

    def find(self, name: str) -> Any:
        return self.facts.get(name)


def stated(kind: JobKind = CNN, *, is_alone: bool = True, **facts: float) -> StatedError:
    return with_tuning(PUBLISHED, kind, cast("Device", Tuned(**facts)), is_alone=is_alone)


def test_the_shipped_steps_are_a_statement() -> None:
    low, high = OURS.device_ends
    assert 0 < low < 1 < high
    assert 0 < OURS.median_pct < OURS.p90_pct
    assert OURS.num_steps > 10 and OURS.num_runs > 1


def test_a_device_tuned_to_as_many_runs_has_the_error_of_ours() -> None:
    error = stated(tuned_runs=OURS.num_runs)
    assert (error.median_pct, error.p90_pct) == (OURS.median_pct, OURS.p90_pct)
    assert (error.runs_median_pct, error.runs_p90_pct) == (OURS.median_pct, OURS.p90_pct)
    assert (error.low_factor, error.high_factor) == OURS.device_ends
    assert error.num_runs == OURS.num_steps
    assert error.runs.code == "steps_of_tuned_devices"
    assert error.short is not None and error.short.values["num_runs"] == OURS.num_runs


@pytest.mark.parametrize(
    ("kind", "is_alone", "runs"),
    [
        (CNN, False, OURS.num_runs),
        (CNN, True, OURS.num_runs - 1),
        (replace(CNN, network="recurrent"), True, OURS.num_runs),
        (replace(CNN, framework="tensorflow"), True, OURS.num_runs),
        (replace(CNN, compiled=True), True, OURS.num_runs),
    ],
)
def test_other_answers_keep_the_published_error(kind: JobKind, is_alone: bool, runs: int) -> None:
    assert stated(kind, is_alone=is_alone, tuned_runs=runs) is PUBLISHED
    assert stated(kind) is PUBLISHED
    transformer = replace(CNN, network="transformer", framework="onnx")
    assert stated(transformer, tuned_runs=99).num_runs == OURS.num_steps


def test_worse_runs_of_the_user_make_the_statement_worse() -> None:
    error = stated(is_alone=False, tuned_median_pct=9.0, tuned_p90_pct=50.0)
    assert (error.median_pct, error.p90_pct) == (9.0, 50.0)
    assert error.tuned == ("median_pct", "p90_pct")
    assert error.low_factor == pytest.approx(1 / 1.5)
    assert error.high_factor == pytest.approx(2.0)
    assert stated(is_alone=False, tuned_median_pct=9.0).tuned == ("median_pct",)
    only = stated(is_alone=False, tuned_p90_pct=21.0)
    assert only.tuned == ("p90_pct",)
    assert only.low_factor == 0.8  # wider already
    assert only.high_factor == 1.3


@given(st.floats(0, 8), st.floats(0, 20))
def test_better_runs_of_the_user_change_nothing(median: float, p90: float) -> None:
    assert stated(is_alone=False, tuned_median_pct=median, tuned_p90_pct=p90) is PUBLISHED


@given(st.floats(0.1, 1000))
def test_an_interval_is_no_narrower_than_the_published_one(p90: float) -> None:
    """And its upper end is 20 times the answer at most, however far off the runs were."""
    error = stated(is_alone=False, tuned_p90_pct=p90)
    assert error.low_factor is not None and error.high_factor is not None
    assert 0 < error.low_factor <= 0.8
    assert 1.3 <= error.high_factor <= 20.0 + 1e-9


def test_without_an_interval_none_is_made() -> None:
    bare = replace(PUBLISHED, low_factor=None, high_factor=None)
    device = cast("Device", Tuned(tuned_p90_pct=50.0))
    error = with_tuning(bare, CNN, device, is_alone=False)
    assert (error.p90_pct, error.low_factor, error.high_factor) == (50.0, None, None)
    unknown = StatedError(runs=Remark.of_text("none"))
    assert with_tuning(unknown, CNN, device, is_alone=False) is unknown
