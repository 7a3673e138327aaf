"""Limits, monotony and sums of the vectorised iteration time; it agrees with simulations."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from driple.analytic.sweep import (
    EXCHANGES,
    Compression,
    ExchangeGranularity,
    JobProfile,
    Points,
    iteration_seconds,
)
from driple.errors import ConfigError

MB = 1e6
JOB = JobProfile(  # two segments of the forward pass, three of the backward pass, and an end
    segment_s=np.array([0.04, 0.06, 0.02, 0.05, 0.13, 0.01]),
    push_bytes=np.array([0.0, 0.0, 40.0, 10.0, 5.0, 0.0]) * MB,
    pull_bytes=np.array([5.0, 50.0]) * MB,
    needs=np.array([1, 2, 2, 2, 2, 2]),
)
AT = Points(workers=4, servers=1, worker_bytes_per_s=100 * MB, server_bytes_per_s=100 * MB)


def total(exchange: ExchangeGranularity = "step", **changed: object) -> float:
    return float(iteration_seconds(JOB, replace(AT, **changed), exchange=exchange).total_s)


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_parts_sum_to_the_iteration(exchange: ExchangeGranularity) -> None:
    breakdown = iteration_seconds(
        JOB, replace(AT, deviation=0.1, server_s_per_byte=1e-9), exchange=exchange
    )
    parts = (
        breakdown.compute_s,
        breakdown.push_s,
        breakdown.aggregate_s,
        breakdown.pull_s,
        breakdown.straggler_s,
    )
    assert sum(float(part) for part in parts) == pytest.approx(float(breakdown.total_s))


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize(
    ("field", "values", "rising"),
    [
        ("workers", [1, 2, 4, 8, 64], True),
        ("servers", [1, 2, 4, 8], False),
        ("worker_bytes_per_s", [1e7, 1e8, 1e9, 1e10], False),
        ("server_bytes_per_s", [1e7, 1e8, 1e9, 1e10], False),
        ("imbalance", [1, 1.5, 4], True),
        ("server_copy_s_per_byte", [0.0, 1e-9, 1e-8], True),
        ("compute_rate", [0.5, 1, 2, 4], False),
        ("server_s_per_byte", [0, 1e-9, 1e-8], True),
        ("message_s", [0, 1e-3, 1e-2], True),
        ("compression", [0, 0.3, 0.9], False),
    ],
)
def test_more_of_a_resource_never_hurts(
    field: str, values: list[float], exchange: ExchangeGranularity, *, rising: bool
) -> None:
    times = np.array([total(exchange, **{field: value}) for value in values])
    steps = np.diff(times) if rising else -np.diff(times)
    assert (steps >= -1e-12).all()
    assert steps.max() > 0


def test_stragglers_cost_where_workers_decide_and_nothing_where_the_network_does() -> None:
    fast = {"worker_bytes_per_s": 1e15, "server_bytes_per_s": 1e15}
    times = [total("step", deviation=value, **fast) for value in (0, 0.05, 0.2)]
    slowest = 1.0293753730039642  # mean of the largest of four standard normals
    assert times == pytest.approx([JOB.compute_s * (1 + d * slowest) for d in (0, 0.05, 0.2)])
    assert total("step", deviation=0.2) == total("step")
    many = [total("step", deviation=0.1, workers=n, **fast) for n in (1, 2, 8, 64)]
    assert (np.diff(many) > 0).all()


def test_limits_of_a_fast_network_and_of_fast_devices() -> None:
    fast = {"worker_bytes_per_s": 1e15, "server_bytes_per_s": 1e15}
    pushed, pulled = (4 * sizes / (100 * MB) for sizes in (JOB.push_bytes, JOB.pull_bytes))
    for exchange in EXCHANGES:
        assert total(exchange, **fast) == pytest.approx(JOB.compute_s)
    assert total("step", compute_rate=1e12) == pytest.approx(pulled.sum() + pushed.sum())
    # The first bucket is the largest: the others are pushed while it comes back.
    assert total("layer", compute_rate=1e12) == pytest.approx(pushed.sum() + pushed[2])


def test_twice_the_work_on_twice_the_resources_takes_the_same_time() -> None:
    heavy = replace(
        JOB,
        segment_s=2 * JOB.segment_s,
        push_bytes=2 * JOB.push_bytes,
        pull_bytes=2 * JOB.pull_bytes,
    )
    twice = {"worker_bytes_per_s": 200 * MB, "server_bytes_per_s": 200 * MB, "compute_rate": 2}
    breakdown = iteration_seconds(heavy, replace(AT, **twice))
    assert float(breakdown.total_s) == pytest.approx(total("step"))


def test_points_follow_broadcasting() -> None:
    grid = replace(AT, workers=np.arange(1, 6)[:, None], compression=np.array([0, 0.5]))
    breakdown = iteration_seconds(JOB, grid)
    for field in fields(breakdown):
        assert getattr(breakdown, field.name).shape == (5, 2)
    assert breakdown.total_s[3, 1] == pytest.approx(total(workers=4, compression=0.5))
    many = replace(AT, workers=np.arange(1, 20_001))  # more than are worked on at once
    assert iteration_seconds(JOB, many).total_s[3] == pytest.approx(total())


def test_an_unknown_exchange_is_refused() -> None:
    with pytest.raises(ConfigError, match="exchange"):
        iteration_seconds(JOB, AT, exchange="magic")  # type: ignore[arg-type]


def test_a_profile_must_fit_together() -> None:
    with pytest.raises(ConfigError, match="one segment or more"):
        replace(JOB, push_bytes=np.zeros(2))
    with pytest.raises(ConfigError, match="in order"):
        replace(JOB, needs=np.array([1, 2, 2, 2, 2, 3]))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("workers", 0, "workers"),
        ("servers", np.array([1, -1]), "servers"),
        ("server_bytes_per_s", -1, "bandwidth"),
        ("worker_bytes_per_s", np.nan, "bandwidth"),
        ("imbalance", 0, "imbalance"),
        ("server_copy_s_per_byte", -1, "server_copy"),
        ("compression", 1.0, "compression"),
        ("compression", -0.1, "compression"),
        ("deviation", -0.1, "deviation"),
    ],
)
def test_what_makes_no_sense_is_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(AT, **{field: value})


def test_points_and_profiles_that_do_not_fit_together_are_refused() -> None:
    """In our own words, before NumPy or a sum of NaN answers."""
    with pytest.raises(ConfigError, match=r"do not fit together: workers \(2,\), servers \(3,\)"):
        Points(workers=[1, 2], servers=[1, 2, 3], worker_bytes_per_s=1e9, server_bytes_per_s=1e9)
    with pytest.raises(ConfigError, match="numbers are needed"):
        Points(workers="many", servers=1, worker_bytes_per_s=1e9, server_bytes_per_s=1e9)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="s_per_byte of compression"):
        Compression(s_per_byte=-1.0)
    good = {"segment_s": [1.0], "push_bytes": [1.0], "pull_bytes": [1.0]}
    for name in good:
        odd = {key: np.array(values) for key, values in {**good, name: [np.nan]}.items()}
        with pytest.raises(ConfigError, match=f"{name} of a profile must be 0 or more and finite"):
            JobProfile(**odd, needs=np.array([0]))
