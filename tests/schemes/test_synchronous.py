"""All synchronous steps at once are those that the event simulation goes through in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driple.schemes import servers
from driple.schemes.records import WorkerRecord
from driple.schemes.servers import ClusterSpec, simulate_cluster
from driple.schemes.synchronous import simulate_synchronous
from driple.step.plan import Message, Segment, StepPlan

MOST_AT_ONCE = 3
NUM_STEPS = 3  # few enough to be simulated event by event


@st.composite
def plans(draw: st.DrawFn, num_servers: int) -> StepPlan:
    """A step of small whole numbers, so that many things happen at the same moment.

    Its last segment needs all parameters, as a step does not end before they are in.
    """
    message = st.builds(
        Message, st.integers(0, num_servers - 1), st.integers(0, 6).map(lambda size: 1e6 * size)
    )
    pulls = tuple(draw(st.lists(message, max_size=6)))
    durations_s = draw(st.lists(st.integers(0, 4).map(float), min_size=1, max_size=5))
    segments = tuple(
        Segment(
            needs=draw(st.integers(0, len(pulls))) if later else len(pulls),
            duration_s=duration_s,
            busy_s=duration_s,
            memory_s=0.0,
            sends=tuple(draw(st.lists(message, max_size=3))),
        )
        for later, duration_s in reversed(list(enumerate(reversed(durations_s))))
    )
    return StepPlan(pulls=pulls, segments=segments)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterSpec, list[StepPlan]]:
    """Workers and servers on their own machines, on shared ones, or beside each other."""
    num_workers, num_servers = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    machine = st.integers(0, draw(st.integers(0, 8)))
    kinds = [draw(plans(num_servers)) for _ in range(2)]
    spec = ClusterSpec(
        worker_machine=tuple(draw(machine) for _ in range(num_workers)),
        server_machine=tuple(draw(machine) for _ in range(num_servers)),
        link_bytes_per_s=2e6,
        bridge_bytes_per_s=draw(st.sampled_from([1e6, 8e6])),
        link_sharing=draw(st.sampled_from([0.0, 0.5])),
        role_copy_bytes_per_s=draw(st.sampled_from([2e6, 1e8, float("inf")])),
        message_s=draw(st.sampled_from([0.0, 0.25])),
        apply_s_per_byte=draw(st.sampled_from([0.0, 1e-7])),
        copy_s_per_byte=draw(
            st.sampled_from([(), tuple(1e-7 * worker for worker in range(num_workers))])
        ),
        synchronous=True,
        jitter=draw(st.sampled_from([0.0, 0.1])),
    )
    return spec, [draw(st.sampled_from(kinds)) for _ in range(num_workers)]


def at_once(spec: ClusterSpec, steps: list[StepPlan]) -> list[WorkerRecord]:
    """The steps of seed 0."""
    normal = np.random.default_rng(0).normal(0.0, spec.jitter, (NUM_STEPS, len(steps)))
    return simulate_synchronous(spec, steps, np.exp(normal), MOST_AT_ONCE)


def bytes_until(
    meter: list[tuple[float, float]], times_s: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Bytes that a meter has counted at some times."""
    begins, rates = np.array([*meter, (1e9, 0.0)]).T
    totals = np.concatenate([[0.0], np.cumsum(np.diff(begins) * rates[:-1])])
    return np.interp(times_s, begins, totals)


@settings(max_examples=50)
@given(clusters())
def test_steps_at_once_are_those_in_turn(case: tuple[ClusterSpec, list[StepPlan]]) -> None:
    """Their ends, what each worker computes and sends, in whichever cluster."""
    spec, steps = case
    in_turn, together = simulate_cluster(spec, steps, NUM_STEPS), at_once(spec, steps)
    first: dict[int, int] = {}  # worker whose record each is
    for worker, (record, other) in enumerate(zip(in_turn, together, strict=True)):
        assert other.step_ends_s == pytest.approx(record.step_ends_s, rel=1e-9, abs=1e-9)
        if first.setdefault(id(other), worker) != worker and spec.jitter:
            assert steps[worker] is steps[first[id(other)]]
            continue  # workers that are alike differ in their random slowness
        for field in ("start_s", "end_s", "busy_share", "memory_share"):
            expected = [getattr(part, field) for part in record.computing]
            actual = [getattr(part, field) for part in other.computing]
            assert actual == pytest.approx(expected, rel=1e-9, abs=1e-9)
        times_s = np.linspace(0.0, record.step_ends_s[-1], 50)
        for name in ("tx", "rx"):
            expected_bytes = bytes_until(getattr(record, name), times_s)
            found_bytes = bytes_until(getattr(other, name), times_s)
            assert found_bytes == pytest.approx(expected_bytes, rel=1e-6, abs=10.0)


def test_workers_that_are_alike_share_a_record() -> None:
    """Those alone on their machines do; one beside a server is like no other."""
    step = StepPlan(
        pulls=(Message(0, 1e6),),
        segments=(
            Segment(needs=1, duration_s=1.0, busy_s=1.0, memory_s=0.0, sends=(Message(0, 1e6),)),
        ),
    )
    spec = ClusterSpec(
        worker_machine=(0, 1, 2),
        server_machine=(0,),
        link_bytes_per_s=1e6,
        bridge_bytes_per_s=1e6,
        synchronous=True,
    )
    beside, first, second = at_once(spec, [step] * 3)
    assert first is second
    assert beside is not first
    unlike = at_once(replace(spec, copy_s_per_byte=(0.0, 0.0, 1e-7)), [step] * 3)
    assert unlike[1] is not unlike[2]
    slower = replace(step, segments=(replace(step.segments[0], duration_s=2.0),))
    other_plan = at_once(spec, [step, step, slower])
    assert other_plan[1] is not other_plan[2]


def plan_and_cluster() -> tuple[StepPlan, ClusterSpec]:
    """A step of four parameters and gradients, and four workers with two servers."""
    step = StepPlan(
        pulls=tuple(Message(number % 2, 1e6) for number in range(4)),
        segments=tuple(
            Segment(
                needs=4, duration_s=0.1, busy_s=0.1, memory_s=0.0, sends=(Message(number % 2, 1e6),)
            )
            for number in range(4)
        ),
    )
    spec = ClusterSpec(
        worker_machine=(0, 1, 2, 3),
        server_machine=(4, 5),
        link_bytes_per_s=1e7,
        bridge_bytes_per_s=1e7,
        link_sharing=0.1,
        synchronous=True,
        jitter=0.3,
    )
    return step, spec


def test_few_and_many_steps_are_the_same_run() -> None:
    """The first steps of a run do not depend on how many follow, whichever way is taken."""
    step, spec = plan_and_cluster()
    few, many = (simulate_cluster(spec, [step] * 4, count)[0] for count in (5, 50))
    assert many.step_ends_s[:5] == pytest.approx(few.step_ends_s, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "warm_up", "needs"),
    [
        ({}, 0, 2),  # parameters may arrive after the step
        ({"synchronous": False}, 0, 4),
        ({"starts_s": (0.0, 0.1, 0.2, 0.3)}, 0, 4),
        ({}, 3, 4),
    ],
)
def test_steps_that_are_not_apart_are_simulated_in_turn(
    change: dict[str, Any], warm_up: int, needs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only steps of which nothing is left when the next one begins are simulated at once."""
    step, spec = plan_and_cluster()
    segments = tuple(replace(segment, needs=needs) for segment in step.segments)
    steps = [replace(step, segments=segments)] * 4
    spec = replace(spec, **change)
    usual = simulate_cluster(spec, steps, 25, warm_up=warm_up)
    monkeypatch.setattr(servers, "_STEPS_AT_ONCE", 10**9)
    in_turn = simulate_cluster(spec, steps, 25, warm_up=warm_up)
    assert [one.step_ends_s for one in usual] == [one.step_ends_s for one in in_turn]
