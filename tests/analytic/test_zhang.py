"""Zhang's equations: recurrences by hand, order statistics by chance, limits."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest

from driple.analytic import zhang
from driple.errors import ConfigError


def test_type_two_is_the_recurrence() -> None:
    random = np.random.default_rng(0)
    previous = np.cumsum(random.uniform(0, 1, (20, 9)), axis=1)
    times = random.uniform(0, 1, (20, 9))
    found = zhang.type_two_completion(previous, times)
    for row in range(20):
        end = 0.0
        for m in range(9):
            begin = previous[row, m] if m == 0 else max(previous[row, m], end)
            end = begin + times[row, m]
            assert found[row, m] == pytest.approx(end)


def test_a_pipeline_of_equal_stages_ends_one_stage_after_the_first() -> None:
    first = zhang.type_one_completion([2.0] * 5)
    second = zhang.type_two_completion(first, [2.0] * 5)
    assert second.tolist() == [4.0, 6.0, 8.0, 10.0, 12.0]
    assert zhang.explicit_seconds(second[-1], first[-1]) == 2.0


def test_fast_loading_is_hidden_but_for_the_first_time() -> None:
    compute = np.full(4, 3.0)
    for load, shown in ((1.0, [1.0, 0.0, 0.0, 0.0]), (5.0, [5.0, 2.0, 2.0, 2.0])):
        loads = np.full(4, load)
        ends = zhang.type_two_completion(zhang.type_one_completion(loads), compute)
        found = zhang.explicit_io_seconds(loads, ends)
        assert found.tolist() == shown
        assert found.sum() + compute.sum() == ends[-1]


def test_epoch_is_the_slowest_of_each_iteration() -> None:
    sync = zhang.synchronization_seconds(np.ones((3, 2, 4)), [[1, 2], [3, 1], [0, 0]], 0.5)
    assert sync.tolist() == [[5.5, 6.5], [7.5, 5.5], [4.5, 4.5]]
    assert zhang.epoch_seconds(sync, [0.25, 1.0]) == 6.5 + 7.5 + 4.5 + 1.0


@pytest.mark.parametrize("count", [1, 2, 3, 8, 64, 1000])
def test_slowest_of_normals_by_chance(count: int) -> None:
    drawn = np.random.default_rng(1).normal(5.0, 2.0, (4000, count)).max(axis=1)
    assert zhang.expected_maximum(5.0, 2.0, count) == pytest.approx(drawn.mean(), rel=0.01)


def test_distributions_by_chance() -> None:
    """Equations 7 and 8 at the quartiles of what was drawn."""
    drawn = np.random.default_rng(2).normal(5.0, 2.0, (20_000, 4))
    for time_s in (4.0, 6.0, 8.0):
        one = zhang.completion_probability(time_s, 5.0, 2.0)
        assert one == pytest.approx((drawn[:, 0] <= time_s).mean(), abs=0.01)
        every = zhang.slowest_probability(time_s, 5.0, 2.0, 4)
        assert every == pytest.approx((drawn.max(axis=1) <= time_s).mean(), abs=0.01)
        assert every == pytest.approx(one**4)


def test_slowest_of_normals_known_values() -> None:
    """1 / sqrt(pi) for two, 3 / (2 sqrt(pi)) for three; nothing is added without variance."""
    assert zhang.expected_maximum(0.0, 1.0, 1) == pytest.approx(0.0, abs=1e-9)
    assert zhang.expected_maximum(0.0, 1.0, 2) == pytest.approx(1 / sqrt(pi), rel=1e-6)
    assert zhang.expected_maximum(0.0, 1.0, 3) == pytest.approx(1.5 / sqrt(pi), rel=1e-6)
    assert zhang.expected_maximum([1.0, 2.0], 0.0, 50).tolist() == [1.0, 2.0]


def test_a_queue_grows_without_bound_and_then_is_refused() -> None:
    assert zhang.queue_seconds(100.0, 0.0) == pytest.approx(0.01)
    waits = zhang.queue_seconds(100.0, np.array([10.0, 50.0, 90.0, 99.0]))
    assert (np.diff(waits) > 0).all()
    for arrivals in (100.0, 120.0, -1.0):
        with pytest.raises(ConfigError, match="utilisation"):
            zhang.queue_seconds(100.0, arrivals)
    assert zhang.barrier_link_seconds(waits, 2).tolist() == (2 * waits).tolist()


def test_a_queue_by_chance() -> None:
    """The mean time in a simulated M/M/1 queue (Lindley's recurrence)."""
    random = np.random.default_rng(3)
    served, arriving, count = 100.0, 70.0, 200_000
    gaps = random.exponential(1 / arriving, count)
    services = random.exponential(1 / served, count)
    wait, total = 0.0, 0.0
    for gap, service in zip(gaps.tolist(), services.tolist(), strict=True):
        wait = max(0.0, wait - gap)
        total += wait + service
        wait += service
    assert zhang.queue_seconds(served, arriving) == pytest.approx(total / count, rel=0.05)


def test_other_traffic_takes_its_share_of_a_link() -> None:
    assert zhang.shared_link_bytes_per_s(1e8, 1500, 0.0) == pytest.approx(1e8)
    assert zhang.shared_link_bytes_per_s(1e8, 1500, 0.75) == pytest.approx(0.25e8)
    with pytest.raises(ConfigError, match=r"utilisation is 1\.000"):
        zhang.shared_link_bytes_per_s(1e8, 1500, 1.0)


def test_aggregation_is_decoupled() -> None:
    sync, own = np.array([[5.0, 7.0, 6.0]]), np.array([[1.0, 3.5, 1.0]])
    assert zhang.decoupled_synchronization_seconds(sync, own, [4.0]).tolist() == [5.0 + 4.0]


def test_links_and_aggregation() -> None:
    assert zhang.link_seconds(1e-3, 1000, 1500, 1.5e8, 1.1) == pytest.approx(0.001 + 0.011)
    assert zhang.granularity_packets(100, 4) == 25
    assert zhang.aggregation_seconds(1e-6, 1e-7, 25) == pytest.approx(3.5e-6)
    least = zhang.aggregation_delay_seconds(25, 4, 1e4, pace=0)
    most = zhang.aggregation_delay_seconds(25, 4, 1e4, pace=1)
    assert least == pytest.approx(25 / 1e4)
    assert most == pytest.approx((4 * 25 - 4 + 1) / 1e4)
    done = zhang.completed_aggregation_seconds(
        most, num_workers=4, packets=100, granularity=25, num_servers=4, one_s=3.5e-6
    )
    assert done == pytest.approx(most + 4 * 1 * 3.5e-6)


def test_odd_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="num_workers"):
        zhang.expected_maximum(1.0, 1.0, 0)
    with pytest.raises(ConfigError, match="negative"):
        zhang.expected_maximum(1.0, -1.0, 2)
    with pytest.raises(ConfigError, match="bytes_per_s"):
        zhang.link_seconds(0, 1, 1, 0)
    with pytest.raises(ConfigError, match="pace"):
        zhang.aggregation_delay_seconds(25, 4, 1e4, pace=2)
