"""One launch of a training script: start, monitor and end its processes.

Launch (number of processes, machines, data) -> worker processes -> measurements of each rank
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from driple.codec import from_json, to_dict
from driple.errors import MeasureError
from driple.profiler.profile_records import RankResult, WorkerJob
from driple.profiler.steps import Plan, ProfileStep
from driple.storedfiles import read_json

__all__ = ["Launch", "LaunchPlace", "cores_of_devices", "run_launch"]

_POLL_S = 0.05
_SETTLE_S = 0.3  # wait after a failure: other ranks may report the cause
_TORCHRUN = ("TORCHELASTIC_", "GROUP_", "ROLE_")
_GRACE_S = 5.0  # between SIGTERM and SIGKILL
_LOG_CHARACTERS = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchPlace:
    """A machine of a launch, or a network namespace that emulates one.

    Attributes:
        processes: number of processes that run there.
        prefix: command prefix that enters it.
        environment: environment variables for it.
    """

    processes: int
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """Configuration of one launch.

    Attributes:
        command: the script and its arguments; `-m MODULE ...` is a module.
        step: step of the profile.
        plan: number of processes and iterations.
        places: machines or namespaces of the processes that this machine starts.
        master: address and port of the rendezvous.
        first_rank: first rank of this machine.
        world_size: number of processes of all machines.
        cores: core numbers of each device; None leaves the placement to the system.
    """

    command: tuple[str, ...]
    step: ProfileStep
    plan: Plan
    places: tuple[LaunchPlace, ...]
    master: tuple[str, int]
    first_rank: int = 0
    world_size: int = 0
    cores: tuple[tuple[int, ...], ...] | None = None

    @property
    def title(self) -> str:
        """Description for messages."""
        return f"step {self.step.number} ({self.step.title})"

    def job(self, folder: Path) -> WorkerJob:
        """Input of a worker, in addition to its environment."""
        return WorkerJob(
            folder=str(folder),
            synthetic=self.step.synthetic,
            time_gradients=self.step.number == 1,
            cores=self.cores,
            first_rank=self.first_rank,
            warmup=self.plan.warmup,
            iterations=self.plan.iterations,
            seed=self.plan.seed,
        )


def cores_of_devices(processes: int) -> tuple[tuple[int, ...], ...] | None:
    """Disjoint sets of cores of equal size, one per CPU device; None if there are too few cores."""
    mine = sorted(os.sched_getaffinity(0))
    each = len(mine) // processes
    if not each:
        return None
    return tuple(tuple(mine[i * each : (i + 1) * each]) for i in range(processes))


def run_launch(launch: Launch, folder: Path) -> list[RankResult]:
    """Run the processes of this machine until all have measured.

    Args:
        launch: configuration of the launch.
        folder: folder for the job, the logs and the results; emptied first.

    Returns:
        Measurements of this machine's ranks, in order.

    Raises:
        MeasureError: a process crashed, ended too early or refused the script, or the launch timed
            out; the message names the step and the log.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    job = folder / "job.json"
    job.write_text(json.dumps(to_dict(launch.job(folder.resolve()))), encoding="utf-8")
    started: list[tuple[int, subprocess.Popen[bytes]]] = []
    try:
        for place in launch.places:
            for local in range(place.processes):
                rank = launch.first_rank + len(started)
                environment = _environment(launch, place, rank=rank, local=local)
                started.append((rank, _start(launch, place, environment, job, folder)))
        _wait(launch, started, folder)
    finally:
        _end([process for _, process in started])
    return [_result(launch, folder, rank) for rank, _ in started]


def _environment(launch: Launch, place: LaunchPlace, *, rank: int, local: int) -> dict[str, str]:
    """The environment that torchrun would set, and one thread per core of the device.

    Variables that torchrun set for this process itself are removed.
    """
    threads = 1 if launch.cores is None else len(launch.cores[0])
    master, port = launch.master
    mine = {key: value for key, value in os.environ.items() if not key.startswith(_TORCHRUN)}
    return {
        "OMP_NUM_THREADS": str(threads),
        **mine,
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(launch.world_size or sum(one.processes for one in launch.places)),
        "LOCAL_WORLD_SIZE": str(place.processes),
        "MASTER_ADDR": master,
        "MASTER_PORT": str(port),
        "PYTHONUNBUFFERED": "1",
        **place.environment,
    }


def _start(
    launch: Launch,
    place: LaunchPlace,
    environment: Mapping[str, str],
    job: Path,
    folder: Path,
) -> subprocess.Popen[bytes]:
    with (folder / f"rank{environment['RANK']}.log").open("wb") as log:
        return subprocess.Popen(
            [
                *place.prefix, sys.executable, "-m", "driple.profiler.worker", str(job.resolve()),
                "--", *launch.command,
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,  # its data-loading processes end with it
        )  # fmt: skip


def _wait(
    launch: Launch, started: Sequence[tuple[int, subprocess.Popen[bytes]]], folder: Path
) -> None:
    """Return when all processes have succeeded; raise as soon as one fails."""
    give_up = time.monotonic() + launch.plan.timeout_s
    while True:
        states = [(rank, process.poll()) for rank, process in started]
        if any(_failed(folder, rank, status) for rank, status in states):
            time.sleep(_SETTLE_S)
            bad = [(r, s) for r, s in states if _failed(folder, r, s) and s is not None]
            refused = [(r, s) for r, s in bad if _result_file(folder, r).exists()]
            raise MeasureError(_why(launch, folder, *(refused or bad)[0]))
        if all(status == 0 for _, status in states):
            return
        if time.monotonic() > give_up:
            running = ", ".join(str(rank) for rank, status in states if status is None)
            raise MeasureError(
                f"{launch.title} was not done after {launch.plan.timeout_s:g} s (ranks still "
                f"running: {running}); if the script hangs see {folder}/rank*.log, else give a "
                "longer --set timeout=S or a smaller --set iterations=N; finished steps are kept"
            )
        time.sleep(_POLL_S)


def _result_file(folder: Path, rank: int) -> Path:
    return folder / f"rank{rank}.json"


def _failed(folder: Path, rank: int, status: int | None) -> bool:
    """Whether a process ended without success."""
    return status is not None and (status != 0 or not _result_file(folder, rank).exists())


def _why(launch: Launch, folder: Path, rank: int, status: int) -> str:
    """One line with the reason why a process failed."""
    result, log = _result_file(folder, rank), folder / f"rank{rank}.log"
    if result.exists():
        refused = json.loads(result.read_text(encoding="utf-8")).get("error")
        if refused:
            return f"{launch.title}: {refused}"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1].strip()[:_LOG_CHARACTERS] if lines else "it printed nothing"
    if status == 0:
        needed = launch.plan.warmup + launch.plan.iterations
        return (
            f"{launch.title}: the script ended before {needed} training iterations were seen; let "
            "it iterate over a torch DataLoader (or driple.profiler.batches(...)) and step an "
            "optimizer as often, in the process that was started and not in ones of its own, or "
            f"give a smaller --set iterations=N; see {log}"
        )
    how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return (
        f"{launch.title}: rank {rank} {how}: {last}; see {log}; finished steps are kept, run again "
        "to go on"
    )


def _result(launch: Launch, folder: Path, rank: int) -> RankResult:
    try:
        stored = read_json(_result_file(folder, rank))
    except (OSError, ValueError) as error:
        raise MeasureError(f"{launch.title}: rank {rank} left no result ({error})") from error
    where = f"{launch.title}: rank {rank} left no result"
    return replace(from_json(RankResult, stored, where=where, error=MeasureError), rank=rank)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """End the remaining processes and their children."""
    for ask in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, ask)
        give_up = time.monotonic() + _GRACE_S
        while any(process.poll() is None for process in processes):
            if time.monotonic() > give_up:
                break
            time.sleep(_POLL_S)
    for process in processes:
        process.wait()
