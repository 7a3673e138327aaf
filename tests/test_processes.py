"""A pool whose owner is killed leaves nobody behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

POOL = """
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
from driple.processes import end_with_parent

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=end_with_parent) as pool:
        tasks = [pool.submit(time.sleep, 0.2) for _ in range(4)]
        [task.result() for task in tasks]
        print(*[child.pid for child in multiprocessing.active_children()], flush=True)
        REST
"""
PATIENCE_S = 20.0


@pytest.mark.parametrize("idle", [True, False])
def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path, idle: bool) -> None:
    """Whether they wait for a task or are in one."""
    file = tmp_path / "pool.py"
    rest = "time.sleep(60)" if idle else "pool.map(time.sleep, [60, 60])"
    file.write_text(POOL.replace("REST", rest))
    owner = subprocess.Popen([sys.executable, str(file)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    deadline = time.monotonic() + PATIENCE_S
    while any(map(_runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(_runs, pids))


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
