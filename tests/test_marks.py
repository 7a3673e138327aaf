"""Marks of steps: one write each, a file for every process, nothing where nothing records."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from driple.measure.record.marked import read_marks

TWO_PROCESSES = """
import os, driple
driple.mark_step(); driple.mark_step()
if os.fork() == 0:
    for _ in range(4): driple.mark_step()
    os._exit(0)
os.wait(); driple.mark_step()
"""


def _run(code: str, folder: Path | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "DRIPLE_STEPS"}
    if folder is not None:
        environment |= {"DRIPLE_STEPS": str(folder), "RANK": "3"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )


def test_every_process_has_its_own_marks(tmp_path: Path) -> None:
    """A forked process does not write into its parent's file; times increase and are now."""
    before = time.monotonic_ns()
    _run(TWO_PROCESSES, tmp_path)
    marks = sorted(read_marks(tmp_path), key=lambda process: len(process.times_ns))
    assert [len(process.times_ns) for process in marks] == [3, 4]
    assert marks[0].pid != marks[1].pid
    assert {process.rank for process in marks} == {3}
    assert all(before < process.times_ns[0] < time.monotonic_ns() for process in marks)


def test_without_a_recorder_a_mark_calls_nothing_and_imports_nothing_heavy() -> None:
    """After the first mark, a mark that nothing records is a single call that makes no other."""
    code = (
        "import sys, driple\n"
        "heavy = {'numpy', 'torch', 'typer', 'rich'} & set(sys.modules)\n"
        "driple.mark_step()\n"
        "calls = []\n"
        "sys.setprofile(lambda frame, event, _: calls.append(event))\n"
        "for _ in range(100): driple.mark_step()\n"
        "sys.setprofile(None)\n"
        "print(calls.count('call'), calls.count('c_call'), len(heavy))"
    )
    calls, calls_of_c, heavy = map(int, _run(code, None).stdout.split())
    assert calls == 100
    assert calls_of_c == 1  # of the profiler that is turned off
    assert heavy == 0


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_mark_that_cannot_be_written_warns_once_and_never_raises(
    tmp_path: Path, folder: str
) -> None:
    """Training goes on without marks."""
    (tmp_path / "file").touch()
    done = _run("import driple\nfor _ in range(5): driple.mark_step()", tmp_path / folder)
    assert done.stderr.count("steps are no longer marked") == 1
