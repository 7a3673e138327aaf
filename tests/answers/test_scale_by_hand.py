"""The scale of errors from few runs: the likeliest sizes, their folds and quantiles, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp, expm1, log, sqrt
from typing import Any

import numpy as np
import pytest

from driple.answers.checked_runs import CheckedRun, RunColumns
from driple.answers.error_scale import ErrorScale, TaskScale, error_quantiles, traits_of
from tests.answers.checked import checked_run

RIDGE, LEAST = 4.0, 0.01


def run_of(ratio: float, family: str, device: str = "V100", **changes: Any) -> CheckedRun:
    """A run whose simulated time is so many times the published one, of weight 1 unless changed."""
    return checked_run("single", device, 100 * (ratio - 1), family=family, **changes)


def scale_of(*runs: CheckedRun) -> ErrorScale:
    return ErrorScale.of(RunColumns.of(runs))


def train_of(*runs: CheckedRun) -> TaskScale:
    return scale_of(*runs).tasks["train"]


def test_a_family_alone_has_the_mean_size_of_its_residuals() -> None:
    """A hundredth is added to each; no trait differs, so none has an effect."""
    up, down = run_of(1.2, "a"), run_of(0.7, "a")
    scale = train_of(up, down)
    size = (log(1.2) - log(0.7)) / 2 + LEAST
    assert scale.base == pytest.approx(log(size), abs=1e-3)
    assert scale.slope == 0.0
    assert max(map(abs, scale.effects.values())) < 1e-3
    assert scale.high == pytest.approx(log(1.2) / size, rel=2e-3)
    assert scale.low == pytest.approx(log(0.7) / size, rel=2e-3)
    assert scale.median == pytest.approx((0.2 + 0.3) / 2 / size, rel=2e-3)
    assert scale.p90 == pytest.approx(0.3 / size, rel=2e-3)


def test_runs_of_a_family_weigh_one_together() -> None:
    """Four of one family and one of another: half and half, for the size of all."""
    some = [*(run_of(1.5, "a") for _ in range(4)), run_of(1.1, "b")]
    size = (log(1.5) + log(1.1)) / 2 + LEAST
    assert train_of(*some).base == pytest.approx(log(size), abs=1e-3)
    light = [run_of(1.5, "a", weight=0.25), run_of(1.1, "b", weight=0.5)]  # less than one stays so
    size = (0.25 * log(1.5) + 0.5 * log(1.1)) / 0.75 + LEAST
    assert train_of(*light).base == pytest.approx(log(size), abs=1e-3)


def test_no_family_is_judged_by_itself() -> None:
    """Of two, each is measured by the size of the other."""
    scale = train_of(run_of(1.5, "a"), run_of(1.1, "b"))
    large = log(1.5) / (log(1.1) + LEAST)
    small = log(1.1) / (log(1.5) + LEAST)
    assert scale.high == pytest.approx(large, rel=5e-3)
    assert scale.low == pytest.approx(small, rel=5e-3)
    errors = [0.5 / (log(1.1) + LEAST), 0.1 / (log(1.5) + LEAST)]
    assert scale.median == pytest.approx(sum(errors) / 2, rel=5e-3)
    assert scale.p90 == pytest.approx(max(errors), rel=5e-3)


def test_each_task_has_its_own_scale() -> None:
    scale = scale_of(run_of(1.2, "a"), run_of(1.6, "a", task="forward"))
    assert set(scale.tasks) == {"train", "forward"}
    sizes = {task: own.size([], 0.0) for task, own in scale.tasks.items()}
    assert sizes["train"] == pytest.approx(log(1.2) + LEAST, rel=2e-3)
    assert sizes["forward"] == pytest.approx(log(1.6) + LEAST, rel=2e-3)


def test_runs_on_devices_that_were_left_out_give_no_sizes_where_there_are_others() -> None:
    out = run_of(3.0, "a", held_out="device")
    assert train_of(run_of(1.2, "a"), out) == train_of(run_of(1.2, "a"))
    alone = train_of(out)
    assert alone.size([], 0.0) == pytest.approx(log(3.0) + LEAST, rel=2e-3)
    assert not any(name.startswith("device") for name in alone.effects)
    assert "device V100" in train_of(run_of(1.2, "a")).effects


def test_what_an_unseen_device_adds_in_squares() -> None:
    """So much that the run on it lies just inside; nothing where it does so anyway."""
    seen = [run_of(1.2, "a"), run_of(0.8, "a")]
    scale = train_of(*seen)
    assert scale_of(*seen).unseen_device == 0.0
    for ratio, end in ((2.0, log(1.2)), (0.4, log(0.8))):
        added = scale_of(*seen, run_of(ratio, "a", held_out="device")).unseen_device
        assert added == pytest.approx(sqrt(log(ratio) ** 2 - end**2), rel=5e-3)
    inside = scale_of(*seen, run_of(1.05, "a", held_out="device"))
    assert inside.unseen_device == 0.0
    assert inside.tasks["train"] == scale


def test_nine_of_ten_runs_on_unseen_devices_count() -> None:
    """Those of one device weigh ten together: 30 runs of it as much as ten of another."""
    seen = [run_of(1.2, "a"), run_of(0.8, "a")]
    near = [run_of(2.0, "a", "T4", held_out="device") for _ in range(30)]
    far = [run_of(4.0, "a", "P4", held_out="device") for _ in range(10)]
    near_log, far_log = (sqrt(log(ratio) ** 2 - log(1.2) ** 2) for ratio in (2.0, 4.0))
    much = scale_of(*seen, *near, *far).unseen_device
    assert much == pytest.approx(far_log, rel=5e-3)
    # One run of it beside them: middles at 10 - 1/6 and 10.5 of 11, and 0.9 of 11 is 9.9.
    few = scale_of(*seen, *near, far[0]).unseen_device
    share = (9.9 - (10 - 1 / 6)) / (10.5 - (10 - 1 / 6))
    assert few == pytest.approx(near_log + share * (far_log - near_log), rel=5e-3)


def cost_of(scale: TaskScale, some: list[tuple[float, tuple[str, ...], float]]) -> float:
    """What is minimised: minus the likelihood of Laplace sizes, and the ridge on all but one."""
    sizes = [scale.size(traits, distance) for _, traits, distance in some]
    fit = sum(log(size) + residual / size for (residual, *_), size in zip(some, sizes, strict=True))
    effects = [*scale.effects.values(), 0.4 * scale.slope]
    return fit + RIDGE / 2 * sum(effect**2 for effect in effects)


@pytest.mark.parametrize("far", [0.2, 0.4, 0.9])
def test_no_other_sizes_are_more_likely(far: float) -> None:
    """A step of any coefficient, either way, raises the cost; 20 families on two devices."""
    ratios = [(1.05 + 0.02 * i, "V100", 0.0) for i in range(10)]
    ratios += [(1.5 + 0.1 * i, "T4", far) for i in range(10)]
    runs = [
        run_of(ratio, f"f{i}", device, distance=distance)
        for i, (ratio, device, distance) in enumerate(ratios)
    ]
    scale = train_of(*runs)
    assert scale.slope > 0
    assert scale.effects["device T4"] > 0 > scale.effects["device V100"]
    some = [
        (log(ratio) + LEAST, traits_of_run(device), distance) for ratio, device, distance in ratios
    ]
    least = cost_of(scale, some)
    changes: list[Callable[[float], TaskScale]] = [
        lambda step: replace(scale, base=scale.base + step),
        lambda step: replace(scale, slope=scale.slope + step / 0.4),
        *(
            lambda step, name=name: replace(
                scale, effects={**scale.effects, name: scale.effects[name] + step}
            )
            for name in scale.effects
        ),
    ]
    for change in changes:
        for step in (-0.02, 0.02):
            assert cost_of(change(step), some) > least


def traits_of_run(device: str) -> tuple[str, ...]:
    return traits_of(
        kind="single", network="convolutional", num_devices=1, half=False, several_machines=False,
        framework="tensorflow", compiled=False, devices=(device,),
    )  # fmt: skip


def test_residuals_that_fall_with_the_distance_have_no_slope() -> None:
    """What is further off is no surer: all are of one size then."""
    runs = [run_of(1.5, "a"), run_of(1.1, "b", distance=0.4)]
    scale = train_of(*runs)
    assert scale.slope == 0.0
    size = (log(1.5) + log(1.1)) / 2 + LEAST
    assert scale.size(traits_of_run("V100"), 0.4) == pytest.approx(size, rel=2e-3)


def test_quantiles_of_weighted_errors_by_hand() -> None:
    """Weights of 1, 1 and 2: middles at 1/8, 3/8 and 6/8 of them."""
    errors = np.array([0.3, 0.1, 0.2])
    median, p90 = error_quantiles(np.log1p(errors), np.array([2.0, 1.0, 1.0]))
    assert median == pytest.approx(0.2 + 0.1 * (4 - 3) / (6 - 3))
    assert p90 == pytest.approx(0.3)
    ten = np.arange(1, 11) / 10  # middles at 0.05, 0.15, ...: 0.9 lies between the last two
    assert error_quantiles(np.log1p(ten), np.ones(10)) == pytest.approx((0.55, 0.95))
    fast = error_quantiles(np.array([-1.0]), np.ones(1))  # by the published time
    assert fast == pytest.approx((-expm1(-1.0), 1 - exp(-1)))
