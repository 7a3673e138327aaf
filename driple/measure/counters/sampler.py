"""The sampler: reads counters on absolute deadlines; also a process of its own for the test bed.

    python -m driple.measure.counters.sampler OUT PERIOD_S [NAME=PATH | NAME=mmap:PATH] ...

Every row has the time before, the values, and the time after. Deadlines are absolute, so a late row
does not delay the next; missed deadlines are skipped. The process uses real-time priority if
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
from collections.abc import Callable, Sequence
from pathlib import Path

from driple.measure.testbed.process_lifetime import die_with_parent

__all__ = ["Reader", "main", "open_counter", "sample_rows"]

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
        sample_rows(
            readers,
            round(period_s * 1e9),
            is_over=lambda: stop[0],
            flush=lambda rows: file.write(rows.tobytes()),
            rows_per_flush=_FLUSH_ROWS,
        )


def sample_rows(
    readers: Sequence[Reader],
    period_ns: int,
    *,
    is_over: Callable[[], bool],
    flush: Callable[[array[int]], object],
    rows_per_flush: int,
) -> None:
    """Sample until `is_over`; the rows that are left are flushed at the end.

    Args:
        readers: a counter each.
        period_ns: nanoseconds between two rows.
        is_over: asked before every row.
        flush: takes rows: time before, time after and the counters, row by row.
        rows_per_flush: rows of a call of `flush`.
    """
    rows = array("q")
    clock, sleep = time.monotonic_ns, time.sleep
    limit = rows_per_flush * (len(readers) + 2)
    deadline = clock() + period_ns
    while not is_over():
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
        if len(rows) >= limit:
            flush(rows)
            rows = array("q")
    flush(rows)


if __name__ == "__main__":
    die_with_parent()
    main(sys.argv[1:])
