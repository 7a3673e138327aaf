"""The three numbers of a processor, from timed steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.api.measured_processor import ProcessorStep, pace_of, processor_of
from driple.errors import MeasureError
from driple.measure.machine.processor import PROGRAMS
from driple.simulate.processor import ProcessorPace

PACE = ProcessorPace(flops_per_s=5e10, bytes_per_s=2e10, op_s=3e-6)


@pytest.fixture(scope="module")
def steps() -> list[ProcessorStep]:
    """Steps that take what cores of a known pace take."""
    measured = [ProcessorStep.of(one.module(), one.batch(), 1.0) for one in PROGRAMS]
    return [replace(step, seconds=step.predicted_s(PACE)) for step in measured]


def test_the_pace_is_found_again(steps: list[ProcessorStep]) -> None:
    pace = processor_of(steps, 2)
    assert pace.flops_per_s == pytest.approx(5e10, rel=1e-3)
    assert pace.bytes_per_s == pytest.approx(2e10, rel=1e-3)
    assert pace.us_per_op == pytest.approx(3.0, rel=1e-3)
    assert pace.median_pct == pytest.approx(0, abs=0.1)
    assert pace.programs == len(PROGRAMS) and pace.threads == 2


def test_a_step_that_is_far_off_moves_it_little(steps: list[ProcessorStep]) -> None:
    odd = [replace(steps[0], seconds=3 * steps[0].seconds), *steps[1:]]
    assert pace_of(odd).flops_per_s == pytest.approx(5e10, rel=0.1)


def test_few_steps_are_refused(steps: list[ProcessorStep]) -> None:
    with pytest.raises(MeasureError, match="4 programs do not show the pace"):
        pace_of(steps[:4])
