"""Zeng's equations: his own numbers, limits, and the queue step by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from driple.analytic import zeng
from driple.errors import ConfigError
from scripts.fits import zeng_formulas
from scripts.published.rows.cells import read_raw

DATA = Path(__file__).parents[2] / "datasets" / "runs" / "published"
FLOPS = {row["model"]: row for row in read_raw(DATA / "zeng_flops.csv.gz")}
ROWS = read_raw(DATA / "zeng_iteration_time.csv.gz")
CLOCKS = {"Xeon E5-2620 2.0GHz": 2.0e9, "Xeon E5-2660 2.2GHz": 2.2e9}


def queue(times: list[float], push: float, pull: float) -> float:
    """Algorithm 1 line by line."""
    times = sorted(times)
    end = times[0] + push
    for time in times[1:]:
        end = end + push if end >= time else time + push
    return end + len(times) * pull


@pytest.mark.parametrize("seed", range(5))
def test_the_closed_form_is_the_queue(seed: int) -> None:
    random = np.random.default_rng(seed)
    times = random.uniform(0, 3, (50, 7))
    push, pull = random.uniform(0, 1, 50), random.uniform(0, 1, 50)
    seconds = zeng.unequal_workers_seconds(times, push, pull)
    wanted = [queue(list(row), a, b) for row, a, b in zip(times, push, pull, strict=True)]
    np.testing.assert_allclose(seconds, wanted, rtol=1e-12)


def test_equal_workers_are_equation_29_and_a_slow_network_equation_32() -> None:
    assert zeng.unequal_workers_seconds([2.0] * 4, 0.5, 0.25) == pytest.approx(
        zeng_formulas.equal_workers_seconds(2.0, 0.5, 0.25, 4)
    )
    times = [1.0, 1.5, 2.0]
    assert zeng.unequal_workers_seconds(times, 5.0, 1.0) == pytest.approx(
        zeng_formulas.network_bound_seconds(times, 5.0, 1.0)
    )
    assert zeng.unequal_workers_seconds(times, 0.0, 0.0) == pytest.approx(2.0)


def test_example_of_figure_3() -> None:
    """Two windows of 2 x 2 x 3 over 5 x 5 x 3: 24 FLOPs an element, 576 in all."""
    assert zeng_formulas.window_flops(3, 2, 2) == 24
    assert zeng_formulas.convolution_flops(3, (2, 2), 2, (4, 4)) == 24 * 32


@pytest.mark.parametrize("model", [name for name, row in FLOPS.items() if row["weights_params"]])
def test_backward_flops_of_table_1_come_from_85_a_weight(model: str) -> None:
    row = FLOPS[model]
    flops = zeng.backward_flops(float(row["weights_params"]), flops_per_weight=85)
    assert flops == pytest.approx(float(row["backward_flops_per_iteration"]), rel=1e-12)
    assert zeng.bias_and_weight_flops()[1] == 89  # what equations 23 to 26 say


def _simd(row: dict[str, str]) -> float:
    """FLOPs a cycle that the workbook's predictions come from; the paper says 2."""
    if row["model"] == "alexnet":
        return 2.6
    return 2.5 if row["model"] == "vgg19" and "2.2" in row["worker_device"] else 2.4


@pytest.mark.parametrize("platform", ["standalone-cpu", "standalone-gpu"])
def test_predictions_of_tables_2_and_3_are_his(platform: str) -> None:
    """Within the digits that the workbook keeps, but where paper and workbook differ."""
    off = []
    for row in ROWS:
        if row["platform"] != platform or row["model"] not in FLOPS or not row["predicted_s"]:
            continue
        known = FLOPS[row["model"]]
        flops = zeng_formulas.iteration_flops(
            float(row["batch_per_worker"]),
            float(known["forward_all_flops_per_image"] or known["forward_conv_flops_per_image"]),
            float(known["backward_flops_per_iteration"]),
        )
        if platform == "standalone-cpu":
            predicted_s = zeng_formulas.cpu_seconds(flops, CLOCKS[row["worker_device"]], _simd(row))
        else:
            predicted_s = zeng_formulas.gpu_seconds(flops, 1.545e9, 2304)
        off.append(abs(float(predicted_s) / float(row["predicted_s"]) - 1))
    assert len(off) > 25
    assert np.max(off) < 0.01


def test_more_of_everything_helps_or_hurts_as_it_must() -> None:
    times = np.array([1.0, 1.2, 3.0])
    rates = np.logspace(8, 11, 20)
    seconds = zeng.unequal_workers_seconds(
        times, zeng.transfer_s(1e8, rates), zeng.transfer_s(1e8, rates)
    )
    assert (np.diff(seconds) < 0).all()
    assert seconds[-1] == pytest.approx(3.0, rel=0.02)
    slower = zeng.unequal_workers_seconds(times * 2, 0.1, 0.1)
    assert slower > zeng.unequal_workers_seconds(times, 0.1, 0.1)


def test_odd_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="bits_per_s must be above 0"):
        zeng.transfer_s(1e6, 0)
    with pytest.raises(ConfigError, match="num_workers"):
        zeng_formulas.equal_workers_seconds(1, 1, 1, -2)
    with pytest.raises(ConfigError, match="one worker or more"):
        zeng.unequal_workers_seconds([], 1, 1)


def test_what_is_no_number_or_no_worker_is_refused() -> None:
    """In our own words, not in those of NumPy."""
    with pytest.raises(ConfigError, match="numbers are needed, got 'fast'"):
        zeng_formulas.gpu_seconds("fast", 1e9, 10)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="numbers are needed"):
        zeng_formulas.forward_flops([[1.0], [1.0, 2.0]])  # type: ignore[list-item]
    for workers in (1.0, []):
        with pytest.raises(ConfigError, match="one worker or more"):
            zeng_formulas.network_bound_seconds(workers, 1.0, 1.0)  # type: ignore[arg-type]
