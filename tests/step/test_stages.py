"""The 1F1B schedule: closed forms of its length, and stages that hold everything once."""

from __future__ import annotations

import pytest

from driple.simulate.calibration import shipped_calibration
from driple.step.pipeline_schedule import first_and_last_s
from driple.step.stages import stages_of
from tests.schemes.exchanged import LAYERS, transformer


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("passes", [1, 2, 4, 16])
def test_equal_stages_wait_for_one_turn_of_each_other(stages: int, passes: int) -> None:
    """With m micro-batches and p stages: (m + p - 1) (f + b), (p - 1) (f + b) of them a bubble."""
    forward_s, backward_s = 1.0, 2.0
    firsts, lasts = first_and_last_s([forward_s] * stages, [backward_s] * stages, passes)
    assert lasts[0] + backward_s == (passes + stages - 1) * (forward_s + backward_s)
    assert firsts == [stage * forward_s for stage in range(stages)]
    assert lasts == sorted(lasts, reverse=True)


def test_the_slowest_stage_sets_the_pace() -> None:
    _, lasts = first_and_last_s([1.0, 3.0, 1.0], [2.0, 6.0, 2.0], 100)
    assert 100 * 9.0 <= lasts[0] + 2.0 <= 100 * 9.0 + 6.0


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_stages_hold_everything_once(count: int) -> None:
    """Time, parameters and gradients of all stages are those of the whole step."""
    job = transformer(4)
    times = job.times(shipped_calibration().device("H100"))
    stages = stages_of(job.graph, times, count, job.order)
    assert len(stages) == count <= LAYERS
    whole = sum(one.forward.duration_s + one.backward_s for one in stages)
    assert 4 * whole == pytest.approx(times.duration_s.sum())
    assert sum(one.parameter_share for one in stages) == pytest.approx(1.0)
    sent = [
        sum(message.nbytes for segment in one.backward for message in segment.sends)
        for one in stages
    ]
    assert sum(sent) == job.graph.sent_bytes
    assert sent == pytest.approx([job.graph.sent_bytes * one.parameter_share for one in stages])
    if count == LAYERS:
        inner = [one.forward.duration_s for one in stages[1:-1]]
        assert inner == pytest.approx([inner[0]] * len(inner), rel=0.02)
        assert {one.handed_bytes for one in stages[:-1]} == {4 * 4 * 64 * 256}
    assert stages[-1].handed_bytes == 0
