"""A cluster on one machine: start the roles, run workloads on them, sample the counters.

    LocalCluster(setting) -> run(workload) -> RunRecord (samples, step times, disturbances)

Each role is a process (`processes.py`) in its own network namespace with its own CPU quota. A quota
is lifted while the role builds its graph, and set before its first step.
"""

from __future__ import annotations

import os
import select
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import numpy as np

from driple.cluster.setting import Setting
from driple.errors import MeasureError
from driple.jobs.workload import Workload
from driple.measure.counters.machine import busy_time
from driple.measure.counters.memory import build_alloc_counter
from driple.measure.counters.samples import Samples
from driple.measure.testbed.cpu_quota import worker_names, worker_shares
from driple.measure.testbed.messages import Event, RoleAnswer, RoleJob
from driple.measure.testbed.network import ClusterNetwork
from driple.measure.testbed.processes import ANSWER_S, RoleProcess, Sampling
from driple.trace.provenance import RunPlan
from driple.trace.targets import RESOURCES

__all__ = ["LocalCluster", "RunPlan", "RunRecord", "require_measurable"]

_FIRST_PORT = 2222
_PORTS = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """Raw data of one measured run.

    Attributes:
        workload: name of the workload.
        samples: counters `<role>.<resource>`.
        step_times_ns: for each worker, monotonic times before the first and after every iteration.
        units: unit of each resource's counter, in seconds or bytes.
        num_parameters: trainable parameters of the model.
        other_cores: cores used by other programs during the run.
        steal_cores: cores taken by the hypervisor during the run.
    """

    workload: str
    samples: Samples
    step_times_ns: dict[str, list[int]]
    units: dict[str, float]
    num_parameters: int
    other_cores: float
    steal_cores: float


def require_measurable(setting: Setting) -> float:
    """Rate of the setting's links in bit/s.

    Raises:
        MeasureError: this machine cannot emulate the setting.
    """
    worker_shares(setting, RunPlan().share)
    rate = setting.bits_per_s
    if rate is None or not setting.num_servers:
        raise MeasureError(
            f"this machine can measure CPU settings with a parameter server and a rate, such "
            f"as CPU-P1w2/ho-200M; got {setting.name}"
        )
    return rate


class LocalCluster:
    """Parameter servers and workers on this machine; a context manager.

    Args:
        setting: topology and rate of the links.
        plan: shares and lengths.
    """

    def __init__(self, setting: Setting, plan: RunPlan) -> None:
        rate = require_measurable(setting)
        self.setting, self.plan = setting, plan
        self.servers = [f"ps{i}" for i in range(setting.num_servers)]
        self.workers = list(worker_names(setting))
        shares = worker_shares(setting, plan.share)
        self.shares = dict.fromkeys(self.servers, plan.server_share) | shares
        self.network = ClusterNetwork(self.servers + self.workers, rate)
        self.versions: dict[str, str] = {}
        self._roles: dict[str, RoleProcess] = {}
        self._port = _FIRST_PORT + os.getpid() % 1000
        self._folder = tempfile.TemporaryDirectory(prefix="driple-cluster-")
        self._library = Path()

    def __enter__(self) -> Self:
        """Create the network and start every role."""
        self.network.__enter__()
        try:
            self._library = build_alloc_counter(Path(self._folder.name))
            for name in self.network.roles:
                self._roles[name] = self._start(name)
            for role in self._roles.values():
                self.versions = dict(self._expect(role, "up").versions)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop every role and remove the network."""
        self.close()

    def close(self) -> None:
        """Stop all processes and remove the network and groups."""
        for role in self._roles.values():
            role.stop()
        self._roles.clear()
        self.network.close()
        self._folder.cleanup()

    def run(self, workload: Workload, graph_path: Path) -> RunRecord:
        """Train and measure a workload; the chief's GraphDef is written to `graph_path`.

        Args:
            workload: the workload to train.
            graph_path: output file.

        Raises:
            MeasureError: a role died or failed; the cluster can take the next run.
        """
        try:
            return self._run(workload, graph_path)
        finally:
            self._end_run()

    def _run(self, workload: Workload, graph_path: Path) -> RunRecord:
        self._begin(workload, graph_path)
        workers = [self._roles[name] for name in self.workers]
        num_parameters = self._place()
        warm = self._warm()
        iteration_s = max(float(np.median(np.diff(times))) for times in warm) / 1e9
        num_iterations = self.plan.iterations(iteration_s)
        before, used_before = busy_time(), self._used_s()
        with Sampling(
            self._sources(), self.plan.sample_period_s, Path(self._folder.name)
        ) as sampling:
            start = time.monotonic()
            for role in workers:
                role.say(str(num_iterations))
            limit_s = 10 * num_iterations * iteration_s + ANSWER_S
            done = {role.name: self._expect(role, "done", limit_s).times_ns for role in workers}
            elapsed_s = time.monotonic() - start
        after, used_after = busy_time(), self._used_s()
        own_s = used_after - used_before
        return RunRecord(
            workload=workload.name,
            samples=sampling.samples(),
            step_times_ns=done,
            units=dict.fromkeys(RESOURCES, 1.0) | {"device_util": workers[0].share.usage_unit_s},
            num_parameters=num_parameters,
            other_cores=(after.busy_s - before.busy_s - own_s) / elapsed_s,
            steal_cores=(after.steal_s - before.steal_s) / elapsed_s,
        )

    def _place(self) -> int:
        """Make every role build and place its graph; the number of trainable parameters."""
        workers = [self._roles[name] for name in self.workers]
        for name in self.servers:
            self._expect(self._roles[name], "ready")
        for role in workers:
            num_parameters = self._expect(role, "ready").num_parameters
        for role in workers:
            role.say("go")
        for role in workers:
            self._expect(role, "placed")
        return num_parameters

    def _warm(self) -> list[list[int]]:
        """Set the quotas and run the warm-up steps; times of each worker."""
        for name in self.servers + self.workers:  # not earlier: placing a graph takes a whole core
            self._roles[name].share.limit(self.shares[name])
        workers = [self._roles[name] for name in self.workers]
        for role in workers:
            role.say("go")
        return [self._expect(role, "warm").times_ns for role in workers]

    def _start(self, name: str) -> RoleProcess:
        return RoleProcess.start(
            name,
            prefix=self.network.command_prefix(name),
            library=self._library,
            log=Path(self._folder.name) / f"{name}.log",
        )

    def next_port(self) -> int:
        """A port that this cluster has not used recently."""
        return _FIRST_PORT + (self._port - _FIRST_PORT + 10) % _PORTS

    def _begin(
        self,
        workload: Workload,
        graph_path: Path | None,
        *,
        by_turns: bool = False,
    ) -> None:
        self._port = self.next_port()
        kinds: dict[Literal["ps", "worker"], list[str]] = {
            "ps": self.servers,
            "worker": self.workers,
        }
        cluster = {
            str(kind): tuple(self.network.address(name, self._port) for name in names)
            for kind, names in kinds.items()
        }
        for kind, names in kinds.items():
            for task, name in enumerate(names):
                job = RoleJob(
                    job=kind,
                    task=task,
                    cluster=cluster,
                    workload=workload.name,
                    warmup=self.plan.warmup,
                    graph=str(graph_path) if graph_path and name == self.workers[0] else None,
                    by_turns=by_turns,
                )
                self._roles[name].give(job)

    def _end_run(self) -> None:
        """Kill every fork, lift the quotas, and restart roles that have died."""
        for role in self._roles.values():
            role.share.limit(None)
        for name, role in list(self._roles.items()):
            if not role.drained():
                role.stop()
                self._roles[name] = self._start(name)
                self._expect(self._roles[name], "up")

    def _expect(self, role: RoleProcess, event: Event, timeout_s: float = ANSWER_S) -> RoleAnswer:
        """The next answer of a role, which must be `event`.

        Raises:
            MeasureError: another answer, or a role has failed or ended.
        """
        give_up = time.monotonic() + timeout_s
        while not role.unread:
            for other in self._receive(max(0.0, give_up - time.monotonic())):
                other.refuse_end()
            if time.monotonic() >= give_up and not role.unread:
                raise MeasureError(f"role {role.name} gave no answer for {timeout_s:.0f} s")
        role.refuse_end()
        answer = role.unread.pop(0)
        if answer.event != event:
            raise MeasureError(
                f"role {role.name} said '{answer.event}' in place of '{event}'; run again"
            )
        return answer

    def _receive(self, timeout_s: float) -> list[RoleProcess]:
        """Wait for answers of any role and store them; the roles that answered.

        Raises:
            MeasureError: a role's process has died.
        """
        streams = {role.descriptor: role for role in self._roles.values()}
        ready = select.select(list(streams), [], [], timeout_s)[0]
        heard = [streams[stream] for stream in ready]
        for role in heard:
            role.receive()
        return heard

    def _sources(self) -> list[str]:
        sources = []
        for name in self.workers:
            role = self._roles[name]
            paths = self.network.counter_paths(name)
            sources.append(f"{name}.device_util={role.share.usage_path}")
            sources.append(f"{name}.device_mem_util=mmap:{role.counter.path}")
            sources.extend(f"{name}.{resource}={path}" for resource, path in paths.items())
        return sources

    def _used_s(self) -> float:
        """CPU time used so far by all roles, seconds."""
        return sum(role.used_s() for role in self._roles.values())
