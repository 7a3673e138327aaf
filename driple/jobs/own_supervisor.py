"""The process between Driple and a user's code: it ends all that the code starts, and tidies up.

    Driple --folders, one a line--> supervisor --the same--> own_child --> whatever the code starts

    python -S -P own_supervisor.py PARENT MEMORY_BYTES COMMAND...

All descendants stay below this process, also those that make a session of their own: the kernel
hands it orphans (PR_SET_CHILD_SUBREAPER). It watches their memory, shared memory included. When the
child ends, the input ends, or PARENT is gone, it ends every descendant; where PARENT is gone, it
removes the folders of its requests. Its status is the child's, or MEMORY_STATUS.

Run by path: it imports nothing of Driple, so that it starts in milliseconds.
"""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["MEMORY_STATUS", "supervise"]

MEMORY_STATUS = 77
_SUBREAPER, _LOOK_S, _END_S = 36, 0.1, 10.0
_LOOKS_AT_MEMORY = 3  # every so many looks
_OWN_BYTES = 2 * 2**30  # what Python, torch and shared libraries may take beside the limit


def supervise(parent: int, memory_bytes: int, command: list[str]) -> int:
    """Run the command until it ends, the input ends, or the parent is gone.

    Args:
        parent: process that waits for this one.
        memory_bytes: that all descendants may have together, beside what Python itself takes.
        command: child and its arguments.

    Returns:
        Status of the child, negative if a signal ended it; MEMORY_STATUS for too much memory.
    """
    _adopt_orphans()
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    folders: list[str] = []
    kept, looks, status = b"", 0, None
    try:
        while status is None:
            readable, _, _ = select.select([0], [], [], _LOOK_S)
            if readable:
                piece = os.read(0, 65536)
                if not piece:
                    break
                kept += piece
                *lines, kept = kept.split(b"\n")
                folders += [os.fsdecode(line) for line in lines]
                _hand_on(child, b"".join(line + b"\n" for line in lines))
            if os.getppid() != parent:
                break
            looks += 1
            status = child.poll()
            if looks % _LOOKS_AT_MEMORY == 0 and _memory() > memory_bytes + _OWN_BYTES:
                status = MEMORY_STATUS
    finally:
        _end_descendants()
    if os.getppid() != parent:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if status is None else status


def _adopt_orphans() -> None:
    """Have processes whose parent ends become children of this one, where the system can."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_SUBREAPER, 1, 0, 0, 0)


def _hand_on(child: subprocess.Popen[bytes], lines: bytes) -> None:
    if child.stdin is None:
        return
    with suppress(BrokenPipeError):  # it has ended, which the next look sees
        child.stdin.write(lines)
        child.stdin.flush()


def _descendants() -> list[int]:
    """Numbers of all processes below this one."""
    parents: dict[int, int] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError, ValueError):  # it has ended
            parents[int(file.parent.name)] = int(file.read_bytes().rpartition(b")")[2].split()[1])
    pids: list[int] = []
    below = {os.getpid()}
    while below:
        below = {number for number, parent in parents.items() if parent in below}
        pids += below
    return pids


def _memory() -> int:
    """Bytes of all descendants; pages that several share count in parts, shared memory too."""
    total = 0
    for number in _descendants():
        with suppress(OSError):
            lines = Path(f"/proc/{number}/smaps_rollup").read_bytes().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
    return total


def _end_descendants() -> None:
    """End every process below this one, until none is left; at most for some seconds."""
    end_s = time.monotonic() + _END_S
    while (left := _descendants()) and time.monotonic() < end_s:
        for number in left:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _end_as(status: int) -> None:
    """End with a status, or by the signal that it stands for."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    _end_as(supervise(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
