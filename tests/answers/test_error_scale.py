"""How large an error is by what is known of an answer: never smaller for what is less known."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, hypot, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.answers.checked_runs import RunColumns
from driple.answers.error_scale import (
    ErrorScale,
    Spread,
    TaskScale,
    error_quantiles,
    shipped_scale,
    traits_of,
)
from driple.codec import from_json
from scripts.fits.checked_files import scale_to_json
from tests.answers.checked import checked_run

TASK = TaskScale(
    base=log(0.1), slope=2.0, effects={"half precision": 0.5, "single": -0.25}, low=-1.5, high=2.0,
    median=0.8, p90=2.5,
)  # fmt: skip
SCALE = ErrorScale(tasks={"train": TASK}, unseen_device=0.3)
TRAITS = st.lists(st.sampled_from(["half precision", "single", "new"]), unique=True)
DISTANCES = st.floats(0, 1)
_ROUNDING = 1e-12  # of sizes that differ by less than a double can say


def test_a_size_is_a_product_of_factors() -> None:
    assert TASK.size([], 0.0) == pytest.approx(0.1)
    assert TASK.size(["half precision", "single"], 0.0) == pytest.approx(0.1 * exp(0.25))
    assert TASK.size(["unheard of"], 0.2) == pytest.approx(0.1 * exp(0.4))
    assert TASK.size([], 0.4) == TASK.size([], 0.9) == pytest.approx(0.1 * exp(0.8))


@given(TRAITS, DISTANCES, DISTANCES, st.booleans())
def test_further_jobs_are_no_surer(traits: list[str], near: float, far: float, known: bool) -> None:
    near, far = sorted([near, far])
    near_spread, other = (SCALE.spread("train", traits, at, known=known) for at in (near, far))
    more = 1 + _ROUNDING
    assert other.low <= near_spread.low * more and near_spread.high <= other.high * more
    assert near_spread.low <= 1 <= near_spread.high
    assert near_spread.median <= other.median * more and near_spread.p90 <= other.p90 * more
    assert near_spread.median < near_spread.p90


@given(TRAITS, DISTANCES)
def test_a_device_that_no_fit_has_seen_is_no_surer(traits: list[str], distance: float) -> None:
    seen, unseen = (SCALE.spread("train", traits, distance, known=known) for known in (True, False))
    assert seen.at_least(unseen) == unseen
    assert unseen.median / seen.median == pytest.approx(unseen.p90 / seen.p90)


def test_ends_by_hand() -> None:
    """Sizes of 0.1: residuals from -0.15 to 0.2, and with squares of 0.3 beside them."""
    seen = SCALE.spread("train", [], 0.0, known=True)
    assert (seen.low, seen.high) == (pytest.approx(exp(-0.2)), pytest.approx(exp(0.15)))
    assert (seen.median, seen.p90) == (pytest.approx(0.08), pytest.approx(0.25))
    unseen = SCALE.spread("train", [], 0.0, known=False)
    assert unseen.low == pytest.approx(exp(-hypot(0.2, 0.3)))
    assert unseen.high == pytest.approx(exp(hypot(0.15, 0.3)))
    grown = (hypot(0.15, 0.3) + hypot(0.2, 0.3)) / 0.35
    assert unseen.median == pytest.approx(0.08 * grown)


def test_an_interval_holds_the_answer_itself() -> None:
    """Where all runs were too slow, or too fast."""
    slow = ErrorScale(tasks={"train": replace(TASK, low=0.5, high=1.0)}, unseen_device=0.0)
    spread = slow.spread("train", [], 0.0, known=True)
    assert spread.high == 1.0 and spread.low == pytest.approx(exp(-0.1))
    fast = ErrorScale(tasks={"train": replace(TASK, low=-1.0, high=-0.5)}, unseen_device=0.0)
    other = fast.spread("train", [], 0.0, known=True)
    assert other.low == 1.0 and other.high == pytest.approx(exp(0.1))


SPREADS = st.builds(
    Spread, low=st.floats(0.01, 1), high=st.floats(1, 100), median=st.floats(0, 1),
    p90=st.floats(0, 5),
)  # fmt: skip


@given(SPREADS, SPREADS)
def test_the_wider_of_two_holds_both(first: Spread, two: Spread) -> None:
    both = first.at_least(two)
    assert both == two.at_least(first)
    assert both.at_least(first) == both
    assert both.low <= min(first.low, two.low) and both.high >= max(first.high, two.high)


def test_traits_name_what_an_error_may_depend_on() -> None:
    few = traits_of(
        kind="ring", network="transformer", num_devices=8, half=False, several_machines=False,
        framework="pytorch", compiled=False,
    )  # fmt: skip
    assert few[:3] == ("ring", "transformer", "ring, transformer")
    assert few[4] == "pytorch" and len(few) == 5
    all_of_them = traits_of(
        kind="ring", network="transformer", num_devices=8, half=True, several_machines=True,
        framework="pytorch", compiled=True, devices=("T4", "V100"),
    )  # fmt: skip
    assert all_of_them[:5] == few
    assert all_of_them[5:] == (
        "half precision", "compiled", "ring, machines", "device T4", "device V100")  # fmt: skip


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=30))
def test_quantiles_of_errors_lie_among_them(logs: list[float]) -> None:
    """Whatever the order; and weights in proportion are the same weights."""
    errors = np.abs(np.expm1(logs))
    median, p90 = error_quantiles(np.array(logs), np.ones(len(logs)))
    assert errors.min() - 1e-12 <= median <= p90 <= errors.max() + 1e-12
    mixed = error_quantiles(np.array(logs[::-1]), np.full(len(logs), 0.25))
    assert mixed == pytest.approx((median, p90))


def test_heavy_runs_draw_the_median() -> None:
    logs = np.log1p([0.1, 0.2, 0.3])
    assert error_quantiles(logs, np.ones(3))[0] == pytest.approx(0.2)
    assert error_quantiles(logs, np.array([100.0, 1.0, 1.0]))[0] < 0.105
    assert error_quantiles(logs, np.array([1.0, 1.0, 100.0]))[0] > 0.295
    assert error_quantiles(np.log1p([0.7]), np.ones(1)) == pytest.approx((0.7, 0.7))


def runs(factor: float = 1.0, *, distance: bool = False):  # type: ignore[no-untyped-def]
    """Twelve families whose errors are of both signs, by trait."""
    draw = np.random.default_rng(0)
    checked = []
    for number in range(12):
        for device, size in (("V100", 5.0), ("K80", 30.0)):
            for _ in range(4):
                at = float(draw.uniform(0, 0.4)) if distance else 0.0
                error = float(draw.laplace()) * size * factor * (1 + 5 * at)
                checked.append(
                    checked_run("single", device, max(error, -90.0), family=f"f{number}",
                                distance=at)
                )  # fmt: skip
    return checked


def spread_of(some, device: str, distance: float = 0.0) -> Spread:  # type: ignore[no-untyped-def]
    traits = traits_of(
        kind="single", network="convolutional", num_devices=1, half=False, several_machines=False,
        framework="tensorflow", compiled=False, devices=(device,),
    )  # fmt: skip
    return ErrorScale.of(RunColumns.of(some)).spread("train", traits, distance, known=True)


def test_runs_that_are_further_off_widen_their_own_kind() -> None:
    near, far = (spread_of(runs(), device) for device in ("V100", "K80"))
    assert far.high / far.low > 1.5 * near.high / near.low
    assert far.p90 > near.p90 > 0
    doubled = spread_of(runs(2.0), "V100")
    assert doubled.p90 > 1.5 * near.p90


def test_the_order_of_runs_does_not_matter() -> None:
    some = runs()
    here, there = spread_of(some, "V100"), spread_of(some[::-1], "V100")
    assert here.low == pytest.approx(there.low, rel=1e-3)
    assert here.p90 == pytest.approx(there.p90, rel=1e-3)


def test_errors_that_grow_with_the_distance_have_a_slope() -> None:
    near, far = (spread_of(runs(distance=True), "V100", at) for at in (0.0, 0.4))
    assert far.p90 > 1.3 * near.p90
    flat = ErrorScale.of(RunColumns.of(runs()))
    assert flat.tasks["train"].slope == 0.0


def test_a_scale_comes_back_from_its_file() -> None:
    text = scale_to_json(SCALE)
    assert from_json(ErrorScale, json.loads(text), where="test") == replace(
        SCALE, tasks={"train": replace(TASK, base=round(TASK.base, 4))}
    )
    small = replace(TASK, effects={"none": 0.00004, "some": 0.12346})
    kept = json.loads(scale_to_json(replace(SCALE, tasks={"train": small})))
    assert kept["tasks"]["train"]["effects"] == {"some": 0.1235}
    assert shipped_scale().tasks
