"""The 1F1B schedule: closed forms of its length, and stages that hold everything once."""

from __future__ import annotations

import pytest

from driple.remarks import remark
from driple.render.remarks import sentence
from driple.simulate.calibration import shipped_calibration
from driple.step.pipeline_schedule import first_and_last_s
from driple.step.stages import divides_into, stages_of
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


@pytest.mark.parametrize(
    ("blocks", "count", "allowed"),
    [
        (12, 4, True),
        (12, 8, False),  # 2 of 1.5
        (61, 4, True),  # 16 of 15.25
        (61, 16, True),  # 4 of 3.81
        (61, 20, False),  # 4 of 3.05
        (94, 48, True),  # 2 of 1.96
        (100, 11, True),  # 10 of 9.09: 1.1 times as many
        (99, 10, True),
        (11, 2, True),  # 6 of 5.5
        (9, 2, False),  # 5 of 4.5
        (4, 8, False),
        (0, 1, False),
    ],
)
def test_the_fullest_stage_has_at_most_a_tenth_more_than_the_mean(
    blocks: int, count: int, allowed: bool
) -> None:
    assert divides_into(blocks, count) == allowed


def test_blocks_of_many_stages_are_counted_in_words() -> None:
    few = remark("uneven_stages", num_blocks=61, blocks_per_stage=(16, 15, 15, 15))
    assert sentence(few) == "61 blocks do not divide into 4 stages: 16, 15, 15, 15"
    many = remark("uneven_stages", num_blocks=61, blocks_per_stage=(4,) * 13 + (3,) * 3)
    assert sentence(many).endswith("into 16 stages: 13 have 4, 3 have 3")
