"""Low-priority filler load that keeps all cores busy, so that the load is constant.

Two virtual processors may share a core: a role then runs faster while the other processor is idle,
and many workers appear slower than one for a reason unrelated to training.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

__all__ = ["FillerLoad"]

_LOAD = """
import os
import numpy as np
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.sched_setaffinity(0, {%d})
a = np.ones((192, 192), dtype=np.float32) / 192
while os.getppid() == %d:
    for _ in range(200):
        a = a @ a
"""
_BEGIN_S = 1.0  # until its processes run


class FillerLoad:
    """An idle-priority process on every core; a context manager.

    Args:
        cores: core numbers; all cores if None.
    """

    def __init__(self, cores: set[int] | None = None) -> None:
        self._cores = cores if cores is not None else set(range(os.cpu_count() or 1))
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> FillerLoad:
        """Start the processes."""
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        for core in sorted(self._cores):
            code = _LOAD % (core, os.getpid())
            self._processes.append(
                subprocess.Popen([sys.executable, "-c", code], env=os.environ | alone)
            )
        time.sleep(_BEGIN_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()

    def used_s(self) -> float:
        """CPU time used so far by the filler, seconds."""
        ticks = 0
        for process in self._processes:
            words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(words[11]) + int(words[12])
        return ticks / os.sysconf("SC_CLK_TCK")
