"""What a step takes on a slower host, and that the constant is what was measured."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from driple import predict
from driple.answers.by_simulator import ask_simulator
from driple.answers.options import MethodOptions
from driple.answers.ready_job import ReadyJob
from driple.answers.slow_hosts import interval_with, slow_host
from driple.answers.timelines import UNKNOWN_HOST
from driple.catalog.fields import EARLIER_TRAINING, HOST_RUNS
from driple.cluster.setting import Setting
from driple.jobs.load import Job, load_job
from driple.jobs.options import JobOptions
from driple.render.errors_stated import slow_host_sentence
from driple.runs.tuning import TUNED, TunedStep, factors_of
from driple.simulate.calibration import shipped_calibration
from driple.simulate.place import Place, place_of
from driple.simulate.prepared_job import PreparedJob, Program
from driple.simulate.run import iteration_time_s, simulate_steps
from scripts.fits.host_factors import measured_steps
from scripts.fits.hosts import known_hosts, with_usual_host
from tests.simulate.jobs import net

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
SETTING = Setting.parse("1xH100")
MEASURED = ("H100", "H200")


HOST = shipped_calibration().model.host
SLOWEST = HOST.slowest


@cache
def own_steps(device: str) -> list[TunedStep]:
    """Steps that we measured, as the simulator of their device has them."""
    return list(measured_steps(device, shipped_calibration()))


def test_the_usual_host_is_the_mean_of_those_that_were_measured() -> None:
    """The published pace and the factors of three machines, as the calibration has them."""
    factors, usual = known_hosts().factors, known_hosts().usual_factor
    assert HOST.fastest == pytest.approx(min(factors.values()) / usual, rel=1e-3)
    assert pytest.approx(max(factors.values()) / usual, rel=1e-3) == SLOWEST
    for device in MEASURED:
        own = factors_of(own_steps(device))[TUNED.index("host")] * usual
        assert own == pytest.approx(factors[f"measured-{device.lower()}"], rel=0.03)


def test_hosts_that_we_measured_stay_what_they_are_with_steps_left_out() -> None:
    """A fit that has published hosts slower, but not the slowest, moves the mean by their share."""
    model, known = shipped_calibration().model, known_hosts()
    paces = {"op_s": known.published_op_s, "compiled_s": known.published_compiled_s}
    first, second = (
        with_usual_host(
            replace(model, host=replace(HOST, **{name: times * s for name, s in paces.items()})),
            known,
        ).host
        for times in (1.0, 1.5)
    )
    assert first.op_s == pytest.approx(HOST.op_s, rel=1e-3)
    assert first.compiled_s == pytest.approx(HOST.compiled_s, rel=1e-3)
    for name in paces:
        assert getattr(second, name) == pytest.approx(1.5**0.25 * getattr(first, name))
    slowest = max(known.factors.values()) * known.published_op_s
    assert second.slowest * second.op_s == pytest.approx(slowest)


def test_a_host_is_no_slower_in_training_beside_its_time_for_each_tensor() -> None:
    """The pace of training steps alone is that of forward passes; of the H200 too."""
    for device in MEASURED:
        forward, trained = (
            factors_of([one for one in own_steps(device) if bool(one.update_starts) is trains])[4]
            for trains in (False, True)
        )
        assert trained == pytest.approx(forward, rel=0.15)


def step_of(batch_size: int) -> PreparedJob:
    """A step of many small, or of a few large ops."""
    return PreparedJob(net(batch_size, depth=30))


def simulated_s(job: PreparedJob, place: Place) -> float:
    """A step on these machines."""
    records = simulate_steps(job, place.topology, place.calibration, num_steps=20)
    return iteration_time_s(place.topology, records)


def test_a_step_that_waits_for_its_host_is_slower_on_a_slower_one() -> None:
    """By at most the factor; one of large ops is not."""
    place = place_of(SETTING)
    few = step_of(1)
    usual_s = simulated_s(few, place)
    slow = slow_host(few, place, step_s=usual_s)
    assert slow is not None
    assert 1.1 * usual_s < slow.step_s < SLOWEST * 1.05 * usual_s
    assert slow.slow_us == pytest.approx(SLOWEST * slow.usual_us)
    many = step_of(2**17)
    assert slow_host(many, place, step_s=simulated_s(many, place)) is None


def place_on(*facts: dict[str, float]) -> Place:
    """Devices with what the user's own runs tell of each."""
    setting = Setting.parse(f"{len(facts)}x{SETTING.device}")
    place = place_of(setting)
    workers = [
        replace(device, facts={**device.facts, **own})
        for device, own in zip(place.topology.workers, facts, strict=True)
    ]
    return replace(place, topology=replace(place.topology, workers=tuple(workers)))


@pytest.mark.parametrize("runs", [None, 0, 3])
def test_a_host_that_runs_tell_of_has_no_slower_one(runs: int | None) -> None:
    """Runs that do not wait for it tell nothing."""
    facts = {"tuned_host": 1.5} | ({} if runs is None else {HOST_RUNS: runs})
    slow = slow_host(step_of(1), place_on(facts), step_s=1e-9)
    assert (slow is None) is (runs != 0)
    if slow is not None:
        assert slow.slow_us == pytest.approx(SLOWEST * slow.usual_us)
        assert "no run of yours tells" in slow_host_sentence(slow)


def test_a_file_with_a_factor_of_training_means_a_host_of_the_same_pace() -> None:
    """As earlier versions wrote it; a factor that no run told of counts for nothing."""
    step = step_of(1)
    now, earlier, untold = (
        simulated_s(step, place_on(facts))
        for facts in (
            {"tuned_host": 2.0 * HOST.fastest, HOST_RUNS: 3},
            {"tuned_host": 2.0, EARLIER_TRAINING[0]: 1.5, EARLIER_TRAINING[1]: 4},
            {"tuned_host": 2.0, EARLIER_TRAINING[0]: 1.0, EARLIER_TRAINING[1]: 0},
        )
    )
    assert now == pytest.approx(earlier) == pytest.approx(untold)


def test_the_host_of_a_tuned_device_is_not_slowed_beside_another() -> None:
    """Whatever the order of the machines; and its step is that of the slower of both."""
    facts = {"tuned_host": 3.04, HOST_RUNS: 3}
    job = step_of(1)
    first, other = (
        slow_host(job, place_on(*both), step_s=1e-9) for both in ((facts, {}), ({}, facts))
    )
    assert first is not None and other is not None
    assert first.step_s == pytest.approx(other.step_s, rel=0.05)
    assert first.step_s < 1.1 * simulated_s(job, place_on(facts, facts))


def test_a_host_is_not_simulated_where_servers_take_longer_than_it_could_add(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step grows by no more than twice what a slower host adds to its computing."""
    place, prepared, simulations = place_of(Setting.parse("V100-P1w2/ho-1G")), step_of(8), []

    def counted(*arguments: object, num_steps: int) -> list[object]:
        simulations.append(arguments)
        return simulate_steps(*arguments, num_steps=num_steps)  # type: ignore[arg-type]

    monkeypatch.setattr("driple.answers.slow_hosts.simulate_steps", counted)
    assert slow_host(prepared, place, step_s=1e3) is None
    assert not simulations
    assert slow_host(prepared, place, step_s=1e-6) is not None
    assert len(simulations) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("V100-P1w2/ho-40G", {True, False}),
        ("V100-P1w2/ho-25G", {True, False}),
        ("V100-P1w2/ho-10G", {False}),  # its network decides
    ],
)
def test_no_slower_host_that_matters_is_left_out(
    name: str, expected: set[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From steps that wait for their host to steps that do not: the same with its simulation."""
    setting = Setting.parse(name)
    place, matters = place_of(setting), set()
    for batch_size, synchronous in itertools.product((1, 64, 128, 256, 2**13), (True, False)):
        job = PreparedJob(net(batch_size, depth=100), program=Program(synchronous=synchronous))
        step_s = simulated_s(job, place)
        slow = slow_host(job, place, step_s=step_s)
        with monkeypatch.context() as always:
            always.setattr("driple.answers.slow_hosts._added_s", lambda *_: math.inf)
            assert slow_host(job, place, step_s=step_s) == slow
        matters.add(slow is not None)
    assert matters == expected


def test_processors_have_no_host() -> None:
    cpu = Setting.parse("CPU-P1w2")
    assert slow_host(step_of(1), place_of(cpu), step_s=1e-9) is None


@pytest.mark.parametrize("trains", [True, False])
def test_the_named_host_gives_the_named_step(trains: bool) -> None:
    """With `--set host_us_per_op`; also for a compiler, and PyTorch's update."""
    for program in (Program(), Program(fused=True), Program(library="tensorflow")):
        job = PreparedJob(replace(net(1, depth=30), is_training=trains), program=program)
        place = place_of(SETTING)
        slow = slow_host(job, place, step_s=1e-9)
        assert slow is not None
        known = place.calibration.with_host(slow.slow_us / 1e6, job.runtime)
        step_s = simulated_s(job, replace(place, calibration=known))
        assert step_s == pytest.approx(slow.step_s, rel=1e-6)


@pytest.fixture(scope="module")
def job() -> Job:
    """A small step of a model of images."""
    return load_job("resnet18", JobOptions(batch_size=2), setting=SETTING)


def test_an_interval_holds_the_step_on_a_slower_host(job: Job) -> None:
    """And the answer names it, unless the user gave his host's time."""
    place = place_of(SETTING)
    answer = ask_simulator(ReadyJob(job), place)
    assert answer.slow_host is not None
    ends = answer.step_time.interval
    assert ends is not None and ends.high is not None
    assert ends.high >= answer.slow_host.step_s
    known = ask_simulator(
        ReadyJob(job), place, MethodOptions(host_us_per_op=answer.slow_host.usual_us)
    )
    assert known.slow_host is None
    narrow = known.step_time.interval
    assert narrow is not None and narrow.high is not None and narrow.high <= ends.high


def test_the_answer_states_it(job: Job) -> None:
    """In `predict` and its JSON."""
    answer = predict(job, SETTING, method="simulator").answers[0]
    assert answer.slow_host is not None
    stated = answer.to_dict()["slow_host"]
    assert isinstance(stated, dict) and stated["step_s"] == answer.slow_host.step_s
    assert f"that takes {answer.slow_host.slow_us:.0f} us" in slow_host_sentence(answer.slow_host)
    known = predict(job, SETTING, method="simulator", host_us_per_op=35.0).answers[0]
    assert known.slow_host is None


def test_an_interval_is_widened_to_nine_of_ten_steps_on_a_slower_host() -> None:
    """Upwards alone, never narrower, and nothing is made up where no interval was."""
    assert interval_with((0.8, 1.2), 2.0) == (0.8, UNKNOWN_HOST[1] * 2.0)
    assert interval_with((0.8, 1.2), None) == (0.8, 1.2)
    assert interval_with((0.8, 4.0), 2.0) == (0.8, 4.0)
    assert interval_with(None, 2.0) is None


def test_the_answer_of_a_step_that_waits_for_its_host_holds_the_slower_host() -> None:
    """On an H100 a small step waits for the host, and its interval ends above the slower step."""
    answer = predict("mobilenet_v2", "1xH100", method="simulator").answers[0]
    assert answer.slow_host is not None and answer.iteration_time_s.interval is not None
    assert answer.slow_host.as_measured  # steps of PyTorch 2 that nothing compiles
    slow_s = answer.slow_host.step_s
    assert slow_s > 1.1 * answer.iteration_time_s.value
    assert answer.iteration_time_s.interval.high >= slow_s
