"""Curves of traces, and what receiving tensors costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from driple.api.sweeping_traces import BASELINES
from driple.async_sgd.origin import Overhead, PlatformRecord
from driple.async_sgd.scaling import ScaledCluster, simulate_workers
from driple.plot.throughput import plot_curve, plot_overhead, plot_timeline
from tests.async_sgd.jobs import random_job
from tests.plot.looks import drawn, faults_of, words_of


def _cluster(workers: int) -> ScaledCluster:
    return ScaledCluster(num_workers=workers, bytes_per_s=1e8)


def test_a_curve_has_its_interval_the_other_models_and_the_knee(tmp_path: Path) -> None:
    job = random_job(0)
    curve = [simulate_workers(job, _cluster(count), num_steps=30, seed=0) for count in (1, 2, 4)]
    others = [dict.fromkeys(BASELINES, 9.0 * count) for count in (1, 2, 4)]
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_curve(curve, others, 2, path, title="job"), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("workers", "examples/s")
    assert {*BASELINES, "one more adds < 10 %"} <= set(words_of(figure))


def test_a_timeline_has_a_block_of_rows_for_each_worker(tmp_path: Path) -> None:
    job = random_job(0)
    shown = simulate_workers(job, _cluster(3), num_steps=20, seed=0, keep_chunks=50_000)
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_timeline(job, shown.chunks, shown.step_s, path), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    rows = [label.get_text() for label in axis.get_yticklabels()]
    assert rows == ["worker 0", "worker 1", "worker 2"]
    assert {"worker", "server", "uplink", "downlink"} <= set(words_of(figure))


def test_the_cost_of_receiving_is_a_line_through_lower_quartiles(tmp_path: Path) -> None:
    sizes = tuple(int(size) for size in np.repeat([1e5, 1e6, 4e6], 5))
    overhead = Overhead(s=1e-3, s_per_byte=2e-9)
    seconds = tuple(1e-3 + 2e-9 * size for size in sizes)
    platform = PlatformRecord(
        bytes_per_s=1e8, overhead=overhead, r_squared=0.98, sizes=sizes, overhead_s=seconds
    )
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_overhead(platform, path), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    assert "1.00 ms + 2.00 ms/MB, R² 0.98" in words_of(figure)
    line = axis.lines[-1]
    np.testing.assert_allclose(line.get_ydata(), [1.0, 9.0])
