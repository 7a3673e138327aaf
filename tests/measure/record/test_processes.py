"""CPU time, memory and disk traffic of a tree of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from driple.errors import MeasureError
from driple.measure.record.processes import ProcessTree, allowed_cores

WORKER = (
    "import subprocess, sys, time\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time\\n"
    "while time.process_time() < 0.3: pass\\nprint(flush=True); time.sleep(60)'], "
    "stdout=subprocess.PIPE)\n"
    "child.stdout.readline(); print(flush=True); sys.stdin.readline(); child.kill(); child.wait()\n"
    "print(flush=True); sys.stdin.readline()\n"
)


def test_a_child_counts_and_still_counts_once_it_has_ended() -> None:
    """The CPU time of the tree is that of both processes, and never goes back."""
    with subprocess.Popen(
        [sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        tree = ProcessTree(process.pid)
        assert len(tree.pids) == 2
        with_child = tree.cpu_ns()
        assert with_child >= 300_000_000
        assert tree.memory_bytes() > 5_000_000
        assert tree.disk_bytes() is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert tree.cpu_ns() >= with_child
        tree.refresh()
        assert tree.pids == (process.pid,)
        assert tree.cpu_ns() >= with_child
        process.stdin.close()
        process.wait()
        assert any(tree.is_over() for _ in range(100))
        assert tree.cpu_ns() >= with_child
        tree.close()


def test_cpu_time_is_that_of_the_process_to_a_millisecond() -> None:
    """Read from outside, all threads together."""
    tree = ProcessTree(os.getpid())
    begin, own = tree.cpu_ns(), time.process_time_ns()
    while time.process_time_ns() - own < 50_000_000:
        pass
    assert (tree.cpu_ns() - begin) / 1e6 == pytest.approx(50, abs=2)
    tree.close()


def test_a_process_that_is_not_there_is_refused() -> None:
    """One line that names the flag."""
    process = subprocess.Popen(["true"])
    process.wait()
    with pytest.raises(MeasureError, match=f"process {process.pid}: No such process"):
        ProcessTree(process.pid)


def test_cores_are_those_that_the_process_may_use() -> None:
    """No more than the machine's, and more than none."""
    assert 0 < allowed_cores(os.getpid()) <= (os.cpu_count() or 1)
