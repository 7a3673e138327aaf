"""What schedulers get to know of a training: its time, its interval, its machines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.api.planning import PlanResult
from driple.api.predicting import predict
from driple.errors import ConfigError
from driple.jobs.load import JobOptions
from driple.planning.ranking import Choice
from driple.remarks import Remark
from driple.render.emit.forms import FORMS, emitted
from driple.render.emit.scheduled_job import (
    TrainingAmount,
    scheduled_answer,
    scheduled_offers,
    scheduled_plan,
)
from tests.planning.gpt import write_gpt
from tests.render.emit.trainings import gpt_plan, two_machines


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> PlanResult:
    return gpt_plan(tmp_path_factory.mktemp("gpt"))


def test_the_limit_of_a_plan_is_the_upper_end_of_its_interval(result: PlanResult) -> None:
    job = scheduled_plan(two_machines(result))
    best = two_machines(result).choice.best
    assert best is not None
    assert best.factors is not None
    assert (job.num_machines, job.num_devices, job.device) == (2, 8, "A100")
    assert job.training_s == best.training_s
    assert (job.lower_s, job.limit_s) == pytest.approx(
        tuple(end * best.training_s for end in best.factors)
    )
    assert job.limit_minutes is not None
    assert 0 <= 60 * job.limit_minutes - best.factors[1] * best.training_s < 60
    assert (job.cpus, job.host_memory_mb) == (96, 1_152_000)
    assert job.instance is not None
    assert job.instance.name == "p4d.24xlarge"


def test_an_unknown_error_leaves_the_limit_open_or_to_the_deadline(result: PlanResult) -> None:
    best = two_machines(result).choice.best
    assert best is not None
    odd = replace(result, choice=Choice(best=replace(best, answer=None)))
    assert scheduled_plan(odd).limit_minutes is None
    dated = replace(odd, limits=replace(odd.limits, deadline_s=7200.0))
    assert scheduled_plan(dated).limit_minutes == 120


def test_nothing_recommended_has_no_file(result: PlanResult) -> None:
    with pytest.raises(ConfigError, match="needs a recommended offer"):
        scheduled_plan(replace(result, choice=Choice(why=Remark.of_text("nothing fits"))))
    best = two_machines(result).choice.best
    assert best is not None
    measured = Choice(best=replace(best, candidate=None), why=Remark.of_text("take it"))
    with pytest.raises(ConfigError, match="was measured; give a JOB"):
        scheduled_plan(replace(result, choice=measured))
    assert len(scheduled_offers(result)) == len(result.offers)


def test_an_answer_takes_as_many_steps_as_its_samples_need(tmp_path: Path) -> None:
    """100,000 samples in batches of 8 on 4 devices are 3,125 steps an epoch."""
    options = JobOptions(seq_len=64, batch_size=8, precision="amp-bf16")
    (answer,) = predict(write_gpt(tmp_path), "4xA100", options=options).answers
    time = answer.iteration_time_s
    assert time.interval is not None
    assert time.interval.high is not None
    job = scheduled_answer(answer, TrainingAmount(samples=100_000, epochs=2))
    assert job.training_s == pytest.approx(6250 * time.value)
    assert job.lower_s == pytest.approx(6250 * time.interval.low)
    assert job.limit_s == pytest.approx(6250 * time.interval.high)
    assert scheduled_answer(answer, TrainingAmount(steps=6250)).training_s == pytest.approx(
        job.training_s
    )
    tokens = scheduled_answer(answer, TrainingAmount(tokens=6_400_000, epochs=2))
    assert tokens.training_s == pytest.approx(job.training_s)
    with pytest.raises(ConfigError, match="give --set training_steps=N"):
        scheduled_answer(answer, TrainingAmount(epochs=3))


@pytest.mark.parametrize(
    ("amount", "message"),
    [
        ({}, "give --set training_steps=N"),
        ({"steps": 3, "samples": 5}, "--set training_steps and --set samples both"),
        ({"steps": 3, "epochs": 5}, "--set training_steps and --set epochs both"),
        ({"samples": 3, "tokens": 5}, "--set samples and --set tokens both"),
    ],
)
def test_no_amount_and_two_are_refused(amount: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingAmount(**amount)


def test_what_cannot_be_submitted_is_refused(tmp_path: Path) -> None:
    job = write_gpt(tmp_path, layers=48, width=2048)
    (large,) = predict(job, "1xT4", options=JobOptions(seq_len=256, batch_size=64)).answers
    with pytest.raises(ConfigError, match="does not fit on 1xT4"):
        scheduled_answer(large, TrainingAmount(steps=10))
    (servers,) = predict("datasets/examples/resnet20.pbtxt", "V100-P1w2").answers
    with pytest.raises(ConfigError, match="is not of them; give --setting"):
        scheduled_answer(servers, TrainingAmount(steps=10))


def test_all_forms_are_deterministic_and_an_unknown_one_is_refused(result: PlanResult) -> None:
    job = scheduled_plan(two_machines(result))
    for form in FORMS:
        assert emitted([job], form) == emitted([job], form)
        assert emitted([job], form).endswith("\n")
    with pytest.raises(ConfigError, match="--emit must be one of slurm, "):
        emitted([job], "pbs")
