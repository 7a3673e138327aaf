"""Zhang's equations: order statistics by chance, limits."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest

from driple.analytic import zhang
from driple.errors import ConfigError


@pytest.mark.parametrize("count", [1, 2, 3, 8, 64, 1000])
def test_slowest_of_normals_by_chance(count: int) -> None:
    drawn = np.random.default_rng(1).normal(5.0, 2.0, (4000, count)).max(axis=1)
    assert zhang.expected_maximum(5.0, 2.0, count) == pytest.approx(drawn.mean(), rel=0.01)


def test_distributions_by_chance() -> None:
    """Equations 7 and 8 at the quartiles of what was drawn."""
    drawn = np.random.default_rng(2).normal(5.0, 2.0, (20_000, 4))
    for time_s in (4.0, 6.0, 8.0):
        single = zhang.completion_probability(time_s, 5.0, 2.0)
        assert single == pytest.approx((drawn[:, 0] <= time_s).mean(), abs=0.01)
        every = zhang.slowest_probability(time_s, 5.0, 2.0, 4)
        assert every == pytest.approx((drawn.max(axis=1) <= time_s).mean(), abs=0.01)
        assert every == pytest.approx(single**4)


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


def test_odd_input_is_refused() -> None:
    with pytest.raises(ConfigError, match="num_workers"):
        zhang.expected_maximum(1.0, 1.0, 0)
    with pytest.raises(ConfigError, match="negative"):
        zhang.expected_maximum(1.0, -1.0, 2)
