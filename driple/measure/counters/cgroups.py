"""CPU quotas and CPU time of roles by control groups, version 1 or 2."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from driple.errors import MeasureError

__all__ = ["CpuShare"]

_ROOT = Path("/sys/fs/cgroup")
# A short period spreads the quota evenly: with the kernel's 100 ms a role would run for tens of
# milliseconds and then pause for tens more.
_PERIOD_US = 10_000
# Maximum weight that the kernel accepts, by version.
_WEIGHTS = {1: 262_144, 2: 10_000}
# A killed process leaves its group within milliseconds.
_EMPTY_S = 10.0


class CpuShare:
    """The control group of one role.

    Attributes:
        usage_path: file whose first number is the CPU time used so far.
        usage_unit_s: seconds per unit of that number.
    """

    def __init__(self, role: str) -> None:
        if (_ROOT / "cpu" / "cpu.cfs_quota_us").exists():
            self._version = 1
            self._folders = tuple(_ROOT / kind / f"driple_{role}" for kind in ("cpu", "cpuacct"))
            self.usage_path, self.usage_unit_s = self._folders[1] / "cpuacct.usage", 1e-9
        elif (_ROOT / "cgroup.controllers").exists():
            self._version = 2
            self._folders = (_ROOT / f"driple_{role}",)
            self.usage_path, self.usage_unit_s = self._folders[0] / "cpu.stat", 1e-6
        else:
            raise MeasureError(
                f"no CPU control groups under {_ROOT}; measuring needs cgroup v1 or 2"
            )
        if os.geteuid() != 0:
            raise MeasureError("CPU control groups need root; run driple measure as root")
        if self._version == 2:
            _write(_ROOT / "cgroup.subtree_control", "+cpu")
        for folder in self._folders:
            folder.mkdir(exist_ok=True)
        # Roles have priority over other programs, so a role's share is always available.
        weight = "cpu.shares" if self._version == 1 else "cpu.weight"
        _write(self._folders[0] / weight, str(_WEIGHTS[self._version]))

    def limit(self, cores: float | None) -> None:
        """Set the quota of the role in cores; None removes the limit."""
        folder = self._folders[0]
        quota_us = None if cores is None else round(cores * _PERIOD_US)
        if self._version == 1:
            _write(folder / "cpu.cfs_period_us", str(_PERIOD_US))
            _write(folder / "cpu.cfs_quota_us", str(quota_us or -1))
        else:
            _write(folder / "cpu.max", f"{quota_us or 'max'} {_PERIOD_US}")

    def add(self, process: int) -> None:
        """Move a process, with its future children, into the group."""
        for folder in self._folders:
            _write(folder / "cgroup.procs", str(process))

    def kill_all_but(self, process: int) -> None:
        """Kill every process of the group but this one."""
        for other in (self._folders[0] / "cgroup.procs").read_text().split():
            if int(other) != process:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(other), signal.SIGKILL)

    def remove(self) -> None:
        """Kill all processes of the group, and remove it.

        Raises:
            MeasureError: a process in it does not end.
        """
        for folder in self._folders:
            give_up = time.monotonic() + _EMPTY_S
            while folder.exists():
                for process in (folder / "cgroup.procs").read_text().split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(process), signal.SIGKILL)
                try:
                    folder.rmdir()
                except OSError as error:
                    if time.monotonic() > give_up:
                        raise MeasureError(f"cannot remove {folder}: {error.strerror}") from error
                    time.sleep(0.02)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except OSError as error:
        raise MeasureError(f"cannot write '{text}' to {path}: {error.strerror}") from error
