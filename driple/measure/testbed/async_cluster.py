"""Test bed for asynchronous training with any number of workers on one set of processes.

    TurnCluster -> open(job) -> turn(workers, seconds) -> Turn, Turn, ... -> close_job()

The graph of an asynchronous worker does not depend on the number of workers. So all workers build
their graphs once, and each measurement (a turn) runs some of them while the others are idle.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from driple.cluster.setting import Setting
from driple.errors import MeasureError
from driple.jobs.workload import Workload
from driple.measure.counters.machine import busy_time
from driple.measure.testbed.cluster import LocalCluster, RunPlan
from driple.measure.testbed.filler_load import FillerLoad
from driple.measure.testbed.messages import RoleJob, TurnOrder, to_line
from driple.measure.testbed.network import ClusterNetwork, Port
from driple.measure.testbed.processes import ANSWER_S
from driple.units import counted

__all__ = ["FAIR_PORT", "Turn", "TurnCluster", "TurnJob"]

# Fair queueing makes peers share a link evenly, whatever TCP does. The models have about 1 MB, of
# which a token bucket of 256 KiB would hide much (decision 0013).
FAIR_PORT = Port(burst_kib=32, fair=True)
_TRACED_STEP_S = 10.0  # at most
_WINDOW_S = 0.25
_FULL_CORES = 0.1  # a window with fewer idle cores counts as full


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnJob:
    """Workload and cluster of a job.

    Attributes:
        workload: an asynchronous workload.
        num_servers: number of parameter servers.
        num_workers: maximum number of workers that train at a time.
        bits_per_s: rate of each link, each way.
        server_share: cores of each server.
        worker_share: cores of each worker.
    """

    workload: Workload
    num_servers: int
    num_workers: int
    bits_per_s: float
    server_share: float
    worker_share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """Measurements of one turn.

    Attributes:
        times_ns: for each worker, monotonic times before the first step and after each.
        used_cores: mean cores used by each role.
        bytes_per_s: mean rates sent and received by each role.
        idle_cores: mean idle cores of the machine.
        full_share: fraction of windows of 0.25 s without an idle core.
        other_cores: cores used by other programs.
        steal_cores: cores taken by the hypervisor.
    """

    times_ns: dict[str, list[int]]
    used_cores: dict[str, float]
    bytes_per_s: dict[str, tuple[float, float]]
    idle_cores: float
    full_share: float
    other_cores: float
    steal_cores: float

    def steps_per_s(self, skip_s: float) -> float:
        """Steps per second of all workers together, without the first seconds.

        A step that crosses a boundary counts by its fraction inside.

        Raises:
            MeasureError: no time is left.
        """
        begin = max(times[0] for times in self.times_ns.values()) / 1e9 + skip_s
        end = min(times[-1] for times in self.times_ns.values()) / 1e9
        if end <= begin:
            raise MeasureError(f"the turn lasted less than {skip_s:.0f} s; give it more seconds")
        done = 0.0
        for times in self.times_ns.values():
            ends = np.array(times) / 1e9
            edges = np.interp([begin, end], ends, np.arange(len(ends)))
            done += float(edges[1] - edges[0])
        return done / (end - begin)


class TurnCluster(LocalCluster):
    """Servers and workers on this machine, of which a job uses the first ones; a context manager.

    Args:
        num_servers: maximum number of servers of a job.
        num_workers: maximum number of workers of a job.
        filler: low-priority load that fills the machine; it counts as idle.
        port: queueing of the links.
    """

    def __init__(
        self,
        num_servers: int,
        num_workers: int,
        *,
        filler: FillerLoad | None = None,
        port: Port = FAIR_PORT,
    ) -> None:
        setting = Setting.parse(f"CPU-P{num_servers}w{num_workers}/ho-1G")
        super().__init__(setting, RunPlan(warmup=2))
        self.network = ClusterNetwork(self.network.roles, 1e9, port=port)
        self._all = self.servers, self.workers
        self._filler = filler

    def open(self, job: TurnJob) -> None:
        """Make every role build its graph, and set quotas and rates.

        Raises:
            MeasureError: a role died or failed, or the job needs more roles than there are.
        """
        servers, workers = self._all
        if job.num_servers > len(servers) or job.num_workers > len(workers):
            raise MeasureError(
                f"{counted(job.num_servers, 'server')} and {counted(job.num_workers, 'worker')} "
                f"are more than the {len(servers)} and {len(workers)} of the cluster"
            )
        if job.workload.sync:
            raise MeasureError(f"{job.workload.name} is synchronous; training by turns is not")
        self.servers, self.workers = servers[: job.num_servers], workers[: job.num_workers]
        self.shares = dict.fromkeys(self.servers, job.server_share)
        self.shares |= dict.fromkeys(self.workers, job.worker_share)
        self.network.set_rate(1e10)  # building is not measured
        self._begin(job.workload, None, by_turns=True)
        self._place()
        self.network.set_rate(job.bits_per_s)
        self._warm()

    def trace(self, folder: Path, num_steps: int) -> None:
        """Run steps of the first worker alone with full tracing.

        Args:
            folder: folder for a `RunMetadata` of each step, named by its start time.
            num_steps: number of steps.

        Raises:
            MeasureError: a role died or failed.
        """
        self._ask(self.workers[:1], [0.0], 0.0, str(folder), num_steps)

    def turn(self, starts_s: Sequence[float], seconds: float) -> Turn:
        """Train with the first workers for a time.

        Args:
            starts_s: start of each worker; its length is the number of workers.
            seconds: duration after the last start, seconds.

        Raises:
            MeasureError: a role died or failed.
        """
        names = self.workers[: len(starts_s)]
        windows = _Windows(self._ballast_s)
        before, used, filled = busy_time(), self._each_used_s(), self._ballast_s()
        moved = self._moved()
        begin = time.monotonic()
        with windows:
            times = self._ask(names, starts_s, max(starts_s) + seconds)
        elapsed_s = time.monotonic() - begin
        after = busy_time()
        busy_s = after.busy_s - before.busy_s - (self._ballast_s() - filled)
        used_cores = {
            name: (now - used[name]) / elapsed_s for name, now in self._each_used_s().items()
        }
        return Turn(
            times_ns=times,
            used_cores=used_cores,
            bytes_per_s={
                name: (
                    (sent - moved[name][0]) / elapsed_s,
                    (received - moved[name][1]) / elapsed_s,
                )
                for name, (sent, received) in self._moved().items()
            },
            idle_cores=float(windows.idle_cores.mean()),
            full_share=float((windows.idle_cores < _FULL_CORES).mean()),
            other_cores=busy_s / elapsed_s - sum(used_cores.values()),
            steal_cores=(after.steal_s - before.steal_s) / elapsed_s,
        )

    def fetch_tensors(self, sizes: Sequence[int], folder: Path, share: float) -> None:
        """Fetch tensors from the first server to the first worker, each in a traced step.

        Args:
            sizes: bytes of each tensor; multiples of 4.
            folder: folder for a `RunMetadata` of each step.
            share: cores of server and worker.

        Raises:
            MeasureError: a role died or failed.
        """
        names = self._all[0][:1] + self._all[1][:1]
        self._port = self.next_port()
        kinds: tuple[Literal["ps", "worker"], ...] = ("ps", "worker")
        cluster = {
            str(kind): (self.network.address(name, self._port),)
            for kind, name in zip(kinds, names, strict=True)
        }
        try:
            for kind, name in zip(kinds, names, strict=True):
                self._roles[name].give(
                    RoleJob(
                        job=kind,
                        task=0,
                        cluster=cluster,
                        transfers=tuple(sizes),
                        trace=str(folder),
                    )
                )
            for name in names:
                self._expect(self._roles[name], "ready")
                self._roles[name].share.limit(share)
            self._roles[names[1]].say("go")
            self._expect(self._roles[names[1]], "done")
        finally:
            self._end_run()

    def close_job(self) -> None:
        """End the job; the cluster can take the next one."""
        self._end_run()

    def _ask(
        self,
        names: Sequence[str],
        starts_s: Sequence[float],
        seconds: float,
        trace: str = "",
        num_traced: int = 0,
    ) -> dict[str, list[int]]:
        now_ns = time.monotonic_ns()
        for name, start_s in zip(names, starts_s, strict=True):
            order = TurnOrder(
                from_ns=now_ns + int(start_s * 1e9),
                until_ns=now_ns + int(seconds * 1e9),
                trace=trace,
                num_traced=num_traced,
            )
            self._roles[name].say(to_line(order))
        limit_s = 10 * seconds + num_traced * _TRACED_STEP_S + ANSWER_S
        return {name: self._expect(self._roles[name], "done", limit_s).times_ns
                for name in names}  # fmt: skip

    def _ballast_s(self) -> float:
        return self._filler.used_s() if self._filler else 0.0

    def _each_used_s(self) -> dict[str, float]:
        return {name: self._roles[name].used_s() for name in self.servers + self.workers}

    def _moved(self) -> dict[str, tuple[int, int]]:
        """Bytes sent and received by each role."""
        moved = {}
        for name in self.servers + self.workers:
            paths = self.network.counter_paths(name)
            moved[name] = (int(paths["net_tx"].read_text()), int(paths["net_rx"].read_text()))
        return moved


class _Windows:
    """Idle cores of the machine by window; a context manager.

    Attributes:
        idle_cores: shape [windows].
    """

    def __init__(self, ballast_s: Callable[[], float]) -> None:
        self._ballast_s = ballast_s
        self._found: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def idle_cores(self) -> npt.NDArray[np.float64]:
        return np.array(self._found)

    def _watch(self) -> None:
        before, filled, at = busy_time(), self._ballast_s(), time.monotonic()
        while not self._stop.wait(_WINDOW_S):
            after, now_filled, now = busy_time(), self._ballast_s(), time.monotonic()
            busy_s = after.busy_s - before.busy_s + after.steal_s - before.steal_s
            busy_s -= now_filled - filled
            self._found.append((os.cpu_count() or 1) - busy_s / (now - at))
            before, filled, at = after, now_filled, now
