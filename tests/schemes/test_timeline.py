"""Steps of workers that exchange with each other, second by second on paper."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.schemes.records import WorkerRecord
from driple.schemes.timeline import (
    StepCollectives,
    StepUpdate,
    Workers,
    simulate_timeline,
    simulate_together,
)
from driple.step.phases import PhasePart
from driple.step.plan import Message, Segment, StepPlan

# Two segments: the first needs one gather and lasts 1 s, the second both and lasts 2 s; a gradient
# leaves at the end of each.
PLAN = StepPlan(
    pulls=(Message(0, 50.0), Message(0, 50.0)),
    segments=(
        Segment(needs=1, duration_s=1.0, busy_s=0.5, memory_s=0.25, sends=(Message(0, 60.0),)),
        Segment(needs=2, duration_s=2.0, busy_s=2.0, memory_s=1.0, sends=(Message(0, 30.0),)),
    ),
)
EXCHANGE = StepCollectives(
    gather_s=np.array([0.5, 0.25]), gather_bytes=np.array([50.0, 50.0]),
    send_s=np.array([1.5, 0.75]), send_bytes=np.array([60.0, 30.0]),
    after_s=np.array([0.2]), after_bytes=np.array([8.0]),
)  # fmt: skip
UPDATE = StepUpdate(update_s=(0.3, 0.3), host_s=0.4)


def record_of(
    update: StepUpdate = UPDATE, exchange: StepCollectives = EXCHANGE, plan: StepPlan = PLAN,
    steps: int = 2,
) -> WorkerRecord:  # fmt: skip
    """Record of the first of workers that are alike."""
    return simulate_timeline(update, exchange, [plan] * len(update.update_s), steps)[0]


def test_gathers_come_before_their_segments_and_sums_beside_the_next_ones() -> None:
    """Gathers to 0.5 and 0.75, segments to 1.5 and 3.5, sums to 3 and 4.25; then 0.3, 0.4, 0.2."""
    record = record_of()
    assert record.step_ends_s == pytest.approx([5.15, 10.3])
    spans = [(one.start_s, one.end_s, one.busy_share, one.memory_share) for one in record.computing]
    step = [
        (0.5, 1.5, 0.5, 0.25), (1.5, 3.5, 1.0, 0.5), (4.25, 4.55, 1.0, 1.0), (4.55, 4.95, 0, 0),
    ]  # fmt: skip
    later = [(begin_s + 5.15, end_s + 5.15, *shares) for begin_s, end_s, *shares in step]
    np.testing.assert_allclose(spans, step + later)


def test_updates_and_waits_for_hosts_are_phases_of_their_own() -> None:
    update, wait = record_of().computing[2:4]
    assert update.parts == (PhasePart("update", 0.3, 0.3, 0.3),)
    assert [(part.duration_s, part.busy_s, part.memory_s) for part in wait.parts] == [(0.4, 0, 0)]
    assert len(record_of(StepUpdate(update_s=(0.0, 0.0))).computing) == 2 * 2


def test_links_pass_each_collective_at_its_rate() -> None:
    """Both ways; what follows at once has no pause before it."""
    record = record_of()
    step = [
        (0.0, 100.0), (0.5, 200.0), (0.75, 0.0), (1.5, 40.0), (3.0, 0.0), (3.5, 40.0), (4.25, 0.0),
        (4.95, 40.0),
    ]  # fmt: skip
    later = [(time_s + 5.15, rate) for time_s, rate in step]
    expected = [*step, *later, (10.3, 0.0)]
    for meter in (record.tx, record.rx):
        np.testing.assert_allclose(meter, expected)


def test_sums_may_wait_for_the_whole_backward_pass() -> None:
    """From 3.5 s on: 1.5 and 0.75 s."""
    assert record_of(replace(UPDATE, overlapped=False)).step_ends_s[0] == pytest.approx(6.65)
    assert UPDATE.overlapped


def test_a_collective_slows_the_computing_beside_it() -> None:
    """By half of 0.25 s beside the first segment, and of 1.5 s beside the second."""
    slowed = record_of(replace(UPDATE, slowed=0.5))
    assert slowed.step_ends_s[0] == pytest.approx(5.15 + 0.125 + 0.75)
    # A segment that is shorter than what is beside it is slowed for as long as it lasts.
    long = replace(EXCHANGE, send_s=np.array([9.0, 0.75]))
    segments_s = 0.5 + 1.125 + 2.0 * 1.5
    assert record_of(replace(UPDATE, slowed=0.5), long).computing[1].end_s == pytest.approx(
        segments_s
    )


def test_a_gather_that_nothing_needs_yet_is_issued_with_the_segment_before() -> None:
    """The second lasts 4 s from 0.5 s on; the second segment waits for it."""
    slow = replace(EXCHANGE, gather_s=np.array([0.5, 4.0]))
    assert [one.start_s for one in record_of(exchange=slow, steps=1).computing[:2]] == [0.5, 4.5]
    # Where the first segment needs both, it waits for both.
    both = replace(PLAN, segments=(replace(PLAN.segments[0], needs=2), PLAN.segments[1]))
    assert record_of(exchange=slow, plan=both, steps=1).computing[0].start_s == 4.5


def test_one_worker_exchanges_nothing() -> None:
    alone = record_of(StepUpdate(update_s=(0.3,), host_s=0.4))
    assert alone.step_ends_s == pytest.approx([3.7, 7.4])
    assert not any(rate for _, rate in alone.tx)


def test_the_slowest_worker_and_the_longest_update_hold_all_back() -> None:
    """The second segment of the other worker lasts 3 s, its update 0.5 s."""
    longer = replace(PLAN.segments[1], duration_s=3.0, busy_s=3.0)
    other = replace(PLAN, segments=(PLAN.segments[0], longer))
    update = StepUpdate(update_s=(0.3, 0.5), host_s=0.4)
    first, second = simulate_timeline(update, EXCHANGE, [PLAN, other], 1)
    assert first.step_ends_s == second.step_ends_s == pytest.approx([5.15 + 1.0 + 0.2])
    assert first.computing[1].end_s == pytest.approx(3.5)
    assert second.computing[1].end_s == pytest.approx(4.5)
    assert first.computing[2].end_s == pytest.approx(5.25 + 0.3)
    # A host's update comes after the longest of a device.
    assert first.computing[3].start_s == second.computing[3].start_s == pytest.approx(5.75)


def test_workers_that_are_alike_share_a_record() -> None:
    update = StepUpdate(update_s=(0.3, 0.3, 0.5))
    same, too, other = simulate_timeline(update, EXCHANGE, [PLAN] * 3, 1)
    assert same is too
    assert other is not same


def test_groups_of_workers_end_their_steps_together() -> None:
    """The second group computes 3 s more; its steps hold those of the first."""
    longer = replace(PLAN.segments[1], duration_s=5.0, busy_s=5.0)
    groups = [
        Workers(update=UPDATE, exchange=EXCHANGE, plans=[plan] * 2)
        for plan in (PLAN, replace(PLAN, segments=(PLAN.segments[0], longer)))
    ]
    first, second = simulate_together(groups, 2)
    assert [len(records) for records in (first, second)] == [2, 2]
    assert first[0].step_ends_s == second[0].step_ends_s == pytest.approx([8.15, 16.3])
    assert first[0].computing[1].end_s == pytest.approx(3.5)
    assert first[0].computing[4].start_s == pytest.approx(8.15 + 0.5)


def test_random_slowness_is_of_the_seed_and_lengthens_steps_by_the_slowest() -> None:
    """With a jitter of a tenth: the first worker is the slowest in some steps, not in all."""
    update = replace(UPDATE, jitter=0.1)
    runs = [simulate_timeline(update, EXCHANGE, [PLAN] * 2, 50, seed)[0] for seed in (0, 0, 1)]
    assert runs[0].step_ends_s == runs[1].step_ends_s != runs[2].step_ends_s
    default = simulate_timeline(update, EXCHANGE, [PLAN] * 2, 50)[0]
    assert default.step_ends_s == runs[0].step_ends_s
    normal = np.random.default_rng(0).normal(0.0, 0.1, (50, 2))
    slowness = np.exp(normal)
    firsts = [one for one in runs[0].computing if one.busy_share == 0.5]
    took_s = [one.end_s - one.start_s for one in firsts]
    np.testing.assert_allclose(took_s, slowness[:, 0])
    # Begin at 0.5 s, both segments of the slowest, the last sum, update, host, and what follows;
    # the first sum ends 1.5 s after the slowest first segment, before the second segment does.
    step_s = 0.5 + 3 * slowness.max(axis=1) + 0.75 + 0.3 + 0.4 + 0.2
    np.testing.assert_allclose(runs[0].step_ends_s, np.cumsum(step_s))


def test_what_segments_send_adds_to_what_collectives_pass() -> None:
    """The second segment sends 80 bytes in its 2 s, beside the first sum until 3 s."""
    sending = replace(PLAN.segments[1], sent_bytes=80.0)
    plan = replace(PLAN, segments=(PLAN.segments[0], sending))
    record = record_of(plan=plan, steps=1)
    np.testing.assert_allclose(
        record.tx,
        [(0.0, 0.0), (0.0, 100.0), (0.5, 200.0), (0.75, 0.0), (1.5, 80.0), (3.0, 40.0),
         (3.5, 40.0), (4.25, 0.0), (4.95, 40.0), (5.15, 0.0)],
        atol=1e-9,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"update_s": ()}, "a ring of no workers"), ({"jitter": -0.1}, "jitter"),
        ({"slowed": -0.1}, "slowed"), ({"host_s": -0.1}, "host_s"),
        ({"update_s": (0.1, -0.1)}, "update_s"),
    ],
)  # fmt: skip
def test_impossible_updates_are_refused(more: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        StepUpdate(**{"update_s": (0.3,), **more})  # type: ignore[arg-type]
    plain = StepUpdate(update_s=(0.3,))
    assert plain == StepUpdate(update_s=(0.3,), jitter=0.0, overlapped=True, slowed=0.0, host_s=0.0)


def test_plans_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="3 step plans for a ring of 2"):
        simulate_timeline(UPDATE, EXCHANGE, [PLAN] * 3, 1)
    fewer = replace(PLAN, segments=(PLAN.segments[0], replace(PLAN.segments[1], sends=())))
    with pytest.raises(ConfigError, match="send 1 and 2 messages"):
        simulate_timeline(UPDATE, EXCHANGE, [PLAN, fewer], 1)
    with pytest.raises(ConfigError, match="num_steps"):
        simulate_timeline(UPDATE, EXCHANGE, [PLAN] * 2, 0)


def test_bytes_of_a_step_are_those_of_all_its_collectives() -> None:
    assert EXCHANGE.sent_bytes == 50 + 50 + 60 + 30 + 8
    assert StepCollectives().sent_bytes == 0.0
