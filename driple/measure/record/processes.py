"""A process and its descendants: CPU time to the nanosecond, memory and disk traffic.

    pid --/proc/PID/task/*/children--> processes --their CPU clocks--> nanoseconds of the tree

The CPU clock of a process counts all of its threads, also those that ended, needs no permission,
and is one system call. A process that ended keeps the time it had when it was read last.
"""

from __future__ import annotations

import os
import select
import time
from pathlib import Path

from driple.errors import MeasureError

__all__ = ["ProcessTree", "allowed_cores"]

_PROC = Path("/proc")
_LOOK_EVERY = 20
_MOST_BYTES = 1 << 16
_CPU_CLOCK = 2  # CPUCLOCK_SCHED of <linux/posix-timers.h>


class ProcessTree:
    """A process with its descendants; `refresh` finds new ones.

    Args:
        pid: of the process.

    Raises:
        MeasureError: there is no such process.
    """

    def __init__(self, pid: int) -> None:
        try:
            self._ended = os.pidfd_open(pid)
        except OSError as error:
            raise MeasureError(
                f"process {pid}: {error.strerror}; give the number of a running process (ps, pgrep)"
            ) from error
        self._poll = select.poll()
        self._poll.register(self._ended, select.POLLIN)
        self.pid, self._asked = pid, 0
        self._clocks: dict[int, int] = {}  # CPU clocks by process
        self._active: dict[int, int] = {}  # those that every row reads
        self._ended_ns = 0
        self._last_ns: dict[int, int] = {}
        self._refreshed_ns: dict[int, int] = {}
        self._disk = (0, 0)
        self.refresh()

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that are running."""
        return tuple(self._clocks)

    def is_over(self) -> bool:
        """Whether the first process has ended; asked often, it looks at every 20th call."""
        self._asked += 1
        return self._asked % _LOOK_EVERY == 0 and bool(self._poll.poll(0))

    def refresh(self) -> None:
        """Find processes that were started since the last call, and those that work.

        A process that has used no CPU time since the last call is read at the next one only.
        """
        waiting, seen = [self.pid], set()
        while waiting:
            pid = waiting.pop()
            if pid not in seen:
                seen.add(pid)
                self._clocks.setdefault(pid, (~pid << 3) | _CPU_CLOCK)
                waiting += _children(pid)
        self._active = dict(self._clocks)
        self.cpu_ns()
        self._active = {
            pid: clock
            for pid, clock in self._clocks.items()
            if self._last_ns[pid] != self._refreshed_ns.get(pid)
        }
        self._refreshed_ns = dict(self._last_ns)

    def cpu_ns(self) -> int:
        """CPU time that the tree has used so far, in nanoseconds."""
        last, ended = self._last_ns, []
        for pid, clock in self._active.items():
            try:
                last[pid] = time.clock_gettime_ns(clock)
            except OSError:
                ended.append(pid)
        for pid in ended:
            del self._clocks[pid], self._active[pid]
            self._ended_ns += last.pop(pid, 0)
        return self._ended_ns + sum(last.values())

    def memory_bytes(self) -> int:
        """Resident memory of the tree; pages that processes share count in each of them."""
        page = os.sysconf("SC_PAGE_SIZE")
        return sum(int(words[1]) * page for pid in self._clocks if (words := _words(pid, "statm")))

    def disk_bytes(self) -> tuple[int, int] | None:
        """Bytes that the tree has read from and written to disks; None without permission."""
        totals = [0, 0]
        for pid in self._clocks:
            words = _words(pid, "io")
            if not words:
                if pid == self.pid and not self._poll.poll(0):
                    return None
                continue
            values = dict(zip(words[::2], words[1::2], strict=False))
            totals[0] += int(values.get("read_bytes:", 0))
            totals[1] += int(values.get("write_bytes:", 0))
        # A parent takes over the counts of a child that it has waited for.
        self._disk = (max(self._disk[0], totals[0]), max(self._disk[1], totals[1]))
        return self._disk

    def close(self) -> None:
        """Give the process's handle back."""
        os.close(self._ended)


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  # half the time
    except OSError:
        return []
    return [int(word) for thread in threads for word in _words(pid, f"task/{thread}/children")]


def _words(pid: int, file: str) -> list[str]:
    """Words of a file of a process; none if it has ended, or may not be read."""
    try:
        descriptor = os.open(f"/proc/{pid}/{file}", os.O_RDONLY)
    except OSError:
        return []
    try:
        return os.read(descriptor, _MOST_BYTES).decode().split()
    except OSError:
        return []
    finally:
        os.close(descriptor)


def allowed_cores(pid: int) -> float:
    """Cores that a process may use: its affinity, or the CPU quota of its control groups."""
    cores = float(len(os.sched_getaffinity(pid)))
    try:
        lines = (_PROC / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return cores
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            base = Path("/sys/fs/cgroup")
            quota = _numbers(_up(base, group, "cpu.max"))
        elif "cpu" in controllers.split(","):
            base = Path("/sys/fs/cgroup/cpu")
            quota = [
                *_numbers(_up(base, group, "cpu.cfs_quota_us")),
                *_numbers(_up(base, group, "cpu.cfs_period_us")),
            ]
        else:
            continue
        if len(quota) == 2 and quota[0] > 0 and quota[1] > 0:
            cores = min(cores, quota[0] / quota[1])
    return cores


def _up(base: Path, group: str, name: str) -> Path:
    return base / group.strip("/") / name


def _numbers(file: Path) -> list[float]:
    try:
        return [float(word) for word in file.read_text().split() if word != "max"]
    except (OSError, ValueError):
        return []
