"""The timelines of device and host, and the interval that doubts about both leave."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.answers.by_simulator import ask_step
from driple.answers.ready_job import ReadyJob
from driple.answers.timelines import UNKNOWN_HOST, Timelines, timelines
from driple.answers.tuned_steps import tuned_steps
from driple.catalog.catalog import read_catalog
from driple.catalog.fields import TUNED
from driple.cluster.setting import Setting
from driple.jobs.load import load_job
from driple.jobs.options import JobOptions
from driple.simulate.place import Place, place_of
from driple.simulate.prepared_job import PreparedJob
from driple.simulate.run import simulated_step_s
from tests.simulate.jobs import net

SETTING = Setting.parse("1xH100")
KERNELS = (0.5, 2.0)


def lines_of(batch_size: int, place: Place | None = None, *, known: bool = False) -> Timelines:
    """Of a step of many small, or of a few large ops."""
    place = place_of(SETTING) if place is None else place
    job = PreparedJob(net(batch_size, depth=30))
    step_s = simulated_step_s(job, place.setting, place.calibration)
    lines = timelines(job, place, step_s, host_is_known=known)
    assert lines is not None
    return lines


def test_a_step_that_keeps_its_device_busy_is_as_uncertain_as_its_kernels() -> None:
    lines = lines_of(2**17)
    assert lines.device_s > 3 * lines.host_s
    assert lines.ends(1.0, KERNELS) == pytest.approx(KERNELS, rel=0.01)


def test_a_step_that_waits_is_as_uncertain_as_its_host() -> None:
    """Whatever the kernels, and less so where the host is known."""
    lines, known = lines_of(1), lines_of(1, known=True)
    assert lines.host_s > 3 * lines.device_s
    host = place_of(SETTING).calibration.model.host
    expected = (UNKNOWN_HOST[0] * host.fastest, UNKNOWN_HOST[1] * host.slowest)
    assert lines.ends(1.0, KERNELS) == pytest.approx(expected, rel=0.01)
    assert known.ends(1.0, KERNELS) == pytest.approx(tuned_steps().host_ends, rel=0.01)


def test_both_timelines_make_the_step() -> None:
    """The simulated one lies between the longer of both and their sum."""
    place, job = place_of(SETTING), PreparedJob(net(512, depth=30))
    lines = timelines(job, place, 1.0, host_is_known=False)
    assert lines is not None
    assert lines.exchange_s == 0
    device = place.calibration.device(place.topology.workers[0])
    step_s = job.plan(device, 0, "round_robin").compute_s + job.update_seconds(device)
    assert max(lines.device_s, lines.host_s) <= step_s * (1 + 1e-3)
    assert step_s <= lines.device_s + lines.host_s


def test_a_step_of_seconds_on_a_very_slow_host_has_an_interval() -> None:
    """Ten thousand times its host would be more than the day that is simulated at most."""
    place, job = place_of(SETTING), PreparedJob(net(8, depth=100))
    slow = place.calibration.with_host(0.04, job.runtime)
    lines = timelines(job, replace(place, calibration=slow), 1.0, host_is_known=True)
    assert lines is not None and lines.host_s > 9


@pytest.mark.parametrize("scheme", ["ddp", "fsdp"])
def test_each_of_several_devices_has_a_host_of_its_own(scheme: str) -> None:
    """What waits is as uncertain as the host; what computes, or waits for a link, as the errors."""
    fast, slow = (place_of(Setting.parse(f"2x{one}@{scheme}")) for one in ("H100", "1xH100/1G"))
    alone = lines_of(1)
    waiting = lines_of(1, fast)
    assert waiting.host_s == pytest.approx(alone.host_s)
    host = fast.calibration.model.host
    expected = (UNKNOWN_HOST[0] * host.fastest, UNKNOWN_HOST[1] * host.slowest)
    low, high = waiting.ends(1.0, (0.1, 10.0))
    share = waiting.exchange_s / (waiting.host_s + waiting.exchange_s)
    assert expected[0] * (1 - share) < low < expected[0]
    assert expected[1] < high < (1 + 10 * share) * expected[1]
    known = lines_of(1, fast, known=True)
    assert known.ends(1.0, KERNELS)[1] < waiting.ends(1.0, KERNELS)[1]
    assert lines_of(2**17, fast).ends(1.0, KERNELS) == pytest.approx(KERNELS, rel=0.02)
    exchanging = lines_of(1, slow)
    assert exchanging.exchange_s > 5 * exchanging.host_s
    assert exchanging.ends(1.0, KERNELS) == pytest.approx(KERNELS, rel=0.15)


@pytest.mark.parametrize("name", ["V100-P1w2/ho-PCIe", "CPU-P1w2", "4xH100@pp2"])
def test_other_settings_have_none(name: str) -> None:
    place = place_of(Setting.parse(name))
    assert timelines(PreparedJob(net(8)), place, 1.0, host_is_known=False) is None


def test_a_tuned_device_has_the_interval_of_tuned_steps(tmp_path: Path) -> None:
    """Error, width and words are of our own steps; fewer runs tell less, and say so."""
    answers = {}
    for runs in (10, 9):
        file = tmp_path / f"{runs}.toml"
        factors = "".join(f"tuned_{name} = 1.1\n" for name in TUNED)
        file.write_text(
            f'format = 1\n[[devices]]\nname = "H100"\n{factors}tuned_host_runs = 8\n'
            f"tuned_runs = {runs}\ntuned_median_pct = 3\ntuned_p90_pct = 9\n"
            'source = "tuned to runs of mine"\ndate = 2026-01-31\n'
        )
        setting = Setting.parse("1xH100", catalog=read_catalog([file]))
        job = ReadyJob(load_job("resnet18", JobOptions(batch_size=8), setting=setting))
        answers[runs] = ask_step(job, place_of(setting))
    stated, interval = answers[10].stated, answers[10].step_time.interval
    assert stated is not None and stated.runs.code == "steps_of_tuned_devices"
    assert stated.median_pct == tuned_steps().median_pct
    assert interval is not None and interval.width < 2.4
    assert answers[10].slow_host is None
    fewer, wider = answers[9].stated, answers[9].step_time.interval
    assert fewer is not None and fewer.runs.code == "published_runs"
    assert wider is not None and wider.width > 0.99 * interval.width
