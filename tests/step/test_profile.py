"""Laws of one step: periods, shares, bytes and corrections, on hand-made steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.step.phases import STEP_PHASES
from driple.step.profile import DeviceSpan, LinkSpan, StepProfile
from driple.trace.targets import NETWORK, RESOURCES

MB = 1e6


def step(*, moved_s: float = 0.0) -> StepProfile:
    """0.1 s: forward 0.04 s at 50 %, backward 0.03 s, a wait of 0.02 s, update 0.01 s.

    The network sends 200 MB in two bursts and receives 60 MB in one.

    Args:
        moved_s: seconds by which all of it begins later.
    """
    parts = [("forward", 0.04, 0.5, 0.2), ("backward", 0.03, 1.0, 0.6), ("update", 0.01, 1.0, 1.0)]
    starts = [0.0, 0.04, 0.09]
    return StepProfile(
        step_s=0.1,
        device=tuple(
            DeviceSpan(
                phase=phase,
                start_s=start_s + moved_s,
                end_s=start_s + length_s + moved_s,
                busy_share=busy,
                memory_share=memory,
            )
            for start_s, (phase, length_s, busy, memory) in zip(starts, parts, strict=True)
        ),
        tx=(
            LinkSpan(start_s=0.05 + moved_s, end_s=0.06 + moved_s, bytes_per_s=5000 * MB),
            LinkSpan(start_s=0.075 + moved_s, end_s=0.09 + moved_s, bytes_per_s=10000 * MB),
        ),
        rx=(LinkSpan(start_s=0.08 + moved_s, end_s=0.09 + moved_s, bytes_per_s=6000 * MB),),
    )


def totals(profile: StepProfile) -> list[float]:
    """Use of the whole step of each resource, from its targets: amount x seconds x bursts."""
    counts = [usage.num_bursts for usage in profile.usage().values()]
    values = profile.targets().values
    return [float(value) for value in values[:, 0] * values[:, 1] * counts]


def periods(profile: StepProfile) -> list[float]:
    """Seconds of all bursts and gaps of each resource."""
    values = profile.targets().values
    counts = [max(usage.num_bursts, 1) for usage in profile.usage().values()]
    return [float(value) for value in (values[:, 1] + values[:, 2]) * counts]


def test_targets_of_a_hand_made_step() -> None:
    """Update, forward and backward follow each other from step to step, so they are one burst."""
    counts = {name: usage.num_bursts for name, usage in step().usage().items()}
    assert counts == {"device_util": 1, "device_mem_util": 1, "net_tx": 2, "net_rx": 1}
    wanted = [
        [100 * (0.02 + 0.03 + 0.01) / 0.08, 0.08, 0.02],
        [100 * (0.008 + 0.018 + 0.01) / 0.08, 0.08, 0.02],
        [200 / 0.025, 0.0125, 0.0375],
        [6000, 0.01, 0.09],
    ]
    assert step().targets().values == pytest.approx(np.array(wanted))


CORRECTIONS: tuple[Callable[[], StepProfile], ...] = (
    step,
    lambda: step().corrected(0.237),
    lambda: step().corrected_by_phase({"backward": 3.0, "host": 0.25}),
    lambda: step().corrected_by_phase({"exchange": 0.1, "update": 7.0}),
)


@pytest.mark.parametrize("make_profile", CORRECTIONS)
def test_all_resources_have_the_period_of_the_step(make_profile: Callable[[], StepProfile]) -> None:
    """Bursts and gaps together last as long as the step, whatever corrected it."""
    assert periods(make_profile()) == pytest.approx([make_profile().step_s] * len(RESOURCES))
    assert sum(make_profile().phases_s().values()) == pytest.approx(make_profile().step_s)


@pytest.mark.parametrize("make_profile", CORRECTIONS)
def test_no_share_of_a_device_exceeds_100_percent(make_profile: Callable[[], StepProfile]) -> None:
    """Memory is in use no longer than kernels run, and these no longer than all of the time."""
    for usage in list(make_profile().usage().values())[:2]:
        assert all(0 < one.amount <= 100 for one in usage.bursts)
    assert (
        make_profile().usage()["device_mem_util"].mean <= make_profile().usage()["device_util"].mean
    )


@pytest.mark.parametrize("make_profile", CORRECTIONS)
def test_corrections_keep_bytes(make_profile: Callable[[], StepProfile]) -> None:
    """200 MB out and 60 MB in, however long it takes."""
    assert totals(make_profile())[2:] == pytest.approx([200.0, 60.0])


@pytest.mark.parametrize("factor", [2.0, 0.3])
def test_one_factor_scales_durations_and_rates_and_keeps_shares(factor: float) -> None:
    """Twice the step: twice the durations, half the rates, the same percentages."""
    plain, slow = step(), step().corrected(factor * step().step_s)
    scale = np.array([(1, factor, factor)] * 2 + [(1 / factor, factor, factor)] * 2)
    assert slow.targets().values == pytest.approx(scale * plain.targets().values)
    for name, seconds in plain.phases_s().items():
        assert slow.phases_s()[name] == pytest.approx(factor * seconds)


@pytest.mark.parametrize("phase", ["forward", "backward", "update", "exchange", "host"])
def test_a_factor_of_a_phase_scales_its_seconds_alone(phase: str) -> None:
    """Kernels of the forward pass, or its waits for the host, and the like."""
    before, after = step().phases_s(), step().corrected_by_phase({phase: 4.0}).phases_s()
    wanted = {name: 4 * value if name == phase else value for name, value in before.items()}
    assert after == pytest.approx(wanted)


def test_a_factor_moves_what_comes_later() -> None:
    """Twice the forward pass: the network's first burst begins 0.04 s later."""
    slow = step().corrected_by_phase({"forward": 2.0, "host": 2.0})
    assert slow.tx[0].start_s == pytest.approx(0.05 + 0.04)
    assert slow.tx[0].end_s - slow.tx[0].start_s == pytest.approx(0.01)


def test_gaps_shorter_than_a_hundredth_of_a_step_lower_the_amount() -> None:
    """0.0005 s of 0.1 s do not end a burst; its bytes stay."""
    spans = ((0.01, 0.02), (0.0205, 0.03))
    profile = StepProfile(
        step_s=0.1,
        device=(),
        tx=tuple(LinkSpan(start_s=a, end_s=b, bytes_per_s=1000 * MB) for a, b in spans),
    )
    usage = profile.usage()["net_tx"]
    assert usage.num_bursts == 1
    assert usage.burst_s == pytest.approx(0.02)
    assert usage.burst_amount == pytest.approx(1000 * 0.0195 / 0.02)


def test_a_resource_without_use_is_idle_for_the_whole_step() -> None:
    profile = StepProfile(step_s=0.1, device=())
    for name in NETWORK:
        usage = profile.usage()[name]
        assert (usage.num_bursts, usage.burst_amount) == (0, 0.0)
        assert [usage.burst_s, usage.idle_s] == pytest.approx([0.0, 0.1])
    assert profile.phases_s() == {"exchange": pytest.approx(0.1)}


def test_spans_outside_of_the_step_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"in a step of 0\.1 s"):
        step(moved_s=0.05)


def test_impossible_shares_and_factors_are_refused() -> None:
    with pytest.raises(ConfigError, match="must be from 0 to 1"):
        DeviceSpan(phase="forward", start_s=0, end_s=1, busy_share=1.2, memory_share=0)
    with pytest.raises(ConfigError, match="phase of a step"):
        step().corrected_by_phase({"forwards": 2.0})
    with pytest.raises(ConfigError, match="step_s"):
        step().corrected(0.0)
    assert set(step().phases_s()) <= set(STEP_PHASES)
