"""Intervals of answers: one rule, and answers that have nothing in common."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

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
from driple.render.remarks import sentences

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
    assert [(pair.first.method, pair.other.method) for pair in pairs] == [
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


WIDE = StatedError(runs=Remark.of_text("runs"), p90_pct=53.0, low_factor=0.6, high_factor=8.1)


@pytest.mark.parametrize(
    ("changed", "slow_s", "by_network", "words"),
    [
        ({}, None, None, "for one in twenty over 8.1 times the step"),
        ({"low_factor": 0.2}, None, None,
         "for one in twenty over 8.1 times the step; for one in twenty under 0.20 of the step"),
        ({"low_factor": 0.2, "high_factor": 1.5}, None, None,
         "for one in twenty under 0.20 of the step"),
        ({"nearest_because": Remark.of_text("none")}, None, None,
         "as a job of another kind up to 8.1 times the step"),
        ({}, 9.0, None, f"by what its host takes up to {9 * UNKNOWN_HOST[1]:.0f} times the step"),
        ({}, 6.0, (0.7, 9.0), "by what its network reaches up to 9 times the step"),
        ({"high_factor": 1.6}, None, None, ""),
        ({"high_factor": 1 / (1 - 0.53), "low_factor": 0.65}, None, None, ""),  # of tuning
        ({"p90_pct": None}, None, None, ""),
    ],
)  # fmt: skip
def test_what_makes_an_interval_wider_than_the_stated_error_is_said(
    changed: dict[str, Any],
    slow_s: float | None,
    by_network: tuple[float, float] | None,
    words: str,
) -> None:
    """53 % off for one in ten is a step of 0.65 to 2.1 times the stated one, not of 8 times."""
    stated = replace(WIDE, **changed)
    slow = None if slow_s is None else SlowHost(step_s=slow_s, usual_us=14, slow_us=40)
    ends = simulated_ends(1.0, stated, slow, by_network)
    method_answer = MethodAnswer(
        setting=SETTING,
        step_time=estimate(1.0, "simulator", ends=ends, level=LEVEL),
        p90=stated.p90,
        stated=stated,
        slow_host=slow,
        by_network=by_network,
    )
    assert "; ".join(sentences(method_answer.widened)) == words


@pytest.mark.parametrize(("factor", "guess"), [(GUESS_FACTOR, False), (6.01, True)])
def test_an_interval_wider_than_a_factor_of_six_is_a_guess(factor: float, guess: bool) -> None:
    assert estimate(1.0, "simulator", ends=(0.5, 0.5 * factor)).is_guess is guess
    assert not Estimate(value=1.0, method="simulator").is_guess  # without an error, not checked
