"""Records of known content, written as the recorder writes them."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from driple.marks import STEPS_MAGIC
from driple.measure.record.store import (
    RECORD_FORMAT,
    BlockWriter,
    RecordAbout,
    RecordEnd,
    write_about,
)
from driple.trace.provenance import MeasuringHost

START_NS = 5_000_000_000
WALL_AHEAD_NS = 1_700_000_000_000_000_000


def write_record(
    folder: Path,
    rates: Mapping[str, Sequence[float]],
    *,
    period_s: float = 0.01,
    marks_s: Sequence[Sequence[float]] = (),
    gauges: Mapping[str, Sequence[tuple[float, int]]] | None = None,
    wall_ahead_ns: Sequence[int] = (WALL_AHEAD_NS,),
    cores: float = 2.0,
    boot_id: str = "a",
    rows_per_block: int = 100,
    rank: int = 0,
    gpus: Sequence[str] = (),
) -> Path:
    """A record whose counters grow at the given rates per second, a value a row.

    Args:
        folder: to write.
        rates: by counter, as many as there are rows.
        period_s: seconds between two rows.
        marks_s: times of the marks of each process, from the start of the record.
        gauges: readings by name: seconds from the start, and value.
        wall_ahead_ns: wall clock minus monotonic clock of each block; the last one repeats.
        cores: cores that the job may use.
        boot_id: of the machine.
        rows_per_block: rows of a block.
        rank: of the first process; the next ones follow.
        gpus: names of the GPUs.
    """
    gauges = {"memory_bytes": [(0.0, 2**30)], **(gauges or {})}
    (folder / "steps").mkdir(parents=True)
    about = RecordAbout(
        format=RECORD_FORMAT,
        driple="0",
        created="2026-11-28T12:00:00+00:00",
        command=("python", "train.py"),
        period_s=period_s,
        columns=tuple(rates),
        gauges=tuple(gauges),
        missing={},
        log=(),
        interfaces=("eth0",),
        cores=cores,
        gpus=tuple(gpus),
        boot_id=boot_id,
        clock_error_s=None,
        host=MeasuringHost(cpu="a CPU", memory_write_bytes_per_s=10_000_000_000),
        end=RecordEnd(status=0, seconds=1.0, sampler_cpu_s=0.005),
    )
    write_about(folder, about)
    counts = np.cumsum(np.array(list(rates.values())).T * period_s, axis=0).round().astype(int)
    names = list(gauges)
    readings = sorted(
        (START_NS + round(at_s * 1e9), names.index(name), value)
        for name, values in gauges.items()
        for at_s, value in values
    )
    writer = BlockWriter(folder, len(rates))
    for number, begin in enumerate(range(0, len(counts), rows_per_block)):
        rows = array("q")
        for row in range(begin, min(begin + rows_per_block, len(counts))):
            now_ns = START_NS + round((row + 1) * period_s * 1e9)
            rows.extend([now_ns, now_ns + 1000, *counts[row].tolist()])
        ahead = wall_ahead_ns[min(number, len(wall_ahead_ns) - 1)]
        mine = [(index, at_ns, value) for at_ns, index, value in readings] if number == 0 else []
        writer.add(rows, mine, wall_ns=now_ns + ahead, monotonic_ns=now_ns)
    writer.close()
    for process, times in enumerate(marks_s):
        data = STEPS_MAGIC + struct.pack("<qq", 100 + process, rank + process)
        data += b"".join(struct.pack("<q", START_NS + round(at_s * 1e9)) for at_s in times)
        (folder / "steps" / f"{100 + process}-1.steps").write_bytes(data)
    return folder


def square(
    num: int, period: int, high: float, low: float = 0.0, width: int | None = None
) -> list[float]:
    """Rates of a square wave: `width` rows high (half of the period), then low."""
    width = period // 2 if width is None else width
    return [high if row % period < width else low for row in range(num)]
