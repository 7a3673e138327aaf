"""Throughput of many workers by simulation, with an interval (section 3.4).

CompiledJob, ScaledCluster -> run_steps, some replications -> ends of all steps
                     -> SimulatedThroughput (examples/s, interval)

Workers that share links fairly keep their initial phases, so each replication draws start times at
random within a step. A simultaneous start, as in the paper, is the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from driple.async_sgd.compiled import CompiledJob, compile_job
from driple.async_sgd.jobtrace import JobTrace
from driple.async_sgd.order import Order, downlink_ranks
from driple.async_sgd.overhead import Overhead
from driple.checks import check_number, check_whole
from driple.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from driple.async_sgd.events import EventJob, EventLinks

__all__ = [
    "MOST_WORKERS",
    "Chunk",
    "ScaledCluster",
    "SimulatedThroughput",
    "alone_s",
    "event_tables",
    "fitted_to_step",
    "job_of_trace",
    "simulate_workers",
    "with_computing",
]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

MOST_WORKERS = 1000
WINDOW_BYTES = 28e6  # flow-control window of gRPC (section 3.2.2)
_WARM_UP_STEPS = 50  # steps of all replications together (section 4.1)
_REPLICATIONS = 10
_LEAST_STEPS = 20
_FACTOR_STEP = 1e-4
_STUDENT = 2.262  # 97.5 % quantile of Student's t for that number of replications


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaledCluster:
    """ScaledCluster of a simulation.

    Attributes:
        num_workers: number of workers.
        bytes_per_s: rate of each server's link, each way.
        window_bytes: bytes that a stream may send in its first service; None: whole streams, as
            with flow control disabled (section 3.3).
        order: transfer order of the parameters.
        synchronous: whether all workers wait for each other at the end of a step.
        slowness: factor on the compute time of each worker; empty: all as profiled.
        worker_bytes_per_s: rate of each worker's link; empty: as the servers'.

    Raises:
        ConfigError: an invalid value; the message names the flag.
    """

    num_workers: int
    bytes_per_s: float
    window_bytes: float | None = WINDOW_BYTES
    order: Order = "recorded"
    synchronous: bool = False
    slowness: tuple[float, ...] = ()
    worker_bytes_per_s: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_whole("--workers", self.num_workers, 1)
        if self.num_workers > MOST_WORKERS:
            raise ConfigError(f"--workers must be {MOST_WORKERS} or less, got {self.num_workers}")
        check_number("--bandwidth", self.bytes_per_s, above=0)
        if self.window_bytes is not None:
            check_number("--set window", self.window_bytes, above=0)
        for name, values in (
            ("--set slowness", self.slowness),
            ("worker_bytes_per_s", self.worker_bytes_per_s),
        ):
            for value in values:
                check_number(name, value, above=0)
            if len(values) not in {0, self.num_workers}:
                raise ConfigError(
                    f"{name} needs one number for each of the {self.num_workers} workers, got "
                    f"{len(values)}"
                )


@dataclass(frozen=True, slots=True)
class Chunk:
    """One op, or a part of a transfer, on a resource of a worker."""

    worker: int
    resource: int
    op: int
    begin_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedThroughput:
    """Throughput of all workers.

    Attributes:
        num_workers: number of workers.
        examples_per_s: mean after the first steps.
        interval: 95 % interval from the means of the replications.
        step_s: mean step time of a worker, seconds.
        num_events: number of simulated events.
        chunks: the first chunks, if requested.
    """

    num_workers: int
    examples_per_s: float
    interval: tuple[float, float]
    step_s: float
    num_events: int
    chunks: tuple[Chunk, ...] = ()


def simulate_workers(
    job: CompiledJob,
    cluster: ScaledCluster,
    *,
    num_steps: int = 1000,
    seed: int = 0,
    keep_chunks: int = 0,
) -> SimulatedThroughput:
    """Simulate steps that are sampled from the profiled ones, with replacement.

    Args:
        job: steps of one worker.
        cluster: the cluster.
        num_steps: steps of each worker over all replications; the first tenth, at most 50, is left
            out.
        seed: random seed of the sampling, and of a random order.
        keep_chunks: number of chunks to keep for drawing.
    """
    from driple.async_sgd.events import run_steps  # compiles, so only when it is needed

    check_whole("--set steps", num_steps, _LEAST_STEPS)
    random = np.random.default_rng(seed)
    workers, each = cluster.num_workers, -(-num_steps // _REPLICATIONS)
    tables = event_tables(job, cluster, seed)
    apart_s = 0.0 if cluster.synchronous else float(job.step_s.mean())
    rates: list[float] = []
    chunks: tuple[Chunk, ...] = ()
    events = 0
    for number in range(_REPLICATIONS):
        keep = np.empty((keep_chunks if number == 0 else 0, 5))
        start = random.uniform(0, apart_s, workers)
        ends, num_events, kept = run_steps(
            *tables,
            random.integers(len(job.amount), size=(workers, each)),
            cluster.synchronous,
            start - start.min(),
            keep,
        )
        rates.append(_steps_per_s(ends))
        events += int(num_events)
        if kept:
            chunks = tuple(
                Chunk(int(w), int(r), int(op), begin, end)
                for w, r, op, begin, end in keep[:kept].tolist()
            )
    per_s = float(np.mean(rates))
    width = _STUDENT * float(np.std(rates, ddof=1)) / np.sqrt(_REPLICATIONS)
    return SimulatedThroughput(
        num_workers=workers,
        examples_per_s=per_s * job.batch_size,
        interval=((per_s - width) * job.batch_size, (per_s + width) * job.batch_size),
        step_s=workers / per_s,
        num_events=events,
        chunks=chunks,
    )


def job_of_trace(trace: JobTrace, overhead: Overhead) -> CompiledJob:
    """Compile a trace, scaled to the untraced step time if the trace has it.

    Args:
        trace: trace of one worker.
        overhead: cost of parsing received data.

    Raises:
        TraceError: transfers alone take longer than a step.
    """
    job = compile_job(trace, overhead)
    untraced_s = trace.about.untraced_step_s
    return job if untraced_s is None else fitted_to_step(job, trace.bytes_per_s, untraced_s)


def fitted_to_step(job: CompiledJob, bytes_per_s: float, step_s: float) -> CompiledJob:
    """The job with all computing scaled by one factor, so that one worker's step takes `step_s`.

    Tracing slows every op slightly; untraced steps give the true sum.

    Args:
        job: job of one worker.
        bytes_per_s: rate of the links in the profile.
        step_s: mean step time without tracing, seconds.

    Raises:
        TraceError: transfers alone take longer than that.
    """
    check_number("seconds of a step", step_s, above=0)

    def takes_s(factor: float) -> float:
        return alone_s(with_computing(job, factor), bytes_per_s)

    if takes_s(0.0) >= step_s:
        raise TraceError(
            f"job trace: transfers alone take {takes_s(0.0):.3f} s at its bandwidth, and a step "
            f"{step_s:.3f} s; its bandwidth is not what the links yielded"
        )
    low, high = 0.0, 1.0
    while takes_s(high) < step_s:
        low, high = high, 2 * high
    while high - low > _FACTOR_STEP:
        middle = (low + high) / 2
        low, high = (middle, high) if takes_s(middle) < step_s else (low, middle)
    return with_computing(job, high)


def with_computing(job: CompiledJob, factor: float) -> CompiledJob:
    """The job with all computing of workers and servers slowed by a factor."""
    computing = job.resource <= job.num_servers
    return replace(job, amount=np.where(computing, factor * job.amount, job.amount))


def alone_s(job: CompiledJob, bytes_per_s: float) -> float:
    """Mean step time of a single worker over the profiled steps, seconds."""
    from driple.async_sgd.events import run_steps

    every = np.arange(len(job.amount)).reshape(1, -1)
    tables = event_tables(job, ScaledCluster(num_workers=1, bytes_per_s=bytes_per_s))
    ends, _, _ = run_steps(*tables, every, False, np.zeros(1), np.empty((0, 5)))
    return float(ends[0, -1]) / every.size


def event_tables(
    job: CompiledJob, cluster: ScaledCluster, seed: int = 0
) -> tuple[EventJob, EventLinks]:
    """Convert a job and the links of a cluster into the tables of the event loop."""
    from driple.async_sgd.events import EventJob, EventLinks

    counts = np.bincount(job.edges[:, 0], minlength=job.num_ops)
    order = np.argsort(job.edges[:, 0], kind="stable")
    num_waits = np.bincount(job.edges[:, 1], minlength=job.num_ops)
    table = EventJob(
        resource=job.resource,
        amount=job.amount,
        num_waits=num_waits,
        first=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
        dependents=job.edges[order, 1],
        roots=np.flatnonzero(num_waits == 0),
        **_queues(job, downlink_ranks(job, cluster.order, seed)),
    )
    own = cluster.worker_bytes_per_s or [cluster.bytes_per_s] * cluster.num_workers
    links = EventLinks(
        server_rate=np.full(job.num_servers, cluster.bytes_per_s, dtype=np.float64),
        worker_rate=np.array(own, dtype=np.float64),
        slowness=np.array(cluster.slowness or [1.0] * cluster.num_workers, dtype=np.float64),
        window=float(np.inf if cluster.window_bytes is None else cluster.window_bytes),
    )
    return table, links


def _queues(job: CompiledJob, ranks: IntArray) -> dict[str, npt.NDArray[Any]]:
    """Queueing discipline of each resource for ready ops: rank, position or arrival order.

    Args:
        job: job with the ops.
        ranks: shape [n], rank of downlinks; -1 for first come, first served.
    """
    from driple.async_sgd.events import PLACE_BITS, WORD_BITS

    num_resources = 1 + 3 * job.num_servers
    place = np.full(job.rank.shape, -1, dtype=np.int32)
    in_line = np.zeros(num_resources, dtype=np.bool_)
    line_length = np.zeros(num_resources, dtype=np.int64)
    op_at = [np.zeros((len(place), 0), dtype=np.int32)]
    num_words = 0
    for resource in range(num_resources):
        ops = np.flatnonzero(job.resource == resource)
        is_link = resource > job.num_servers
        if is_link and (ranks[ops] < 0).all():
            in_line[resource], line_length[resource] = True, len(ops)
            continue
        keys = np.broadcast_to(ranks, job.rank.shape) if is_link else job.rank
        sorted_ops = ops[np.argsort(keys[:, ops], axis=1, kind="stable")]
        word, bit = np.divmod(np.arange(len(ops)), WORD_BITS)
        at = ((num_words + word) << PLACE_BITS) + bit
        np.put_along_axis(place, sorted_ops, np.broadcast_to(at, sorted_ops.shape), axis=1)
        words = np.zeros((len(place), -(-len(ops) // WORD_BITS), 1 << PLACE_BITS), dtype=np.int32)
        words[:, word, bit] = sorted_ops
        op_at.append(words.reshape(len(place), -1))
        num_words += words.shape[1]
    return {
        "place": place,
        "op_at": np.concatenate(op_at, axis=1),
        "in_line": in_line,
        "line_begin": np.concatenate(([0], np.cumsum(line_length)[:-1])),
        "line_length": line_length,
    }


def _steps_per_s(ends: FloatArray) -> float:
    """Steps per second of all workers, without the first steps.

    Args:
        ends: shape [workers, steps], end of each step, seconds.
    """
    num_steps = ends.shape[1]
    skipped = min(_WARM_UP_STEPS // _REPLICATIONS, num_steps // 10)
    begin_s, end_s = float(ends[:, skipped].max()), float(ends[:, -1].min())
    if end_s <= begin_s:  # the fastest worker ends before the slowest starts
        begin_s = 0.0
    # A step that crosses a boundary counts by its fraction inside.
    progress = np.sum(
        [
            np.interp([begin_s, end_s], np.concatenate(([0.0], row)), np.arange(num_steps + 1.0))
            for row in ends
        ],
        axis=0,
    )
    return float(progress[1] - progress[0]) / (end_s - begin_s)
