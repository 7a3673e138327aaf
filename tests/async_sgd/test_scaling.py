"""The compiled simulation is the plain one, and both keep to closed forms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.async_sgd.compiled import CompiledJob
from driple.async_sgd.events import run_steps
from driple.async_sgd.order import downlink_ranks
from driple.async_sgd.scaling import ScaledCluster, event_tables, fitted_to_step, simulate_workers
from driple.errors import ConfigError, TraceError
from tests.async_sgd.jobs import RATE, job_of, plain_ends, random_job

MB = 1e6


def step_ends(job: CompiledJob, cluster: ScaledCluster, chosen: np.ndarray) -> np.ndarray:
    tables = event_tables(job, cluster)
    start = np.zeros(cluster.num_workers)
    return run_steps(*tables, chosen, cluster.synchronous, start, np.empty((0, 5)))[0]


CLUSTERS = {
    "one worker": ScaledCluster(num_workers=1, bytes_per_s=RATE),
    "several": ScaledCluster(num_workers=5, bytes_per_s=RATE, window_bytes=MB),
    "whole streams": ScaledCluster(num_workers=3, bytes_per_s=RATE, window_bytes=None, order="tic"),
    "in step": ScaledCluster(num_workers=3, bytes_per_s=RATE, synchronous=True),
    "unlike": ScaledCluster(num_workers=3, bytes_per_s=RATE, slowness=(1.0, 2.5, 0.4)),
    "slow links": ScaledCluster(
        num_workers=3, bytes_per_s=RATE, worker_bytes_per_s=(RATE / 5, RATE, RATE / 2)
    ),
}


@pytest.mark.parametrize("servers", [1, 2, 3])
@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_compiled_simulation_is_the_plain_one(name: str, servers: int, seed: int) -> None:
    job, cluster = random_job(seed, servers), CLUSTERS[name]
    chosen = np.random.default_rng(seed).integers(3, size=(cluster.num_workers, 6))
    ends = step_ends(job, cluster, chosen)
    assert ends == pytest.approx(plain_ends(job, cluster, chosen), rel=1e-6)


def test_without_transfers_workers_add_up() -> None:
    job = job_of([(0, [0.1, 0.3], []), (0, [0.1, 0.1], [0])])
    single, many = (
        simulate_workers(job, ScaledCluster(num_workers=n, bytes_per_s=RATE), num_steps=2000)
        for n in (1, 7)
    )
    assert many.examples_per_s == pytest.approx(7 * single.examples_per_s, rel=0.02)
    assert single.examples_per_s == pytest.approx(8 / 0.3, rel=0.02)


def test_without_computing_the_link_is_full() -> None:
    for workers in (2, 6):
        cluster = ScaledCluster(num_workers=workers, bytes_per_s=RATE)
        simulated = simulate_workers(job_of([(2, [40 * MB], [])]), cluster)
        assert simulated.examples_per_s == pytest.approx(8 * RATE / (40 * MB), rel=0.02)
        # In step, both directions are never used at once; apart, the busier one is full at best.
        both = simulate_workers(job_of([(2, [40 * MB], []), (3, [20 * MB], [0])]), cluster)
        assert 8 * RATE / (60 * MB) <= both.examples_per_s <= 8 * RATE / (40 * MB)


def test_workers_begin_when_told_and_keep_their_distance() -> None:
    """Fair links neither bring workers together nor drive them apart."""
    job = job_of([(2, [30 * MB], []), (0, [0.5], [0])])
    tables = event_tables(job, ScaledCluster(num_workers=2, bytes_per_s=RATE))
    chosen, none = np.zeros((2, 5), dtype=np.int64), np.empty((0, 5))
    near, _, _ = run_steps(*tables, chosen, False, np.array([0.0, 0.1]), none)
    assert near[1] - near[0] == pytest.approx(0.1)
    assert np.diff(near[0]) == pytest.approx(0.3 + 0.5 + 0.2)  # 0.2 s of both transfers overlap
    apart, _, _ = run_steps(*tables, chosen, False, np.array([0.0, 0.4]), none)
    assert apart[0] == pytest.approx(0.8 * np.arange(1, 6))


def test_equal_steps_of_one_worker_take_what_their_parts_take() -> None:
    """Down 0.4 s, computing 0.3 s, up 0.2 s beside another 0.5 s of computing."""
    job = job_of([(2, [40 * MB], []), (0, [0.3], [0]), (3, [20 * MB], [1]), (0, [0.5], [1])])
    simulated = simulate_workers(job, ScaledCluster(num_workers=1, bytes_per_s=RATE), num_steps=100)
    assert simulated.step_s == pytest.approx(0.4 + 0.3 + 0.5)
    assert simulated.interval[0] == pytest.approx(simulated.interval[1])


@pytest.mark.parametrize("step_s", [0.5, 1.0, 3.0])
def test_one_worker_takes_as_long_as_untraced_steps(step_s: float) -> None:
    """0.4 s of transfer and computing that was 0.5 s and 0.7 s when it was traced."""
    job = job_of([(2, [40 * MB] * 2, []), (0, [0.5, 0.7], [0])])
    fitted = fitted_to_step(job, RATE, step_s)
    assert fitted.amount[:, 0] == pytest.approx(job.amount[:, 0])
    assert fitted.amount[:, 1].mean() == pytest.approx(step_s - 0.4, rel=1e-3)
    simulated = simulate_workers(
        fitted, ScaledCluster(num_workers=1, bytes_per_s=RATE), num_steps=1000
    )
    assert simulated.step_s == pytest.approx(step_s, rel=0.02)


def test_transfers_longer_than_a_step_are_refused() -> None:
    job = job_of([(2, [40 * MB] * 2, []), (0, [0.5, 0.7], [0])])
    with pytest.raises(TraceError, match="bandwidth"):
        fitted_to_step(job, RATE, 0.39)


def test_workers_in_step_share_the_link_and_wait() -> None:
    job = job_of([(2, [40 * MB], []), (0, [0.3], [0])])
    cluster = ScaledCluster(
        num_workers=4, bytes_per_s=RATE, synchronous=True, slowness=(1, 1, 1, 2)
    )
    simulated = simulate_workers(job, cluster, num_steps=100)
    assert simulated.step_s == pytest.approx(4 * 0.4 + 0.6)


def test_windows_interleave_streams_as_in_figure_12() -> None:
    """Streams of 5 and 2 units, window 3: the first is done after the second."""
    job = job_of([(2, [50 * MB], []), (2, [20 * MB], []), (0, [1.0], [0]), (0, [1.0], [1])])
    shared = simulate_workers(
        job, ScaledCluster(num_workers=1, bytes_per_s=RATE, window_bytes=30 * MB), num_steps=20,
        keep_chunks=6,
    )  # fmt: skip
    chunks = [(c.op, round(c.end_s, 6)) for c in shared.chunks if c.resource == 2]
    assert chunks[:3] == [(0, 0.3), (1, 0.5), (0, 0.7)]
    whole = simulate_workers(
        job, ScaledCluster(num_workers=1, bytes_per_s=RATE, window_bytes=None), num_steps=20,
        keep_chunks=6,
    )  # fmt: skip
    chunks = [(c.op, round(c.end_s, 6)) for c in whole.chunks if c.resource == 2]
    assert chunks[:2] == [(0, 0.5), (1, 0.7)]


def test_orders_put_what_is_needed_first() -> None:
    """Op 3 needs the last parameter alone, op 4 all of them."""
    job = job_of(
        [(2, [MB], []), (2, [MB], []), (2, [MB], []), (0, [0.1], [2]), (0, [0.1], [1, 2]),
         (0, [0.1], [0, 1, 2])]
    )  # fmt: skip
    assert downlink_ranks(job, "layer").tolist()[:3] == [2, 1, 0]
    assert downlink_ranks(job, "tic").tolist()[:3] == [2, 0, 1]
    assert downlink_ranks(job, "reverse").tolist()[:3] == [0, 1, 2]
    assert sorted(downlink_ranks(job, "random", 1).tolist()[:3]) == [0, 1, 2]
    assert set(downlink_ranks(job, "recorded").tolist()) == {-1}


def test_same_seed_same_result_and_another_one_differs() -> None:
    job = random_job(4)
    cluster = ScaledCluster(num_workers=4, bytes_per_s=RATE)
    first, same, other = (
        simulate_workers(job, cluster, num_steps=200, seed=seed) for seed in (5, 5, 6)
    )
    assert first == same
    assert first.examples_per_s != other.examples_per_s
    assert first.interval[0] < first.examples_per_s < first.interval[1]
    wide = simulate_workers(job, cluster, num_steps=2000, seed=5)
    assert wide.interval[0] <= first.interval[1]
    assert wide.interval[1] >= first.interval[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"num_workers": 0}, "--workers"),
        ({"num_workers": 10**6}, "1000 or less"),
        ({"bytes_per_s": 0.0}, "--bandwidth"),
        ({"window_bytes": -1.0}, "--set window"),
        ({"slowness": (1.0,)}, "--set slowness"),
        ({"worker_bytes_per_s": (0.0, 1.0)}, "worker_bytes_per_s"),
    ],
)
def test_clusters_that_make_no_sense_are_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(ScaledCluster(num_workers=2, bytes_per_s=RATE), **fields)
