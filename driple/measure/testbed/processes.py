"""Handles of the processes of a measuring run: start, communicate, end.

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

WORKER_MODULE = "driple.measure.testbed.worker_process"
"""Program of a role; a check of networks that the zoo lacks puts its own here."""
# Timeout of an expected answer, seconds.
ANSWER_S = 120.0
# A role that has just received a job may fork after its group was cleared.
_KILL_AGAIN_S = 0.5

_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "OMP_NUM_THREADS": "1",
}


@dataclass(slots=True)
class RoleProcess:
    """A role's process with its resources.

    Attributes:
        name: `ps0`, `w0`, ...
        process: the long-lived process.
        share: its control group.
        counter: page that its allocated bytes are counted in.
        log: file with its output.
        busy: whether a job is running.
        unread: answers that were received but not processed.
        rest: start of an incomplete answer.
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
        """Start a role without a CPU quota; it answers `up` when it can take jobs.

        Args:
            name: of the role.
            prefix: command prefix that enters its network namespace.
            library: allocation counter, which is preloaded.
            log: file for its output.
        """
        counter, share = AllocationCounter(name), CpuShare(name)
        share.limit(None)
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-m", WORKER_MODULE],
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
        """File descriptor of the process's output."""
        if self.process.stdout is None:
            raise MeasureError(f"role {self.name} was started without an output")
        return self.process.stdout.fileno()

    def say(self, line: str) -> None:
        """Send a line; the death of a role is reported by `receive`."""
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
        """Raise MeasureError if the role answered that its run failed or ended."""
        for answer in self.unread:
            if answer.event == "failed":
                raise MeasureError(f"role {self.name} failed: {answer.error}")
            if answer.event == "ended":
                raise MeasureError(
                    f"role {self.name} died in the middle of a run; run again to resume"
                )

    def used_s(self) -> float:
        """CPU time used so far by the role and its forks, seconds."""
        words = self.share.usage_path.read_text().split()
        number = next(int(word) for word in words if word.isdigit())
        return number * self.share.usage_unit_s

    def drained(self) -> bool:
        """End the role's run; whether the role can take another one."""
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
        """End the process with all its forks, and remove its resources."""
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
        """Start the sampler and wait until it samples."""
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
        """Stop the sampler and wait until its rows are written."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait()

    def samples(self) -> Samples:
        """The samples."""
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
