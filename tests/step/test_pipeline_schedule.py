"""Interleaved stages: the bubble of Narayanan et al. (2021), and passes in flight."""

from __future__ import annotations

import pytest

from driple.errors import GraphError
from driple.step.pipeline_schedule import (
    check_interleaved,
    device_turns,
    first_and_last_s,
    passes_in_flight,
)


@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("chunks", [1, 2, 4])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_the_bubble_is_as_many_times_shorter(devices: int, chunks: int, rounds: int) -> None:
    """(p - 1) (f + b) / v, section 2.2.2: a device has v stages of 1 / v of the blocks each."""
    passes = rounds * devices
    forward_s, backward_s = 1.0 / chunks, 2.0 / chunks
    count = devices * chunks
    _, lasts = first_and_last_s([forward_s] * count, [backward_s] * count, passes, chunks=chunks)
    step_s = max(last + backward_s for last in lasts)
    assert step_s == pytest.approx(3.0 * passes + 3.0 * (devices - 1) / chunks)


@pytest.mark.parametrize(("devices", "chunks", "passes"), [(4, 1, 6), (4, 2, 8), (3, 3, 9)])
def test_each_pass_of_each_stage_runs_once(devices: int, chunks: int, passes: int) -> None:
    for device in range(devices):
        turns = device_turns(device, devices, chunks, passes)
        assert len(set(turns)) == len(turns) == 2 * chunks * passes


def test_passes_in_flight() -> None:
    """1F1B keeps p - i; interleaved (p - i - 1) 2 + (v - 1) p + 1, of 1 / v of the blocks each."""
    assert [passes_in_flight(i, 4, 1, 16) for i in range(4)] == [[4], [3], [2], [1]]
    assert [sum(passes_in_flight(i, 4, 2, 16)) for i in range(4)] == [11, 9, 7, 5]
    assert passes_in_flight(0, 4, 1, 2) == [2]


def test_hands_on_while_it_computes() -> None:
    """A way of one second between stages delays the first of them, not each."""
    forward_s, backward_s, way_s = [1.0] * 4, [2.0] * 4, [0.01] * 3
    plain = first_and_last_s(forward_s, backward_s, 8, chunks=2)
    delayed = first_and_last_s(forward_s, backward_s, 8, chunks=2, handing_s=way_s)
    assert 0 < max(delayed[1]) - max(plain[1]) < 0.2


def test_groups_of_micro_batches() -> None:
    with pytest.raises(GraphError, match=r"groups of the 4 devices .* has 6; take 4 or 8 passes"):
        check_interleaved(4, 2, 6)
    check_interleaved(4, 1, 6)
