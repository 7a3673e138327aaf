"""The error of PyTorch's steps on processors."""

from dataclasses import replace

import pytest

from driple.answers.processor_steps import processor_error
from driple.cluster.setting import Setting
from driple.render.remarks import sentence
from driple.simulate.processor import ProcessorPace, with_pace

SETTING = Setting.parse("2x1xCPU/400M")
PACE = ProcessorPace(flops_per_s=1e11, bytes_per_s=1e10, op_s=1e-5)


def test_cores_that_nobody_measured_have_a_wider_interval() -> None:
    """By what hosts of one kind differ, and said."""
    facts = with_pace(SETTING.worker.facts, PACE)
    with_facts = processor_error(replace(SETTING, worker=replace(SETTING.worker, facts=facts)))
    untold = processor_error(SETTING)
    assert with_facts.is_checked and not untold.is_checked
    assert with_facts.low_factor is not None and with_facts.high_factor is not None
    assert untold.low_factor is not None and untold.high_factor is not None
    wider = (untold.high_factor / untold.low_factor) / (
        with_facts.high_factor / with_facts.low_factor
    )
    assert wider == pytest.approx(1.779**2, rel=1e-3)
    assert with_facts.median_pct == untold.median_pct


def test_the_number_of_steps_is_said_once() -> None:
    """Sentences of an error have the number of its runs before these words."""
    untold = processor_error(SETTING)
    assert untold.short is not None
    assert sentence(untold.runs) == sentence(untold.short)
    assert not any(word.isdigit() for word in sentence(untold.runs).split())
