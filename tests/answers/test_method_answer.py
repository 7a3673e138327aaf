"""Intervals of answers: one rule, and answers that have nothing in common."""

from __future__ import annotations

from math import inf

import pytest

from driple.answers.ask import disagreements
from driple.answers.error_statement import StatedError
from driple.answers.method_answer import (
    MethodAnswer,
    ends_of_p90,
    simulated_ends,
)
from driple.answers.slow_hosts import SlowHost
from driple.answers.timelines import UNKNOWN_HOST
from driple.cluster.setting import Setting
from driple.estimate import GUESS_FACTOR, LEVEL, Estimate, Method, estimate
from driple.remarks import Remark

SETTING = Setting.parse("1xA100")


def answer(method: Method, seconds: float, p90: float | None) -> MethodAnswer:
    """An answer whose error stays below a share nine times out of ten."""
    return MethodAnswer(
        setting=SETTING,
        step_time=estimate(seconds, method, ends=ends_of_p90(seconds, p90), level=LEVEL),
        p90=p90,
    )


def test_the_interval_of_a_90th_percentile() -> None:
    """An estimate of 1 s, off by 25 % at most, is of something between 0.8 and 1.33 s."""
    assert ends_of_p90(1.0, 0.25) == pytest.approx((0.8, 4 / 3))
    assert ends_of_p90(1.0, None) is None
    assert ends_of_p90(1.0, 1.5) == (0.4, inf)
    unbounded = answer("simulator", 1.0, 1.5)
    assert unbounded.step_time.interval is not None and unbounded.step_time.interval.high is None
    assert unbounded.width == inf and unbounded.step_time.is_guess
    assert unbounded.factors == (0.4, inf)


def test_who_contradicts_whom() -> None:
    near, far = answer("zhang", 1.1, 0.2), answer("zeng", 3.0, 0.1)
    measured = answer("measured", 1.0, None)
    guess = answer("inspector", 50.0, None)
    pairs = disagreements([measured, near, far, guess])
    assert [(pair.one.method, pair.other.method) for pair in pairs] == [
        ("measured", "zeng"),
        ("zhang", "zeng"),
    ]
    assert pairs[0].factor == pytest.approx(3.0)
    assert disagreements([measured, near]) == []


def test_the_interval_of_a_simulated_time_holds_a_slower_host() -> None:
    """It grows to nine of ten steps on the slower host, and never shrinks."""
    stated = StatedError(runs=Remark.of_text("runs"), p90_pct=50.0, low_factor=0.5, high_factor=2.0)
    slow = SlowHost(step_s=3.0, usual_us=14, slow_us=40)
    faster = SlowHost(step_s=1.1, usual_us=14, slow_us=40)
    assert simulated_ends(1.0, stated, None) == (0.5, 2.0)
    assert simulated_ends(1.0, stated, slow) == (0.5, pytest.approx(3.0 * UNKNOWN_HOST[1]))
    assert simulated_ends(1.0, stated, faster) == (0.5, 2.0)
    unknown = StatedError(runs=Remark.of_text("none"))
    assert simulated_ends(1.0, unknown, slow) is None


@pytest.mark.parametrize(("factor", "guess"), [(GUESS_FACTOR, False), (6.01, True)])
def test_an_interval_wider_than_a_factor_of_six_is_a_guess(factor: float, guess: bool) -> None:
    assert estimate(1.0, "simulator", ends=(0.5, 0.5 * factor)).is_guess is guess
    assert not Estimate(value=1.0, method="simulator").is_guess  # without an error, not checked
