"""The sampler: a process of its own that reads counter files on absolute deadlines.

    python -m driple.measure.counters.sampler OUT PERIOD_S [NAME=PATH | NAME=mmap:PATH] ...

Every row has the time before, the values, and the time after. Deadlines are absolute, so a late row
does not delay the next; missed deadlines are skipped. The sampler uses real-time priority if
permitted, stops on SIGTERM and leaves raw int64 rows in OUT.
"""

from __future__ import annotations

import gc
import mmap
import os
import re
import signal
import struct
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path

from driple.measure.testbed.process_lifetime import die_with_parent

__all__ = ["Reader", "main", "open_counter"]

Reader = Callable[[], int]

_FIRST_NUMBER = re.compile(rb"\d+")
_PRIORITY = 20
_FLUSH_ROWS = 20_000


def open_counter(source: str) -> Reader:
    """A function that reads the first number of a file, or the 64-bit word of a mapped one."""
    if source.startswith("mmap:"):
        with Path(source.removeprefix("mmap:")).open("rb") as file:
            page = mmap.mmap(file.fileno(), 8, prot=mmap.PROT_READ)
        unpack = struct.Struct("<q").unpack_from
        return lambda: int(unpack(page)[0])
    descriptor = os.open(source, os.O_RDONLY)
    pread, find = os.pread, _FIRST_NUMBER.search

    def read() -> int:
        match = find(pread(descriptor, 256, 0))
        return int(match[0]) if match else -1

    return read


def main(arguments: list[str]) -> None:
    """Sample until SIGTERM."""
    out, period_s = Path(arguments[0]), float(arguments[1])
    readers = [open_counter(argument.split("=", 1)[1]) for argument in arguments[2:]]
    stop = [False]
    signal.signal(signal.SIGTERM, lambda *_: stop.__setitem__(0, True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    except PermissionError:
        print("sampler: no real-time priority; rows may be late", file=sys.stderr)
    gc.disable()
    with out.open("wb") as file:
        _sample(readers, round(period_s * 1e9), stop, file.write)


def _sample(
    readers: list[Reader], period_ns: int, stop: list[bool], write: Callable[[bytes], int]
) -> None:
    rows = array("q")
    clock, sleep = time.monotonic_ns, time.sleep
    deadline = clock() + period_ns
    while not stop[0]:
        wait = deadline - clock()
        if wait > 0:
            sleep(wait / 1e9)
        before = clock()
        values = [read() for read in readers]
        after = clock()
        rows.append(before)
        rows.append(after)
        rows.extend(values)
        deadline += period_ns * max(1, -((deadline - after) // period_ns))
        if len(rows) > _FLUSH_ROWS * (len(readers) + 2):
            write(rows.tobytes())
            rows = array("q")
    write(rows.tobytes())


if __name__ == "__main__":
    die_with_parent()
    main(sys.argv[1:])
