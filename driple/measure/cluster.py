"""A cluster of one machine: starts the roles, runs workloads on them, samples while they train.

    LocalCluster(setting) -> run(workload) -> RunRecord (samples, step times, what disturbed it)

Each role is a process of its own in a network namespace of its own with a CPU share of its own.
The shares are lifted while a role builds its graph and set before its first step.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from driple.errors import MeasureError
from driple.measure.cgroups import CpuShare
from driple.measure.machine import busy_time
from driple.measure.memory import AllocationCounter, build_alloc_counter
from driple.measure.network import ClusterNetwork
from driple.measure.samples import Samples
from driple.settings import Setting
from driple.targets import RESOURCES
from driple.zoo.workload import Workload

__all__ = ["LocalCluster", "RunPlan", "RunRecord", "require_measurable"]

_FIRST_PORT = 2222
_PORTS = 20_000
_ANSWER_S = 120.0
# A role that was told of a job a moment ago may fork after its group was cleared.
_KILL_AGAIN_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class RunPlan:
    """How a workload is measured.

    Attributes:
        share: cores that each worker may use.
        server_share: cores that each parameter server may use.
        warmup: iterations that are run but not measured.
        min_iterations: iterations measured, at least.
        max_iterations: iterations measured, at most.
        seconds: iterations are added until the run lasts about this long.
        max_seconds: and taken away until it lasts at most this long; never below 10 iterations.
        sample_period_s: seconds between two samples.
    """

    share: float = 0.4
    server_share: float = 0.4
    warmup: int = 4
    min_iterations: int = 30
    max_iterations: int = 100
    seconds: float = 9.0
    max_seconds: float = 16.0
    sample_period_s: float = 0.005

    def iterations(self, iteration_s: float) -> int:
        """How many iterations to measure when one takes this long."""
        wanted = max(self.min_iterations, math.ceil(self.seconds / iteration_s))
        affordable = max(10, int(self.max_seconds / iteration_s))
        return min(wanted, self.max_iterations, affordable)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunRecord:
    """One measured run, before anything is computed from it.

    Attributes:
        workload: name of the workload.
        samples: counters `<role>.<resource>`.
        step_times_ns: for each worker, monotonic times before the first and after every iteration.
        units: what one unit of each resource's counter is, in seconds or bytes.
        num_parameters: trainable parameters of the model.
        other_cores: cores that everything else on the machine used meanwhile.
        steal_cores: cores that the hypervisor took away meanwhile.
    """

    workload: str
    samples: Samples
    step_times_ns: dict[str, list[int]]
    units: dict[str, float]
    num_parameters: int
    other_cores: float
    steal_cores: float


@dataclass(slots=True)
class _Role:
    """A role's process and what belongs to it.

    Attributes:
        name: `ps0`, `w0`, ...
        process: the long-lived process.
        share: its control group.
        counter: page that its allocated bytes are counted in.
        log: file of what it prints.
        busy: whether a job was sent that has not ended.
        unread: answers that arrived and were not looked at.
        rest: the beginning of an answer whose end has not arrived.
    """

    name: str
    process: subprocess.Popen[bytes]
    share: CpuShare
    counter: AllocationCounter
    log: Path
    busy: bool = False
    unread: list[dict[str, Any]] = field(default_factory=list)
    rest: bytes = b""

    @property
    def descriptor(self) -> int:
        """What the process writes to."""
        if self.process.stdout is None:
            raise MeasureError(f"role {self.name} was started without an output")
        return self.process.stdout.fileno()

    def receive(self) -> None:
        """Take what the process has written.

        Raises:
            MeasureError: it has died.
        """
        fresh = os.read(self.descriptor, 65_536)
        if not fresh:
            last = self.log.read_text().strip().splitlines()[-1:] or ["no message"]
            raise MeasureError(f"role {self.name} died ({last[0][:200]}); run again to resume")
        *lines, self.rest = (self.rest + fresh).split(b"\n")
        self.unread += [json.loads(line) for line in lines]


def _refuse_end(role: _Role) -> None:
    """Raise MeasureError if a role said that its run failed or ended."""
    for answer in role.unread:
        if answer["event"] == "failed":
            raise MeasureError(f"role {role.name} failed: {answer['error']}")
        if answer["event"] == "ended":
            raise MeasureError(f"role {role.name} died in the middle of a run; run again to resume")


def require_measurable(setting: Setting) -> float:
    """Rate of the setting's links in bit/s.

    Raises:
        MeasureError: this machine cannot stand in for the setting.
    """
    rate = setting.bits_per_s
    if setting.device != "CPU" or rate is None or not setting.num_servers:
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
        self.workers = [f"w{i}" for i in range(setting.num_workers)]
        self.network = ClusterNetwork(self.servers + self.workers, rate)
        self.versions: dict[str, str] = {}
        self._roles: dict[str, _Role] = {}
        self._port = _FIRST_PORT + os.getpid() % 1000
        self._folder = tempfile.TemporaryDirectory(prefix="driple-cluster-")
        self._library = Path()

    def __enter__(self) -> LocalCluster:
        """Create the network and start every role."""
        self.network.__enter__()
        try:
            self._library = build_alloc_counter(Path(self._folder.name))
            for name in self.network.roles:
                self._roles[name] = self._start(name)
            for role in self._roles.values():
                self.versions = self._expect(role, "up")["versions"]
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
        """Stop what runs and remove what was made."""
        for role in self._roles.values():
            _stop(role)
        self._roles.clear()
        self.network.close()
        self._folder.cleanup()

    def run(self, workload: Workload, graph_path: Path) -> RunRecord:
        """Train the workload, measuring; the chief's GraphDef is written to `graph_path`.

        Raises:
            MeasureError: a role died or failed; the cluster is good for the next run.
        """
        try:
            return self._run(workload, graph_path)
        finally:
            self._end_run()

    def _run(self, workload: Workload, graph_path: Path) -> RunRecord:
        self._port = _FIRST_PORT + (self._port - _FIRST_PORT + 10) % _PORTS
        self._begin(workload, graph_path)
        workers = [self._roles[name] for name in self.workers]
        for name in self.servers:
            self._expect(self._roles[name], "ready")
        for role in workers:
            num_parameters = int(self._expect(role, "ready")["num_parameters"])
        for name, role in self._roles.items():
            role.share.limit(self.plan.share if name in self.workers else self.plan.server_share)
        self._say(workers, "go")
        warm = [self._expect(role, "warm")["times_ns"] for role in workers]
        iteration_s = max(statistics.median(np.diff(times)) for times in warm) / 1e9
        num_iterations = self.plan.iterations(iteration_s)
        before, used_before = busy_time(), self._used_s()
        with _Sampling(self._sources(), self.plan.sample_period_s, self._folder.name) as sampling:
            start = time.monotonic()
            self._say(workers, str(num_iterations))
            limit_s = 10 * num_iterations * iteration_s + _ANSWER_S
            done = {role.name: self._expect(role, "done", limit_s)["times_ns"] for role in workers}
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

    def _start(self, name: str) -> _Role:
        counter, share = AllocationCounter(name), CpuShare(name)
        share.limit(None)
        log = Path(self._folder.name) / f"{name}.log"
        environment = (
            os.environ
            | counter.environment(self._library)
            | {
                "CUDA_VISIBLE_DEVICES": "",
                "TF_CPP_MIN_LOG_LEVEL": "2",
                "TF_ENABLE_ONEDNN_OPTS": "0",
                "OMP_NUM_THREADS": "1",
            }
        )
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*self.network.command_prefix(name), sys.executable, "-m", "driple.measure.role"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                env=environment,
            )
        share.add(process.pid)
        return _Role(name=name, process=process, share=share, counter=counter, log=log)

    def _begin(self, workload: Workload, graph_path: Path) -> None:
        cluster = {
            kind: [self.network.address(name, self._port) for name in names]
            for kind, names in (("ps", self.servers), ("worker", self.workers))
        }
        for kind, names in (("ps", self.servers), ("worker", self.workers)):
            for task, name in enumerate(names):
                job = {
                    "job": kind,
                    "task": task,
                    "cluster": cluster,
                    "workload": workload.name,
                    "warmup": self.plan.warmup,
                    "graph": str(graph_path) if name == self.workers[0] else None,
                }
                self._roles[name].busy = True
                self._say([self._roles[name]], json.dumps(job))

    def _end_run(self) -> None:
        """Kill every fork, lift the shares, and start a role again that has died."""
        for role in self._roles.values():
            role.share.limit(None)
        for name, role in list(self._roles.items()):
            if not _drained(role):
                _stop(role)
                self._roles[name] = self._start(name)
                self._expect(self._roles[name], "up")

    def _say(self, roles: list[_Role], line: str) -> None:
        for role in roles:
            if role.process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):  # a dead role is told when it is read
                    role.process.stdin.write(line.encode() + b"\n")

    def _expect(self, role: _Role, event: str, timeout_s: float = _ANSWER_S) -> dict[str, Any]:
        """The next answer of a role, which must be this one.

        Raises:
            MeasureError: it is another one, or any role has failed or ended meanwhile.
        """
        give_up = time.monotonic() + timeout_s
        while not role.unread:
            for other in self._receive(max(0.0, give_up - time.monotonic())):
                _refuse_end(other)
            if time.monotonic() >= give_up and not role.unread:
                raise MeasureError(f"role {role.name} gave no answer for {timeout_s:.0f} s")
        _refuse_end(role)
        answer = role.unread.pop(0)
        if answer["event"] != event:
            raise MeasureError(
                f"role {role.name} said '{answer['event']}' in place of '{event}'; run again"
            )
        return answer

    def _receive(self, timeout_s: float) -> list[_Role]:
        """Wait for answers of any role and keep them; the roles that said something.

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
        """CPU seconds that all roles used so far."""
        total = 0.0
        for role in self._roles.values():
            words = role.share.usage_path.read_text().split()
            number = next(int(word) for word in words if word.isdigit())
            total += number * role.share.usage_unit_s
        return total


class _Sampling:
    """The sampler process, while a run lasts."""

    def __init__(self, sources: list[str], period_s: float, folder: str) -> None:
        self._names = tuple(source.split("=", 1)[0] for source in sources)
        self._period_s = period_s
        self._out = Path(folder) / "samples.raw"
        self._command = [
            sys.executable,
            "-m",
            "driple.measure.sampler",
            str(self._out),
            str(period_s),
            *sources,
        ]

    def __enter__(self) -> _Sampling:
        self._out.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._command)
        give_up = time.monotonic() + _ANSWER_S
        while not self._out.exists():
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise MeasureError("the sampler did not start; see its message above")
            time.sleep(0.01)
        time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def samples(self) -> Samples:
        """What was sampled."""
        width = len(self._names) + 2
        raw = np.fromfile(self._out, dtype=np.int64)
        rows = raw[: len(raw) // width * width].reshape(-1, width)
        return Samples(
            names=self._names,
            before_ns=rows[:, 0],
            after_ns=rows[:, 1],
            values=rows[:, 2:],
            period_s=self._period_s,
        )


def _drained(role: _Role) -> bool:
    """End the role's run; whether the role is good for another one."""
    give_up = time.monotonic() + _ANSWER_S
    role.share.kill_all_but(role.process.pid)
    while role.busy:
        if any(answer["event"] == "ended" for answer in role.unread):
            role.busy = False
        elif time.monotonic() > give_up:
            return False
        elif not select.select([role.descriptor], [], [], _KILL_AGAIN_S)[0]:
            role.share.kill_all_but(role.process.pid)
        else:
            try:
                role.receive()
            except MeasureError:
                return False
    role.unread.clear()
    return role.process.poll() is None


def _stop(role: _Role) -> None:
    """End a role's process with all its forks, and remove what belongs to it."""
    role.process.kill()
    role.process.wait()
    role.counter.close()
    role.share.remove()
