"""What a user's own runs tell of one device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.catalog import Device, device_named
from driple.catalog.fields import HOST_RUNS, TUNED
from driple.errors import ConfigError
from driple.runs import tuning
from driple.runs.tuning import LEAST_RUNS, TunedStep, tune, tuned_step
from driple.simulate.calibration import shipped_calibration
from driple.simulate.prepared_job import PreparedJob
from tests.simulate.jobs import net

# A host that is twice as slow, memory that is a third slower.
FACTORS = {"half": 1.0, "tf32": 1.0, "plain": 0.8, "memory": 0.7, "host": 2.0}


def job(number: int, *, trains: bool = True) -> PreparedJob:
    """One of many: few and many ops, small and large ones."""
    graph = net(2 ** (number % 8), depth=2 + 3 * (number % 5))
    return PreparedJob(replace(graph, is_training=trains))


def tuned_device(**factors: float) -> Device:
    """A V100 with factors of a catalogue file."""
    device = device_named("V100")
    facts = {HOST_RUNS: 1} | {f"tuned_{name}": value for name, value in factors.items()}
    return replace(device, facts={**device.facts, **facts})


def seconds_on(prepared: PreparedJob, device: Device) -> float:
    """A step on one device without jitter, as the simulator has it."""
    calibrated = shipped_calibration().device(device)
    return float(prepared.times(calibrated).duration_s.sum()) + prepared.update_seconds(calibrated)


def steps(count: int, *, trains: bool = True, **factors: float) -> list[TunedStep]:
    """Steps that took what the simulator says of a tuned device."""
    usual, device = shipped_calibration().device("V100"), tuned_device(**factors)
    jobs = [job(i, trains=trains) for i in range(count)]
    return [
        tuned_step(one, usual, name=str(i), group=str(i), seconds=seconds_on(one, device))
        for i, one in enumerate(jobs)
    ]


@pytest.mark.parametrize(
    "factors",
    [{}, FACTORS, {"host": 9.0}, {"plain": 1.3, "memory": 1.2}, {"host": 4.0, "tf32": 2}],
)
@pytest.mark.parametrize("trains", [True, False])
def test_factors_mean_the_same_as_in_a_catalogue_file(
    factors: dict[str, float], trains: bool
) -> None:
    values = np.array([factors.get(name, 1.0) for name in TUNED])
    for step in steps(6, trains=trains, **factors):
        assert step.predicted_s(values) == pytest.approx(step.seconds, rel=1e-6)


def test_tuning_finds_a_slow_host_and_slow_memory() -> None:
    fit = tune(steps(16, **FACTORS))
    assert np.median(np.abs(fit.before - 1)) > 0.15
    assert fit.median_pct < 3
    assert fit.helps
    assert fit.factors["host"] == pytest.approx(2.0, rel=0.15)


def test_factors_of_a_device_without_published_rows_are_held_less() -> None:
    """What its kernels reach is a guess from other devices."""
    runs = steps(6, **FACTORS)
    known, other = (tune([replace(one, is_known=seen) for one in runs]) for seen in (True, False))
    assert other.factors["memory"] < known.factors["memory"] < 1


def test_runs_of_the_usual_device_leave_it_as_it_is() -> None:
    fit = tune(steps(8))
    assert list(fit.factors.values()) == pytest.approx([1.0] * len(TUNED), abs=0.01)
    assert not fit.helps


def test_runs_of_one_group_are_left_out_together() -> None:
    """A run that the others of its model could tell of is not predicted by these."""
    runs = steps(10, **FACTORS)
    odd = [replace(one, group="one", seconds=3 * one.seconds) for one in runs[:3]]
    alone = tune([*odd, *runs[3:]])
    apart = tune([*(replace(one, group=one.name) for one in odd), *runs[3:]])
    assert alone.left_out[0] < apart.left_out[0]


def test_few_runs_are_refused() -> None:
    with pytest.raises(ConfigError, match="too few"):
        tune(steps(LEAST_RUNS - 1))


def test_runs_say_whether_they_tell_of_the_host() -> None:
    """Large batches keep the device busy, small ones wait for the host."""
    few = [PreparedJob(net(1, depth=20 + i)) for i in range(5)]
    many = [PreparedJob(net(2**17, depth=20 + i)) for i in range(5)]
    usual = shipped_calibration().device("V100")
    for jobs, host_runs in ((few, 5), (many, 0), ([*few, *many], 5)):
        fit = tune(
            [
                tuned_step(
                    one, usual, name=str(i), group=str(i), seconds=1.1 * seconds_on(one, usual.spec)
                )
                for i, one in enumerate(jobs)
            ]
        )
        assert fit.host_runs == host_runs


def test_factors_that_no_catalogue_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written that `--catalog` refuses."""
    runs = steps(8)
    monkeypatch.setattr(tuning, "factors_of", lambda _: np.array([1, 1, 1, 1, 51.0]))
    with pytest.raises(
        ConfigError, match=r"the factor of host of these runs .* at most 50, got 51"
    ):
        tune(runs)
