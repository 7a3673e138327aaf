"""Stalls as differences of steps."""

import math

import pytest

from driple.profiler.estimate import stalls_of, warnings_of
from driple.render.remarks import sentence


def same(*values: float) -> dict[int, float]:
    return dict(enumerate(values))


def test_each_stall_is_the_difference_of_its_steps_and_related_as_the_paper_does() -> None:
    """By hand: I/C of a single device, N/W of a single machine, prep and fetch of the whole."""
    times = {1: same(1, 1), 2: same(1.5, 1.5), 3: same(4, 4), 4: same(2, 2), 5: same(4.5, 4.5)}
    stalls = stalls_of(times)
    assert {name: (stall.seconds, stall.pct) for name, stall in stalls.items()} == {
        "interconnect": (0.5, 50.0),
        "network": (3.0, 200.0),
        "prep": (0.5, 12.5),
        "fetch": (2.0, 50.0),
    }


def test_a_step_that_is_left_out_takes_its_stalls_with_it() -> None:
    """Without step 3 there is no fetch stall, and prep is related to step 4."""
    stalls = stalls_of({2: same(1.0), 4: same(2.0)})
    assert set(stalls) == {"prep"}
    assert (stalls["prep"].base_step, stalls["prep"].pct) == (4, 50.0)
    assert stalls_of({}) == {}


def test_the_interval_of_three_differences() -> None:
    """Differences 1, 2 and 3: mean 2, deviation 1, t of 2 degrees of freedom 4.3027."""
    stall = stalls_of({1: same(1, 1, 1), 2: same(2, 3, 4)})["interconnect"]
    reach = 4.302653 / math.sqrt(3)
    assert stall.interval_s == pytest.approx((2 - reach, 2 + reach), rel=1e-6)


def test_drift_that_is_in_both_steps_cancels() -> None:
    """A machine that gets slower adds to all steps of a repetition; the interval stays narrow."""
    drift = [0.0, 1.0, 2.0, 5.0]
    stall = stalls_of({1: same(*drift), 2: same(*(x + 0.5 for x in drift))})["interconnect"]
    assert stall.interval_s == pytest.approx((0.5, 0.5))
    assert not stall.in_noise


def test_only_repetitions_with_both_steps_count() -> None:
    """A profile that was stopped in its second repetition has one difference."""
    stall = stalls_of({1: same(1, 9), 2: same(2)})["interconnect"]
    assert (stall.seconds, stall.repeats, stall.interval_s) == (1.0, 1, None)


def test_warnings_name_noise_single_repetitions_and_negative_stalls() -> None:
    """One line for each kind; none for a stall that is sure."""
    noisy = {1: same(1, 2, 3), 2: same(3, 2, 1)}
    assert "within the noise" in sentence(warnings_of(stalls_of(noisy))[0])
    assert "one repetition" in sentence(warnings_of(stalls_of({1: same(1), 2: same(2)}))[0])
    negative = {1: same(2, 2.01, 2), 2: same(1, 1, 1)}
    assert "negative" in sentence(warnings_of(stalls_of(negative))[0])
    assert warnings_of(stalls_of({1: same(1, 1, 1), 2: same(2, 2.01, 2)})) == []
