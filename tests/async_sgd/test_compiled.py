"""A compiled trace takes, with one worker, as long as the steps it was profiled from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.async_sgd.compiled import CompiledJob, compile_job
from driple.async_sgd.jobtrace import JobTrace
from driple.async_sgd.overhead import Overhead, fit_overhead
from driple.async_sgd.scaling import ScaledCluster, simulate_workers
from driple.errors import TraceError
from tests.async_sgd.jobs import RATE, job_of, plain_ends, random_job, trace_of

MB = 1e6
ONE = ScaledCluster(num_workers=1, bytes_per_s=RATE)


def profiled(job: CompiledJob) -> JobTrace:
    """The trace of every profiled step of a job, as one worker runs it."""
    spans = []
    for number in range(len(job.amount)):
        alone = replace(job, amount=job.amount[[number]])
        simulated = simulate_workers(alone, ONE, num_steps=20, keep_chunks=100 * job.num_ops)
        ends: dict[int, tuple[float, float]] = {}
        for chunk in simulated.chunks:
            ends.setdefault(chunk.op, (chunk.begin_s, chunk.end_s))
        spans.append(ends)
    return trace_of(job, spans)


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_one_worker_takes_as_long_as_it_was_profiled(seed: int, servers: int) -> None:
    """Step by step, though each ran its ops in another order."""
    trace = profiled(random_job(seed, servers))
    job = compile_job(trace, Overhead())
    for step in range(trace.num_steps):
        (ends,) = plain_ends(job, ONE, np.array([[step]]))
        assert ends[0] == pytest.approx(trace.step_s[step], rel=1e-6)


@pytest.mark.parametrize("servers", [1, 2])
@pytest.mark.parametrize("seed", range(6))
def test_merging_ops_changes_nothing(seed: int, servers: int) -> None:
    trace = profiled(random_job(seed, servers))
    cost = Overhead(1e-9, 1e-4)
    merged, single = (compile_job(trace, cost, merge=on) for on in (True, False))
    assert merged.num_ops <= single.num_ops
    cluster = ScaledCluster(num_workers=3, bytes_per_s=RATE / 3, window_bytes=MB)
    chosen = np.random.default_rng(seed).integers(trace.num_steps, size=(3, 4))
    ends, wanted = (plain_ends(job, cluster, chosen) for job in (merged, single))
    assert ends == pytest.approx(wanted, rel=1e-9)


def test_ops_in_a_row_become_one() -> None:
    """Unless something else may come between: what waits for another parameter, say."""
    row = job_of([(2, [MB] * 2, []), (0, [0.1] * 2, [0]), (0, [0.2] * 2, [1]), (0, [0.3] * 2, [2]),
                  (3, [MB] * 2, [3])])  # fmt: skip
    compiled = compile_job(profiled(row), Overhead())
    amounts = compiled.amount[0, compiled.resource == 0]
    assert any(one == pytest.approx(0.6) for one in amounts)
    other = job_of([(2, [MB] * 2, []), (2, [MB] * 2, []), (0, [0.1] * 2, [0]), (0, [0.1] * 2, [1]),
                    (0, [0.2] * 2, [2]), (0, [0.3] * 2, [4])])  # fmt: skip
    trace = trace_of(other, [{0: (0.0, 0.01), 1: (0.01, 0.02), 2: (0.01, 0.11), 3: (0.11, 0.21),
                              4: (0.21, 0.41), 5: (0.41, 0.71)}] * 2)  # fmt: skip
    compiled = compile_job(trace, Overhead())
    assert not any(one == pytest.approx(0.5) for one in compiled.amount[0, compiled.resource == 0])


def test_every_step_keeps_its_own_order() -> None:
    """A gradient that goes out in the middle of one step and at the end of the other does so."""
    ops = [(2, [MB] * 2, []), (0, [0.1] * 2, [0]), (0, [0.3] * 2, [1]), (3, [20 * MB] * 2, [1])]
    early = {0: (0.0, 0.01), 1: (0.01, 0.11), 2: (0.11, 0.41), 3: (0.11, 0.31)}
    late = early | {3: (0.41, 0.61)}
    job = compile_job(trace_of(job_of(ops), [early, late]), Overhead())
    for step, wanted_s in enumerate((0.41, 0.61)):
        (ends,) = plain_ends(job, ONE, np.array([[step]]))
        assert ends[0] == pytest.approx(wanted_s)


def test_parsing_is_work_of_the_receiver() -> None:
    """40 MB take 0.4 s on the wire and 0.1 s of parsing; so does the gradient at the server."""
    truth = job_of([(2, [40 * MB] * 2, []), (0, [0.1] * 2, [0]), (0, [0.3] * 2, [1]),
                    (3, [20 * MB] * 2, [2]), (1, [0.05] * 2, [3]),
                    (1, [0.02] * 2, [4])])  # fmt: skip
    whole = profiled(truth)
    # TensorFlow's record of a transfer ends when its tensor is parsed.
    ends = whole.end_s.copy()
    ends[:, 0], ends[:, 3] = ends[:, 1], ends[:, 4]
    kept = [0, 2, 3, 5]
    trace = replace(
        whole,
        names=tuple(whole.names[i] for i in kept),
        resources=whole.resources[kept],
        servers=whole.servers[kept],
        sizes=whole.sizes[kept],
        edges=np.array([[0, 1], [1, 2], [2, 3]], dtype=np.int32),
        start_s=whole.start_s[:, kept],
        end_s=ends[:, kept],
    )
    job = compile_job(trace, Overhead(s_per_byte=0.1 / (40 * MB)))
    by_resource = [job.amount[0, job.resource == r].sum() for r in range(4)]
    assert by_resource == pytest.approx([0.1 + 0.3, 0.05 + 0.02, 40 * MB, 20 * MB])
    for workers in (1, 3):
        cluster = ScaledCluster(num_workers=workers, bytes_per_s=RATE)
        simulated, wanted = (simulate_workers(one, cluster, num_steps=60) for one in (job, truth))
        assert simulated.examples_per_s == pytest.approx(wanted.examples_per_s, rel=1e-6)


def test_ops_that_run_side_by_side_count_once() -> None:
    """Two ops from 0.4 to 0.7 s and from 0.4 to 0.9 s keep the worker for half a second."""
    job = job_of([(2, [40 * MB] * 2, []), (0, [0.3] * 2, [0]), (0, [0.2] * 2, [0])])
    trace = trace_of(job, [{0: (0.0, 0.4), 1: (0.4, 0.7), 2: (0.4, 0.9)}] * 2)
    compiled = compile_job(trace, Overhead())
    assert compiled.amount[0, compiled.resource == 0].sum() == pytest.approx(0.5)
    assert simulate_workers(compiled, ONE, num_steps=20).step_s == pytest.approx(0.9)


def test_time_before_and_after_the_ops_belongs_to_the_step() -> None:
    job = job_of([(2, [40 * MB] * 2, []), (0, [0.3] * 2, [0])])
    trace = trace_of(job, [{0: (0.05, 0.45), 1: (0.45, 0.75)}] * 2)
    trace = replace(trace, step_s=np.array([0.85, 0.85]))
    simulated = simulate_workers(compile_job(trace, Overhead()), ONE, num_steps=20)
    assert simulated.step_s == pytest.approx(0.85)


def test_overhead_is_a_line_through_what_was_measured() -> None:
    sizes = np.array([1e3, 1e6, 1e7, 5e7])
    fit = fit_overhead(sizes, 2e-10 * sizes + 3e-4)
    assert fit.overhead.s_per_byte == pytest.approx(2e-10)
    assert fit.overhead.s == pytest.approx(3e-4)
    assert fit.r_squared == pytest.approx(1.0)
    assert fit_overhead(sizes, 2e-10 * sizes - 1e-4).overhead.s == 0
    assert fit_overhead(sizes, -1e-10 * sizes + 1e-2).overhead.s_per_byte == 0
    with pytest.raises(TraceError, match="different sizes"):
        fit_overhead(sizes[:1].repeat(5), sizes[:1].repeat(5))
