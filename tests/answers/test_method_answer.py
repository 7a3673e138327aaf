"""Intervals of answers: one rule, and answers that have nothing in common."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from types import SimpleNamespace
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
from driple.answers.timelines import UNKNOWN_HOST, Timelines
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


def simulated(
    ends: tuple[float, float] | None,
    *,
    stated: StatedError | None = None,
    by_network: tuple[float, float] | None = None,
    seconds: float = 1.0,
) -> MethodAnswer:
    """An answer with just this interval."""
    return MethodAnswer(
        setting=SETTING,
        step_time=estimate(seconds, "simulator", ends=ends, level=LEVEL),
        stated=stated,
        by_network=by_network,
    )


def why(answer: MethodAnswer) -> list[tuple[Any, Any]]:
    """What makes its interval wider, with the factor."""
    return [(one.values["because"], one.values["factor"]) for one in answer.widened]


@pytest.mark.parametrize("seconds", [0.25, 4.0])
def test_an_interval_is_in_proportion_to_its_step(seconds: float) -> None:
    """Ends, factors and widths: 10 % off is 1/1.1 to 1/0.9, in seconds or as a ratio."""
    assert ends_of_p90(seconds, 0.1) == pytest.approx((seconds / 1.1, seconds / 0.9))
    assert ends_of_p90(seconds, 1.0) == (seconds / 2, inf)
    result = simulated((seconds / 2, 3 * seconds), stated=WIDE, seconds=seconds)
    assert result.step_s == seconds and result.method == "simulator"
    assert result.factors == pytest.approx((0.5, 3.0))
    assert result.width == pytest.approx(6.0)
    assert result.error_factors == pytest.approx((0.6, 8.1))
    assert simulated(None, seconds=seconds).factors is None
    assert simulated(None, seconds=seconds).error_factors is None
    unknown = StatedError(runs=Remark.of_text("none"))
    assert simulated(None, stated=unknown).error_factors is None


def test_only_a_share_makes_a_width() -> None:
    """A measurement has none; without an interval, or a level of it, it may be any."""
    assert answer("measured", 2.0, None).width == 1.0
    assert simulated(None).width == inf
    level_of_none = MethodAnswer(
        setting=SETTING, step_time=estimate(1.0, "simulator", ends=(0.5, 2.0), level=None)
    )
    assert level_of_none.width == inf
    assert level_of_none.factors == (0.5, 2.0)


def test_the_network_widens_an_interval_at_both_ends() -> None:
    stated = replace(WIDE, low_factor=0.5, high_factor=2.0)
    assert simulated_ends(3.0, stated, None, (0.9, 9.0)) == pytest.approx((0.9, 9.0))
    assert simulated_ends(3.0, stated, None, (2.0, 4.0)) == pytest.approx((1.5, 6.0))
    by_p90 = StatedError(runs=Remark.of_text("runs"), p90_pct=25.0)
    assert simulated_ends(1.0, by_p90, None) == pytest.approx((0.8, 4 / 3))
    assert simulated_ends(1.0, by_p90, None, (0.7, 1.0)) == pytest.approx((0.7, 4 / 3))
    unknown = StatedError(runs=Remark.of_text("none"))
    assert simulated_ends(1.0, unknown, None, (0.9, 9.0)) is None


def test_device_and_host_have_errors_of_their_own() -> None:
    """Of 2 s that the device alone decides, an error of half to twice is 1 to 4 s."""
    stated = replace(WIDE, low_factor=0.5, high_factor=2.0)
    device = Timelines(
        device_s=1.0, host_s=1e-9, exchange_s=0.0, sharpness=8.0, fastest=0.5, slowest=3.0
    )
    slow = SlowHost(step_s=100.0, usual_us=14, slow_us=40)  # not counted twice
    assert simulated_ends(2.0, stated, slow, lines=device) == pytest.approx((1.0, 4.0))
    host = replace(device, device_s=1e-9, host_s=1.0)
    assert simulated_ends(2.0, stated, slow, lines=host) == pytest.approx((1.0, 6.0))
    unknown = StatedError(runs=Remark.of_text("none"))
    assert simulated_ends(2.0, unknown, None, lines=device) is None


@pytest.mark.parametrize(
    ("low", "high", "reasons"),
    [
        (0.55, 1.8, []),
        (0.55, 1.9, ["upper"]),
        (0.52, 1.8, ["lower"]),
        (0.5, 2.1, ["upper", "lower"]),
        (0.55, inf, []),
    ],
)
def test_a_quarter_beyond_the_percentile_is_said(
    low: float, high: float, reasons: list[str]
) -> None:
    """Of 50 %: from 1.25 x 1.5 = 1.875 times the step on, and below 1 / 1.875 = 0.533 of it."""
    stated = StatedError(
        runs=Remark.of_text("runs"), p90_pct=50.0, low_factor=low, high_factor=min(high, 99.0)
    )
    factors = {"upper": high, "lower": low}
    expected: list[Any] = [("tail", pytest.approx(factors[reason])) for reason in reasons]
    assert why(simulated((low, high), stated=stated)) == expected
    assert why(simulated((low, high))) == []
    assert why(simulated(None, stated=stated)) == []
    assert why(simulated((low, high), stated=replace(stated, p90_pct=None))) == []


@pytest.mark.parametrize("seconds", [0.5, 3.0])
@pytest.mark.parametrize(
    ("by_network", "own", "reasons"),
    [
        (None, (0.2, 5.0), ("tail", "tail")),
        (None, (0.25, 4.0), ("host", "host")),
        (None, (0.201, 4.96), ("tail", "tail")),
        (None, (0.203, 4.9), ("host", "host")),
        ((0.2, 5.0), (0.2, 5.0), ("network", "network")),
        ((0.201, 4.96), (0.2, 5.0), ("network", "network")),
        ((0.203, 4.94), (0.2, 5.0), ("tail", "tail")),
        ((0.2, 1.0), (0.25, 5.0), ("tail", "network")),
        ((1.0, 5.0), (0.25, 4.0), ("network", "host")),
    ],
)
def test_what_decides_each_end(
    seconds: float,
    by_network: tuple[float, float] | None,
    own: tuple[float, float],
    reasons: tuple[str, str],
) -> None:
    """The network's end or the stated error's, whichever is within 1 % of it; else the host."""
    stated = replace(WIDE, p90_pct=10.0, low_factor=own[0], high_factor=own[1])
    network = None if by_network is None else (by_network[0] * seconds, by_network[1] * seconds)
    result = simulated(
        (0.2 * seconds, 5 * seconds), stated=stated, by_network=network, seconds=seconds
    )
    expected: list[Any] = [(reasons[0], pytest.approx(5.0)), (reasons[1], pytest.approx(0.2))]
    assert why(result) == expected
    other = replace(result, stated=replace(stated, nearest_because=Remark.of_text("none")))
    renamed = ["other_kind" if reason == "tail" else reason for reason in reasons]
    assert [reason for reason, _ in why(other)] == renamed


def test_without_factors_it_is_the_host() -> None:
    """The 90th percentile is all that is known of the errors, and the interval is far beyond."""
    stated = StatedError(runs=Remark.of_text("runs"), p90_pct=10.0)
    assert why(simulated((0.2, 5.0), stated=stated)) == [("host", 5.0), ("host", 0.2)]


def test_a_true_time_longer_by_the_percentile_is_no_tail() -> None:
    """Of 60 %: 1 / (1 - 0.6) = 2.5 times the step; within 1 % of that nothing is said."""
    for high, reasons in ((2.5, []), (2.52, []), (2.6, ["tail"]), (2.4, ["tail"])):
        stated = replace(WIDE, p90_pct=60.0, low_factor=0.9, high_factor=high)
        assert [reason for reason, _ in why(simulated((0.9, high), stated=stated))] == reasons
    by_host = replace(WIDE, p90_pct=60.0, low_factor=0.9, high_factor=1.0)
    assert why(simulated((0.9, 2.5), stated=by_host)) == [("host", 2.5)]


def test_answers_of_other_methods_have_neither_parts_nor_doubts() -> None:
    plain = simulated((0.5, 2.0))
    assert plain.parts_s is None and plain.doubts == ()
    form = SimpleNamespace(parts_s={"compute": 0.7, "exchange": 0.3})
    assert replace(plain, form=form).parts_s == {"compute": 0.7, "exchange": 0.3}  # type: ignore[arg-type]
    first, second = Remark.of_text("a"), Remark.of_text("b")
    for outdated, doubts in ((None, (first,)), (second, (first, second))):
        prediction = SimpleNamespace(warnings=(first,), outdated=outdated)
        assert replace(plain, prediction=prediction).doubts == doubts  # type: ignore[arg-type]
