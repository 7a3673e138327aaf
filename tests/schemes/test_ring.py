"""Closed forms of a ring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.schemes.ring import RingSpec, passing
from driple.step.plan import Message, Segment, StepPlan
from tests.schemes.rings import simulate_ring

MB = 1e6


def plan(*parts: tuple[float, float]) -> StepPlan:
    """Segments of so many seconds, each of which ends with so many MB of gradients."""
    return StepPlan(
        pulls=(Message(0, 9 * MB),),
        segments=tuple(
            Segment(
                needs=1,
                duration_s=seconds,
                busy_s=seconds,
                memory_s=seconds / 2,
                sends=(Message(0, size * MB),),
            )
            for seconds, size in parts
        ),
    )


def ring(workers: int, *, update_s: float = 0.0, tensor_s: float = 0.0) -> RingSpec:
    return RingSpec(bytes_per_s=100 * MB, tensor_s=tensor_s, update_s=(update_s,) * workers)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_a_message_passes_each_worker_twice_but_once(workers: int) -> None:
    records = simulate_ring(ring(workers), [plan((0.3, 50))] * workers, num_steps=3)
    passed_s = 2 * (workers - 1) / workers * 0.5
    for record in records:
        assert record.iteration_time_s == pytest.approx(0.3 + passed_s)
        sent = sum(
            rate * (end - begin)
            for (begin, rate), (end, _) in zip(record.tx, record.tx[1:], strict=False)
        )
        assert sent == pytest.approx(3 * passed_s * 100 * MB)
        assert record.tx == record.rx


def test_one_worker_exchanges_nothing() -> None:
    (record,) = simulate_ring(ring(1, update_s=0.1), [plan((0.3, 50))], num_steps=4)
    assert record.step_ends_s == pytest.approx([0.4, 0.8, 1.2, 1.6])
    assert record.tx == [(0.0, 0.0)]


def test_messages_go_round_while_the_device_computes() -> None:
    """50 MB are ready at 0.2 s and take 0.5 s; the next 50 MB, ready at 0.3 s, wait for them."""
    records = simulate_ring(ring(2), [plan((0.2, 50), (0.1, 50))] * 2, num_steps=2)
    assert records[0].iteration_time_s == pytest.approx(0.2 + 0.5 + 0.5)
    records = simulate_ring(ring(2), [plan((0.2, 50), (0.9, 50))] * 2, num_steps=2)
    assert records[0].iteration_time_s == pytest.approx(1.1 + 0.5)


def test_tensors_and_updates_cost_time() -> None:
    spec = ring(4, update_s=0.05, tensor_s=0.01)
    records = simulate_ring(spec, [plan((0.3, 0))] * 4, num_steps=2)
    assert records[0].iteration_time_s == pytest.approx(0.3 + 0.01 + 0.05)
    segment = replace(plan((0.3, 0)).segments[0], needs=0, sends=(Message(0, 0, 7),))
    several = StepPlan(pulls=(), segments=(segment,))
    records = simulate_ring(spec, [several] * 4, num_steps=2)
    assert records[0].iteration_time_s == pytest.approx(0.3 + 7 * 0.01 + 0.05)


def test_all_wait_for_the_slowest() -> None:
    records = simulate_ring(ring(2), [plan((0.3, 50)), plan((0.7, 50))], num_steps=3)
    assert [record.iteration_time_s for record in records] == pytest.approx([1.2, 1.2])


def test_same_seed_same_steps_and_jitter_slows_the_ring() -> None:
    plans = [plan((0.3, 50))] * 4
    still = ring(4)
    shaky = RingSpec(bytes_per_s=100 * MB, tensor_s=0, update_s=(0.0,) * 4, jitter=0.1)
    times = [simulate_ring(shaky, plans, 50, seed)[0].iteration_time_s for seed in (1, 1, 2)]
    assert times[0] == times[1] != times[2]
    assert times[0] > simulate_ring(still, plans, 50)[0].iteration_time_s


def test_a_ring_that_cannot_be_is_refused() -> None:
    for more, words in (
        ({"bytes_per_s": 0.0}, "bytes_per_s must be above 0"),
        ({"tensor_s": -1.0}, "tensor_s must be a number at least 0"),
        ({"update_s": ()}, "a ring of no workers"),
        ({"update_s": (float("nan"),)}, "update_s must be a number at least 0"),
    ):
        with pytest.raises(ConfigError, match=words):
            RingSpec(**{"bytes_per_s": 1.0, "tensor_s": 0.0, "update_s": (0.0,), **more})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="1 step plans for a ring of 2"):
        simulate_ring(ring(2), [plan((0.3, 50))], 3)
    with pytest.raises(ConfigError, match="send 1 and 2 messages a step"):
        simulate_ring(ring(2), [plan((0.3, 50)), plan((0.3, 50), (0.1, 50))], 3)
    with pytest.raises(ConfigError, match="num_steps"):
        simulate_ring(ring(1), [plan((0.3, 50))], 0)


def test_messages_wait_for_longer_and_shorter_ones_before_them() -> None:
    """100, 10 and 50 MB; the third is ready after the second is through, and a pause."""
    sizes, tensors = np.array([100, 10, 50]) * MB, np.array([1, 2, 1])
    spec = ring(2, tensor_s=0.01)
    begins, ends = passing(spec, sizes, tensors, np.array([0.2, 0.3, 2.0]))
    assert begins.tolist() == pytest.approx([0.2, 1.21, 2.0])
    assert ends.tolist() == pytest.approx([1.21, 1.33, 2.51])


def test_meters_show_each_message_and_the_pauses_between() -> None:
    """Nothing before the first, no pause between the first two, one before the third."""
    message_plan = plan((0.5, 100), (0.0, 50), (2.5, 50))
    for record in simulate_ring(ring(2), [message_plan] * 2, 1):
        wanted = [(0, 0), (0.5, 100), (1.5, 100), (2.0, 0), (3.0, 100), (3.5, 0)]
        rates = [(time, rate / MB) for time, rate in record.tx]
        assert rates == [pytest.approx(pair) for pair in wanted]
        assert record.rx == record.tx
        assert record.step_ends_s == [pytest.approx(3.5)]


def test_a_step_is_as_slow_as_the_drawn_factor_says() -> None:
    """exp(normal) times as long, by default of seed 0."""
    spec = RingSpec(bytes_per_s=100 * MB, tensor_s=0.0, update_s=(0.0,), jitter=0.3)
    factors = np.exp(np.random.default_rng(0).normal(0.0, 0.3, 5))
    (record,) = simulate_ring(spec, [plan((0.3, 50))], 5)
    assert record.step_ends_s == pytest.approx(np.cumsum(0.3 * factors).tolist())
    assert [one.end_s - one.start_s for one in record.computing] == pytest.approx(0.3 * factors)


def test_what_takes_no_time_is_not_recorded() -> None:
    """Neither segments nor updates; an empty message passes at no rate, which is a number."""
    message_plan = plan((0.0, 50), (0.0, 0))
    for record in simulate_ring(ring(2), [message_plan] * 2, 3):
        assert record.computing == []
        assert record.step_ends_s == pytest.approx([0.5, 1.0, 1.5])
        assert np.isfinite(record.tx).all()
    (record,) = simulate_ring(ring(1), [plan((0.3, 50))], 3)
    assert len(record.computing) == 3
