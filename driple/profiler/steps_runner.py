"""Run the steps of a stall profile, launch by launch, and store each result.

    OUT/profile.json        command, plan, machine; steps that were left out
    OUT/step2.r0.json       a launch: its times, its ranks, the load by other programs
    OUT/launch/             job, logs and results of the last launch

Repetitions are interleaved, so that a drift of the machine's speed spreads over all steps. The same
command continues an interrupted profile.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from driple.checks import check_whole
from driple.codec import to_dict
from driple.errors import ConfigError, MeasureError
from driple.files import atomic_write, wrap_os_error
from driple.measure.counters.machine import busy_time, host_facts
from driple.profiler.caches import CLEARERS, check_data, choose_clearer
from driple.profiler.launch import Launch, cores_of_devices, run_launch
from driple.profiler.machines import JoinedMachines, free_port, own_machine, stand_in_machines
from driple.profiler.profile_records import (
    LaunchRecord,
    PlanRecord,
    ProfiledHost,
    ProfileRecord,
    RankResult,
)
from driple.profiler.stall_profile import StallProfile, disturbance, read_profile
from driple.profiler.steps import STEPS, Plan, ProfileStep

__all__ = ["Progress", "check_command", "default_processes", "follow", "profile_script"]

# Called with a description of the current launch, the launches done, and the total.
Progress = Callable[[str, int, int], None]


def default_processes() -> int:
    """Number of devices: the GPUs; without GPUs, two CPU devices if there are two cores."""
    import torch

    return torch.cuda.device_count() or min(2, len(os.sched_getaffinity(0)))


def profile_script(
    command: Sequence[str],
    plan: Plan,
    folder: Path,
    *,
    data: Sequence[Path] = (),
    steps: Sequence[int] = tuple(STEPS),
    group: JoinedMachines | None = None,
    progress: Progress = lambda *_: None,
) -> StallProfile:
    """Run the missing steps of a profile.

    Args:
        command: the script and its arguments, or `-m MODULE` and its arguments.
        plan: number of processes, iterations and launches.
        folder: folder of the profile; an existing profile is continued.
        data: files or folders that the script reads.
        steps: numbers of the steps to run.
        group: the machines that torchrun joined, with this one as leader; None without torchrun.
        progress: called before each launch.

    Raises:
        ConfigError: a script, data or folder that cannot be used.
        MeasureError: the script crashed, hung or cannot be profiled in one of the steps, or the
            folder holds another profile; finished launches are kept.
    """
    check_command(command)
    check_data(data)
    for number in steps:
        check_whole("a step", number, min(STEPS), max(STEPS))
    run = _Run(tuple(command), plan, folder, tuple(data), group)
    try:
        run.go([STEPS[number] for number in sorted(set(steps))], progress)
    finally:
        if group is not None:
            group.stop()
    return read_profile(folder)


def follow(group: JoinedMachines, command: Sequence[str], plan: Plan, folder: Path) -> int:
    """Take part in step 5 as a follower; the number of launches.

    Raises:
        MeasureError: the leader has ended.
    """
    check_command(command)
    run = _Run(tuple(command), plan, folder, (), group)
    return group.follow(lambda port, _: run.group_launch(port))


class _Run:
    """One call of `profile_script`."""

    def __init__(
        self,
        command: tuple[str, ...],
        plan: Plan,
        folder: Path,
        data: tuple[Path, ...],
        group: JoinedMachines | None,
    ) -> None:
        import torch

        self.command, self.plan, self.folder = command, plan, folder
        self.data, self.group = data, group
        gpus = torch.cuda.device_count()
        self.gpus = tuple(range(gpus))
        if gpus and plan.processes > gpus:
            raise ConfigError(
                f"--devices {plan.processes} are more than the {gpus} GPUs of this machine"
            )
        self.clearer = ""
        self.cached = False  # whether the real data was read before, in the same order
        if group is not None and plan.processes % group.size:
            raise ConfigError(
                f"{plan.processes} processes cannot be shared among the {group.size} machines that "
                "torchrun joined; give --devices that this divides"
            )

    def go(self, wanted: Sequence[ProfileStep], progress: Progress) -> None:
        """Run all missing launches."""
        about = self._open()
        left_out = {
            step.number: why for step in wanted if (why := self._obstacle(step)) is not None
        }
        self._save_about(replace(about, left_out=left_out))
        steps = [step for step in wanted if step.number not in left_out]
        todo = [(step, repeat) for repeat in range(self.plan.repeats) for step in steps]
        for done, (step, repeat) in enumerate(todo):
            if self._file(step, repeat).exists():
                continue
            for words in self._measure(step, repeat):
                progress(f"step {step.number}: {step.title}{words}", done, len(todo))
        progress("done", len(todo), len(todo))

    def _measure(self, step: ProfileStep, repeat: int) -> Iterator[str]:
        """Run one launch and store it; repeat it if other programs disturbed it."""
        if not step.cold and not step.synthetic and not self.cached:
            self._launch(step)  # fills the caches; its result is dropped
        launches: list[LaunchRecord] = []
        while len(launches) < self.plan.tries and not any(
            disturbance(one) <= 1 for one in launches
        ):
            yield ", disturbed: again" if launches else ""
            if step.cold:
                CLEARERS[self.clearer](self.data)
            launches.append(self._launch(step))
            self.cached = self.cached or not step.synthetic
            self._check_batch(step, launches[-1])
        kept = replace(min(launches, key=disturbance), cleared=self.clearer if step.cold else None)
        data = json.dumps(to_dict(kept)).encode()
        atomic_write(self._file(step, repeat), data, error=MeasureError)

    def _launch(self, step: ProfileStep) -> LaunchRecord:
        """Run a step once; the combined measurements of its ranks."""
        begin_s, own_s = time.monotonic(), time.process_time()
        before, children = busy_time(), _children_s()
        if step.number == 5 and self.group is not None:
            port = free_port()
            ranks = self.group.order(port, self.plan.timeout_s, lambda: self.group_launch(port))
        elif step.number == 5:
            with stand_in_machines(
                self.plan.processes,
                self.plan.machines,
                self.plan.network_bits_per_s or 0.0,
                self.gpus[: self.plan.processes],
            ) as (places, master):
                ranks = self._run(step, places, master)
        else:
            ranks = self._run(step, *own_machine(1 if step.number == 1 else self.plan.processes))
        wall_s = time.monotonic() - begin_s
        own_s = time.process_time() - own_s
        after = busy_time()
        others_s = after.busy_s - before.busy_s - (_children_s() - children) - own_s
        return replace(
            self._summary(ranks, wall_s=wall_s, own_s=own_s),
            other_cores=max(others_s / wall_s, 0.0),
            stolen_cores=(after.steal_s - before.steal_s) / wall_s,
        )

    def _run(self, step: ProfileStep, places: Any, master: tuple[str, int]) -> list[RankResult]:
        launch = Launch(
            command=self.command,
            step=step,
            plan=self.plan,
            places=places,
            master=master,
            cores=None if self.gpus else cores_of_devices(self.plan.processes),
        )
        return run_launch(launch, self.folder / "launch")

    def group_launch(self, port: int) -> list[RankResult]:
        """This machine's part of step 5, on machines that torchrun joined."""
        if self.group is None:
            raise MeasureError("no other machines; start driple profile run with torchrun on each")
        each = self.plan.processes // self.group.size
        places, _ = own_machine(each)
        launch = Launch(
            command=self.command,
            step=STEPS[5],
            plan=self.plan,
            # Gloo and NCCL find the network interface, or the user's environment names it.
            places=tuple(replace(place, environment={}) for place in places),
            master=(self.group.master, port),
            first_rank=self.group.rank * each,
            world_size=self.plan.processes,
            cores=None if self.gpus else cores_of_devices(each),
        )
        return run_launch(launch, self.folder / "launch")

    def _summary(self, ranks: list[RankResult], *, wall_s: float, own_s: float) -> LaunchRecord:
        """Combined measurements of all ranks; the slowest rank determines the iteration time."""
        means = [sum(rank.iterations_s) / len(rank.iterations_s) for rank in ranks]
        slowest, first = max(means), ranks[0]
        meter_s = max(rank.meter_s for rank in ranks)
        cores = len(os.sched_getaffinity(0))
        return LaunchRecord(
            iteration_s=slowest,
            ranks_s=tuple(means),
            iterations_s=first.iterations_s,
            batch_size=first.batch_size,
            batches_per_epoch=first.batches_per_epoch,
            processes=len(ranks),
            wrapped=all(rank.wrapped for rank in ranks),
            bucket_mib=first.bucket_mib,
            device=first.device,
            backend=first.backend,
            gradients=first.gradients,
            wall_s=wall_s,
            overhead_pct=100 * (meter_s / slowest + own_s / (wall_s * cores)),
            script=_digest(self.command),
            other_cores=0.0,
            stolen_cores=0.0,
            cleared=None,
        )

    def _obstacle(self, step: ProfileStep) -> str | None:
        """Reason why this machine cannot run a step; None if it can, or has."""
        if all(self._file(step, repeat).exists() for repeat in range(self.plan.repeats)):
            return None
        if step.number in {1, 5} and self.plan.processes == 1:
            return "there is one device: no device waits for another"
        try:
            if step.cold:
                self.clearer = choose_clearer(self.data)
            if step.number == 5 and self.group is None:
                if self.plan.network_bits_per_s is None:
                    return (
                        "there is one machine: give --set bandwidth=1G to let namespaces stand in "
                        "for several, or start the profiler on each with torchrun"
                    )
                each = self.plan.machines
                with stand_in_machines(each, each, self.plan.network_bits_per_s):
                    pass
        except MeasureError as error:
            return str(error)
        return None

    def _check_batch(self, step: ProfileStep, launch: LaunchRecord) -> None:
        """Raise MeasureError unless the batch size per process is the same in all steps."""
        for other in STEPS:
            file = self._file(STEPS[other], 0)
            if not file.exists():
                continue
            size = json.loads(file.read_text(encoding="utf-8"))["batch_size"]
            if size != launch.batch_size:
                raise MeasureError(
                    f"step {step.number} ({step.title}) had batches of {launch.batch_size} where "
                    f"step {other} had {size}; the batch of a process must not depend on how many "
                    "processes there are"
                )

    def _file(self, step: ProfileStep, repeat: int) -> Path:
        return self.folder / f"step{step.number}.r{repeat}.json"

    def _open(self) -> ProfileRecord:
        """Content of profile.json, which is created if it is missing."""
        with wrap_os_error(ConfigError, f"make folder {self.folder}", "give another --output"):
            self.folder.mkdir(parents=True, exist_ok=True)
        plan = PlanRecord(
            processes=self.plan.processes,
            machines=self.plan.machines,
            network_bits_per_s=self.plan.network_bits_per_s,
            iterations=self.plan.iterations,
            warmup=self.plan.warmup,
            seed=self.plan.seed,
        )
        data = tuple(str(place) for place in self.data)
        if not (self.folder / "profile.json").exists():
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            host = ProfiledHost.of(host_facts(), len(self.gpus))
            return ProfileRecord(command=self.command, plan=plan, data=data, host=host, created=now)
        about = read_profile(self.folder).about
        mine = replace(about, command=self.command, plan=plan, data=data)
        fixed = ("command", "plan", "data")
        other = [name for name in fixed if getattr(about, name) != getattr(mine, name)]
        if other:
            stored = to_dict(about)
            raise MeasureError(
                f"{self.folder} holds a profile with another {' and '.join(other)} "
                f"({', '.join(json.dumps(stored[name]) for name in other)}); give another --output"
            )
        return about

    def _save_about(self, about: ProfileRecord) -> None:
        atomic_write(
            self.folder / "profile.json",
            json.dumps(to_dict(about), indent=1).encode(),
            error=ConfigError,
        )


def check_command(command: Sequence[str]) -> None:
    """Raise ConfigError unless there is a script that can be profiled."""
    if not command or list(command) == ["-m"]:
        raise ConfigError("no script to profile; give one after --, as in: -- train.py --epochs 1")
    if command[0] != "-m" and not Path(command[0]).is_file():
        raise ConfigError(f"the script {command[0]} is not there; give a file, or -m MODULE")


def _digest(command: Sequence[str]) -> str:
    """Hash of the script, which detects changes; empty for a module."""
    if command[0] == "-m":
        return ""
    return hashlib.sha256(Path(command[0]).read_bytes()).hexdigest()[:12]


def _children_s() -> float:
    """CPU time of finished child processes, seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
