"""A process that asked for it ends with its parent, even if that is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
print(child.pid, flush=True)
time.sleep(60)
"""
CHILD = (
    "from driple.measure.testbed.process_lifetime import die_with_parent; import time; "
    "die_with_parent(); time.sleep(60)"
)


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and not yet waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_a_killed_parent_takes_its_child_along() -> None:
    """Within seconds of SIGKILL, which the parent cannot answer."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(1.0)  # until the child has asked
    assert is_alive(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    give_up = time.monotonic() + 10
    while is_alive(child) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not is_alive(child)
