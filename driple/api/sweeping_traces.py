"""`sweep` of a job trace: throughput of many workers from a trace of one (asynchronous SGD).

job.npz, TraceOptions -> simulated workers (Li et al., ICPE 2020) -> SweepResult
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from driple.api.sweeping import Column, SweepResult
from driple.checks import MOST_SEED, check_choice, check_number, check_whole
from driple.extras import require_numba

if TYPE_CHECKING:
    from driple.api.json_types.sweep import TraceFactsJson
    from driple.async_sgd.compiled import CompiledJob
    from driple.async_sgd.curve import Prices
    from driple.async_sgd.jobtrace import JobTrace
    from driple.async_sgd.scaling import ScaledCluster, SimulatedThroughput
    from driple.estimate import Method

__all__ = ["BASELINES", "LEAST_STEPS", "MOST_STEPS", "TraceOptions", "TraceSweep", "sweep_trace"]

BASELINES = ("linear", "Lin", "Cynthia", "Cynthia/2")
LEAST_STEPS, MOST_STEPS = 20, 1_000_000  # of each worker
_MOST_CHUNKS, _TIMELINE_STEPS = 2_000_000, 60
_LEVEL = 0.95
_METHOD: Method = "simulator"


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceOptions:
    """Which clusters are simulated from a trace.

    Attributes:
        workers: numbers of workers.
        servers: parameter servers; as profiled if None.
        placement: how variables are spread over servers.
        bandwidth_bits_per_s: rate of each server's link; as profiled if None.
        order: order of parameters: recorded, layer, tic, reverse or random.
        window_bytes: what a stream may send in its first turn; None without flow control.
        synchronous: whether workers wait for each other.
        slowness: factor on the computing time of each worker; empty if all are alike.
        overhead: of parsing: (seconds per MB, seconds per tensor); the trace's own if None.
        num_steps: steps of each worker to simulate.
        seed: random seed of the sampling of steps.
        prices: per hour of a worker and of a server, in any currency; None without.

    Raises:
        ConfigError: a seed or a number of steps that is out of range.
    """

    workers: tuple[int, ...] = tuple(range(1, 9))
    servers: int | None = None
    placement: str = "round_robin"
    bandwidth_bits_per_s: float | None = None
    order: str = "recorded"
    window_bytes: float | None = 28e6
    synchronous: bool = False
    slowness: tuple[float, ...] = ()
    overhead: tuple[float, float] | None = None
    num_steps: int = 1000
    seed: int = 0
    prices: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_whole("--set steps", self.num_steps, LEAST_STEPS, MOST_STEPS)
        check_whole("--set seed", self.seed, 0, MOST_SEED)


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceSweep:
    """The simulated workers, and what coarser models give.

    Attributes:
        trace: of one worker.
        job: the trace ready for the simulator.
        cluster: of the largest number of workers.
        curve: one entry for each number of workers.
        baselines: examples/s by the coarser models, by the entries of `curve`.
        knee: number of workers from which on one more adds less than 10 %; None if there is none.
        prices: per hour; None without.
        options: of the sweep.
    """

    trace: JobTrace
    job: CompiledJob
    cluster: ScaledCluster
    curve: tuple[SimulatedThroughput, ...]
    baselines: tuple[dict[str, float], ...]
    knee: int | None
    prices: Prices | None
    options: TraceOptions

    def timeline(self) -> SimulatedThroughput:
        """A short run of the largest number of workers that keeps what each of them does."""
        from driple.async_sgd.scaling import simulate_workers

        most = self.cluster.num_workers
        room = min(_MOST_CHUNKS, _TIMELINE_STEPS * self.job.num_ops * most)
        return simulate_workers(
            self.job,
            self.cluster,
            num_steps=_TIMELINE_STEPS,
            seed=self.options.seed,
            keep_chunks=room,
        )


def sweep_trace(
    file: Path, options: TraceOptions, progress: Callable[[int], None] | None = None
) -> SweepResult:
    """Simulate the workers of a trace and collect what they reach."""
    simulated = _simulated(file, options, progress)
    curve, servers = simulated.curve, simulated.trace.num_servers
    estimates = {
        "iteration_time_s": Column(value=[one.step_s for one in curve], method=_METHOD),
        "examples_per_s": Column(
            value=[one.examples_per_s for one in curve],
            interval=[one.interval for one in curve],
            level=_LEVEL,
            method=_METHOD,
        ),
    }
    if simulated.prices is not None:
        prices = simulated.prices
        estimates["cost_per_example"] = Column(
            value=[prices.per_example(one, servers) for one in curve], method=_METHOD
        )
    facts: TraceFactsJson = {
        "batch_size": simulated.trace.batch_size,
        "servers": servers,
        "profiled_step_s": float(simulated.trace.step_s.mean()),
        "knee": simulated.knee,
        "baselines_examples_per_s": {
            name: [row[name] for row in simulated.baselines] for name in BASELINES
        },
    }
    return SweepResult(
        kind="trace",
        clusters={"workers": [float(one.num_workers) for one in curve]},
        estimates=estimates,
        facts=facts,
        trace=simulated,
    )


def _simulated(
    file: Path, options: TraceOptions, progress: Callable[[int], None] | None
) -> TraceSweep:
    require_numba("simulating throughput")
    from driple.async_sgd.curve import Prices, knee, throughput_curve
    from driple.async_sgd.jobtrace import read_job_trace
    from driple.async_sgd.order import ORDERS
    from driple.async_sgd.scaling import ScaledCluster, job_of_trace
    from driple.async_sgd.servers import with_servers
    from driple.graph.placement import STRATEGIES

    check_choice("--set order", options.order, ORDERS)
    check_choice("--set placement", options.placement, STRATEGIES)
    trace, numbers = read_job_trace(file), options.workers
    if options.servers is not None:
        trace = with_servers(trace, options.servers, cast("Any", options.placement))
    rate = options.bandwidth_bits_per_s
    cluster = ScaledCluster(
        num_workers=numbers[-1],
        bytes_per_s=trace.bytes_per_s if rate is None else rate / 8,
        window_bytes=options.window_bytes,
        order=cast("Any", options.order),
        synchronous=options.synchronous,
        slowness=options.slowness,
    )
    job = job_of_trace(trace, _overhead(trace, options.overhead))
    curve = throughput_curve(
        job,
        cluster,
        numbers,
        num_steps=options.num_steps,
        seed=options.seed,
        threads=os.cpu_count() or 1,
        progress=lambda: None if progress is None else progress(len(numbers)),
    )
    prices = None
    if options.prices is not None:
        worker, server = options.prices
        prices = Prices(worker_per_hour=worker, server_per_hour=server)
    return TraceSweep(
        trace=trace,
        job=job,
        cluster=cluster,
        curve=tuple(curve),
        baselines=tuple(_baselines(trace, one.num_workers, cluster.bytes_per_s) for one in curve),
        knee=knee(curve),
        prices=prices,
        options=options,
    )


def _overhead(trace: JobTrace, given: tuple[float, float] | None) -> Any:
    """Parsing overhead: the given one, else the trace's, else none."""
    from driple.async_sgd.overhead import Overhead

    if given is None:
        return trace.about.overhead or Overhead()
    per_mb, fixed = given
    for value in given:
        check_number("--set overhead", value, least=0, most=1e6)
    return Overhead(per_mb / 1e6, fixed)


def _baselines(trace: JobTrace, num_workers: int, bytes_per_s: float) -> dict[str, float]:
    """Examples/s by the coarser models."""
    from driple.async_sgd.baselines import cynthia, lin_queues, linear, phases_of

    phases = phases_of(trace, bytes_per_s)
    values = (
        linear(phases, num_workers),
        lin_queues(phases, num_workers),
        cynthia(phases, num_workers),
        cynthia(phases, num_workers, halved=True),
    )
    return dict(zip(BASELINES, values, strict=True))
