"""What holds back, what doubling saves, which compression pays, which speed explains a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.analytic.advice import (
    bottleneck,
    communication_ratio,
    gain_of_doubling,
    rate_from_measured,
)
from driple.analytic.sweep import Compression, Points, iteration_seconds
from driple.errors import ConfigError
from scripts.studies.models.advice import best_compression, speed_up
from tests.analytic.test_sweep import AT, JOB, MB

FAST = {"worker_bytes_per_s": 1e15, "server_bytes_per_s": 1e15}


def test_links_of_workers_and_servers_bind_each_where_it_is_narrow() -> None:
    names = bottleneck(
        iteration_seconds(
            JOB,
            Points(
                workers=np.array([1, 8, 1, 1, 50]),
                servers=np.array([8, 1, 8, 1, 50]),
                worker_bytes_per_s=np.array([10 * MB, 1e9, 1e12, 1e12, 1e12]),
                server_bytes_per_s=np.array([1e9, 10 * MB, 1e12, 1e12, 1e12]),
                server_s_per_byte=np.array([0, 0, 0, 1e-6, 0]),
                deviation=np.array([0, 0, 0, 0, 2.0]),
            ),
        )
    )
    assert names.tolist() == ["worker_nic", "server_nic", "compute", "server_cpu", "stragglers"]


def test_a_server_that_copies_slower_than_its_link_is_named() -> None:
    slow = replace(AT, server_copy_s_per_byte=1 / (50 * MB))
    assert bottleneck(iteration_seconds(JOB, slow)) == "server_cpu"
    gain = gain_of_doubling(JOB, slow, "server_bytes_per_s")
    assert gain < gain_of_doubling(JOB, AT, "server_bytes_per_s")
    assert gain_of_doubling(JOB, slow, "servers") > 0.3


def test_doubling_helps_most_at_the_bottleneck() -> None:
    gains = {
        name: float(gain_of_doubling(JOB, AT, name))
        for name in ("compute_rate", "worker_bytes_per_s", "server_bytes_per_s", "servers")
    }
    assert gains["server_bytes_per_s"] == pytest.approx(gains["servers"])
    assert gains["worker_bytes_per_s"] == pytest.approx(0)
    assert 0 < gains["compute_rate"] < gains["servers"] < 0.5
    with pytest.raises(ConfigError, match="cannot be doubled"):
        gain_of_doubling(JOB, AT, "luck")


def test_compression_pays_up_to_where_it_costs_more() -> None:
    ratios = np.linspace(0, 0.95, 96)
    free = iteration_seconds(JOB, replace(AT, compression=ratios)).total_s
    assert free.argmin() == len(ratios) - 1
    dear = iteration_seconds(
        JOB, replace(AT, compression=ratios), Compression(s_per_byte=2e-8)
    ).total_s
    assert 0 < ratios[dear.argmin()] < 0.95
    assert dear[0] == pytest.approx(free[0])


def test_best_compression_is_the_lowest_of_the_curve() -> None:
    cost = Compression(s_per_byte=2e-8)
    best = best_compression(JOB, AT, cost)
    ratios = np.linspace(0, 0.99, 100)
    curve = iteration_seconds(JOB, replace(AT, compression=ratios), cost).total_s
    assert best.total_s == curve.min()
    assert best.saved == pytest.approx(1 - curve.min() / curve[0])
    assert 0.02 < best.saved < best_compression(JOB, AT, cost, "layer").saved
    nothing = best_compression(JOB, replace(AT, **FAST), cost)
    assert (nothing.ratio, nothing.saved) == (0, 0)
    with pytest.raises(ConfigError, match="one point"):
        best_compression(JOB, replace(AT, workers=np.array([1, 2])), cost)


def test_speed_up_is_linear_on_an_endless_network_and_falls_on_a_real_one() -> None:
    counts = np.array([1, 2, 4, 8])
    assert speed_up(JOB, replace(AT, workers=counts, **FAST)) == pytest.approx(counts)
    real = speed_up(JOB, replace(AT, workers=counts))
    assert (real < counts).all()
    ratio = communication_ratio(iteration_seconds(JOB, replace(AT, workers=counts)))
    assert (np.diff(ratio) > 0).all()


@pytest.mark.parametrize("rate", [0.3, 1.0, 7.0])
def test_the_speed_that_made_a_run_is_found_again(rate: float) -> None:
    iteration_s = float(iteration_seconds(JOB, replace(AT, compute_rate=rate)).total_s)
    assert rate_from_measured(JOB, AT, iteration_s) == pytest.approx(rate, rel=1e-6)


def test_a_run_that_no_speed_explains_is_refused() -> None:
    with pytest.raises(ConfigError, match="alone take 4"):
        rate_from_measured(JOB, AT, 0.01)
    with pytest.raises(ConfigError, match="--set measured"):
        rate_from_measured(JOB, AT, -1.0)
