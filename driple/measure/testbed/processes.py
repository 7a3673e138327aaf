"""The processes of a measuring run as the cluster sees them: what starts, talks to and ends them.

RoleProcess   one parameter server or worker (`role.py`), which forks for each workload
Sampling      the sampler (`sampler.py`), while a run lasts -> Samples
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from driple.errors import MeasureError
from driple.measure.counters.cgroups import CpuShare
from driple.measure.counters.memory import AllocationCounter
from driple.measure.counters.samples import Samples
from driple.measure.testbed.messages import RoleAnswer, RoleJob, from_line, to_line

__all__ = ["ANSWER_S", "RoleProcess", "Sampling"]

# How long a process may be silent where its answer is due, in seconds.
ANSWER_S = 120.0
# A role that was told of a job a moment ago may fork after its group was cleared.
_KILL_AGAIN_S = 0.5

_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "OMP_NUM_THREADS": "1",
}


@dataclass(slots=True)
class RoleProcess:
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
    unread: list[RoleAnswer] = field(default_factory=list)
    rest: bytes = b""

    @classmethod
    def start(cls, name: str, *, prefix: Sequence[str], library: Path, log: Path) -> RoleProcess:
        """Start a role without a limit on its share; it says `up` when it can take jobs.

        Args:
            name: of the role.
            prefix: words before the command, which bring it into its network namespace.
            library: counter of allocations, loaded before all else.
            log: file for what it prints.
        """
        counter, share = AllocationCounter(name), CpuShare(name)
        share.limit(None)
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "driple.measure.testbed.worker_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                env=os.environ | counter.environment(library) | _ENVIRONMENT,
            )
        share.add(process.pid)
        return cls(name=name, process=process, share=share, counter=counter, log=log)

    @property
    def descriptor(self) -> int:
        """What the process writes to."""
        if self.process.stdout is None:
            raise MeasureError(f"role {self.name} was started without an output")
        return self.process.stdout.fileno()

    def say(self, line: str) -> None:
        """Send a line; that a role is dead is told when it is read."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(line.encode() + b"\n")

    def give(self, job: RoleJob) -> None:
        """Send a job; the role is busy until its fork has ended."""
        self.busy = True
        self.say(to_line(job))

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
        self.unread += [from_line(RoleAnswer, line, f"role {self.name}") for line in lines]

    def refuse_end(self) -> None:
        """Raise MeasureError if the role said that its run failed or ended."""
        for answer in self.unread:
            if answer.event == "failed":
                raise MeasureError(f"role {self.name} failed: {answer.error}")
            if answer.event == "ended":
                raise MeasureError(
                    f"role {self.name} died in the middle of a run; run again to resume"
                )

    def used_s(self) -> float:
        """CPU seconds that the role and its forks used so far."""
        words = self.share.usage_path.read_text().split()
        number = next(int(word) for word in words if word.isdigit())
        return number * self.share.usage_unit_s

    def drained(self) -> bool:
        """End the role's run; whether the role is good for another one."""
        give_up = time.monotonic() + ANSWER_S
        self.share.kill_all_but(self.process.pid)
        while self.busy:
            if any(answer.event == "ended" for answer in self.unread):
                self.busy = False
            elif time.monotonic() > give_up:
                return False
            elif not select.select([self.descriptor], [], [], _KILL_AGAIN_S)[0]:
                self.share.kill_all_but(self.process.pid)
            else:
                try:
                    self.receive()
                except MeasureError:
                    return False
        self.unread.clear()
        return self.process.poll() is None

    def stop(self) -> None:
        """End the process with all its forks, and remove what belongs to it."""
        self.process.kill()
        self.process.wait()
        self.counter.close()
        self.share.remove()


class Sampling:
    """The sampler process, while a run lasts; a context manager.

    Args:
        sources: `NAME=PATH` or `NAME=mmap:PATH` of each counter.
        period_s: seconds between two samples.
        folder: where the raw rows are written.
    """

    def __init__(self, sources: Sequence[str], period_s: float, folder: Path) -> None:
        self._names = tuple(source.split("=", 1)[0] for source in sources)
        self._period_s = period_s
        self._out = folder / "samples.raw"
        self._command = [
            sys.executable,
            "-m",
            "driple.measure.counters.sampler",
            str(self._out),
            str(period_s),
            *sources,
        ]

    def __enter__(self) -> Sampling:
        """Start it; it samples when this returns."""
        self._out.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._command)
        give_up = time.monotonic() + ANSWER_S
        while not self._out.exists():
            if self._process.poll() is not None or time.monotonic() > give_up:
                self._process.kill()
                self._process.wait()
                raise MeasureError("the sampler did not start; see its message above")
            time.sleep(0.01)
        time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it and wait until its rows are written."""
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
