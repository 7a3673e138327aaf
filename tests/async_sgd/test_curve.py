"""Curves over the number of workers, what they cost, and variables on several servers."""

from __future__ import annotations

import numpy as np
import pytest

from driple.async_sgd.baselines import Phases, cynthia, lin_queues, linear, phases_of
from driple.async_sgd.curve import Prices, knee, throughput_curve
from driple.async_sgd.jobtrace import JobTrace
from driple.async_sgd.scaling import ScaledCluster, SimulatedThroughput
from driple.async_sgd.servers import with_servers
from driple.errors import ConfigError
from tests.async_sgd.jobs import RATE, job_of, random_job, trace_of

MB = 1e6
PHASES = Phases(
    downlink_s=0.4, computing_s=1.0, uplink_s=0.3, update_s=0.1, step_s=1.8, batch_size=16
)


def of(workers: int, per_s: float) -> SimulatedThroughput:
    return SimulatedThroughput(
        num_workers=workers, examples_per_s=per_s, interval=(0, 0), step_s=1, num_events=0
    )


def test_a_curve_is_the_same_on_any_number_of_threads() -> None:
    job, cluster = random_job(2), ScaledCluster(num_workers=1, bytes_per_s=RATE)
    curve, two = (
        throughput_curve(job, cluster, [1, 4, 2], num_steps=60, threads=threads)
        for threads in (1, 2)
    )
    assert curve == two
    assert [made.num_workers for made in curve] == [1, 4, 2]


def test_the_knee_is_where_one_more_adds_little() -> None:
    assert knee([of(1, 10), of(2, 18), of(3, 19), of(4, 19.5)]) == 2
    assert knee([of(1, 10), of(2, 20), of(4, 40)]) is None
    assert knee([of(1, 10)]) is None


def test_an_example_costs_its_share_of_all_machines() -> None:
    prices = Prices(worker_per_hour=3.0, server_per_hour=1.2)
    assert prices.per_example(of(4, 100), num_servers=2) == pytest.approx(14.4 / 3600 / 100)
    with pytest.raises(ConfigError, match="--set price"):
        Prices(worker_per_hour=-1)


def test_models_without_ops_agree_where_nobody_waits() -> None:
    alone = 16 / 1.8
    for model in (linear, cynthia, lin_queues):
        assert model(PHASES, 1) == pytest.approx(alone)
    assert linear(PHASES, 9) == pytest.approx(9 * alone)


def test_models_without_ops_are_bound_by_their_busiest_resource() -> None:
    assert lin_queues(PHASES, 300) == pytest.approx(16 / 0.4, rel=0.01)
    # W K / (T_P W U_1 + 2 T_C) -> K / (T_P U_1)
    assert cynthia(PHASES, 10**6) == pytest.approx(16 / (1.1 * 0.7 / 1.8), rel=1e-3)
    halved = 0.35 / (1.1 + 0.35)
    assert cynthia(PHASES, 10**6, halved=True) == pytest.approx(16 / (1.1 * halved), rel=1e-3)
    for count in range(1, 20):
        assert lin_queues(PHASES, count) <= linear(PHASES, count) * (1 + 1e-12)


def a_trace() -> JobTrace:
    """Two variables of 8 and 2 MB, their gradients and updates, the second gradient first."""
    ops = [(2, [8 * MB] * 2, []), (2, [2 * MB] * 2, []), (0, [0.3] * 2, [0, 1]),
           (3, [2 * MB] * 2, [2]), (3, [8 * MB] * 2, [2]), (1, [0.1] * 2, [4]),
           (1, [0.2] * 2, [5]), (1, [0.05] * 2, [3])]  # fmt: skip
    spans = {0: (0.0, 0.08), 1: (0.0, 0.1), 2: (0.1, 0.4), 3: (0.4, 0.42), 4: (0.4, 0.5),
             5: (0.5, 0.6), 6: (0.6, 0.8), 7: (0.42, 0.47)}  # fmt: skip
    return trace_of(job_of(ops), [spans] * 2)


def test_phases_are_read_off_a_trace() -> None:
    phases = phases_of(a_trace(), RATE)
    assert phases.downlink_s == pytest.approx(0.1)
    assert phases.uplink_s == pytest.approx(0.1)
    assert phases.update_s == pytest.approx(0.35)
    assert phases.computing_s == pytest.approx(0.8 - 0.55)
    slow = phases_of(a_trace(), RATE / 10)
    assert slow.downlink_s == pytest.approx(1.0)
    assert slow.step_s == pytest.approx(0.8 + 1.8)


@pytest.mark.parametrize(("strategy", "small"), [("round_robin", 1), ("greedy", 1)])
def test_variables_take_their_gradients_and_updates_along(strategy: str, small: int) -> None:
    moved = with_servers(a_trace(), 2, strategy)  # type: ignore[arg-type]  # one of two words
    assert moved.servers.tolist() == [0, small, 0, small, 0, 0, 0, small]
    assert moved.num_servers == 2
    assert np.array_equal(moved.end_s, a_trace().end_s)


def test_several_servers_tell_nothing_of_other_numbers() -> None:
    two = with_servers(a_trace(), 2)
    assert with_servers(two, 2) is two
    with pytest.raises(ConfigError, match="profiled with 2 servers"):
        with_servers(two, 3)
    with pytest.raises(ConfigError, match="--ps"):
        with_servers(two, 0)
