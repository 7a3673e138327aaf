"""Throughput by number of workers (one simulation each, on all cores), and its knee.

CompiledJob, numbers of workers -> SimulatedThroughput, ... -> knee, cost
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

from driple.async_sgd.compiled import CompiledJob
from driple.async_sgd.scaling import ScaledCluster, SimulatedThroughput, simulate_workers
from driple.checks import check_number

__all__ = ["Prices", "knee", "throughput_curve"]

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """Prices of machines.

    Attributes:
        worker_per_hour: price of a worker.
        server_per_hour: price of a parameter server.

    Raises:
        ConfigError: a negative price.
    """

    worker_per_hour: float
    server_per_hour: float = 0.0

    def __post_init__(self) -> None:
        check_number("--set price", self.worker_per_hour, least=0)
        check_number("--set price", self.server_per_hour, least=0)

    def per_example(self, simulated: SimulatedThroughput, num_servers: int) -> float:
        """Cost of one example, in the currency of the prices."""
        hourly = simulated.num_workers * self.worker_per_hour + num_servers * self.server_per_hour
        return hourly / _SECONDS_PER_HOUR / simulated.examples_per_s


def throughput_curve(
    job: CompiledJob,
    cluster: ScaledCluster,
    workers: Sequence[int],
    *,
    num_steps: int = 1000,
    seed: int = 0,
    threads: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> list[SimulatedThroughput]:
    """Throughput for each number of workers.

    Args:
        job: steps of one worker.
        cluster: the cluster, whose number of workers is replaced.
        workers: numbers of workers to simulate.
        num_steps: steps of each worker.
        seed: random seed of the sampling.
        threads: parallel simulations; the compiled loop releases the interpreter lock.
        progress: called after each simulation.
    """

    def throughput_of(count: int) -> SimulatedThroughput:
        throughput = simulate_workers(
            job, replace(cluster, num_workers=count), num_steps=num_steps, seed=seed
        )
        progress()
        return throughput

    with ThreadPoolExecutor(threads) as pool:
        # The largest first, for an even load of the threads.
        throughputs = dict(zip(
            sorted(workers, reverse=True),
            pool.map(throughput_of, sorted(workers, reverse=True)),
            strict=True,
        ))  # fmt: skip
    return [throughputs[count] for count in workers]


def knee(curve: Sequence[SimulatedThroughput], least_gain: float = 0.1) -> int | None:
    """Number of workers at which one more adds less than `least_gain`; None if all add more."""
    for fewer, more in pairwise(curve):
        gain = more.examples_per_s / fewer.examples_per_s - 1
        if gain / (more.num_workers - fewer.num_workers) < least_gain:
            return fewer.num_workers
    return None
