"""Records of several hosts: which belong to one run, and the time that they share.

    records -> runs_of -> [[host, host], [host, host]] -> common_window -> a window of each host

Each record has its own monotonic clock, and how far the wall clock was ahead of it. Records of
one machine share that clock. Marks check the wall clocks: the k-th step of a synchronous job ends
on all hosts at once, so a difference beyond a step is one of the clocks, and is corrected.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driple.errors import TraceError
from driple.measure.record.steps import StepTimes
from driple.measure.record.store import HostRecord
from driple.remarks import Remark, remark
from driple.units import counted

__all__ = ["common_window", "runs_of"]

_LEAST_OVERLAP = 0.5  # of the shorter record
_LEAST_STEPS = 3  # that hosts must share
_ALIGNED_S = 0.001  # smaller differences of clocks are not worth a word


def runs_of(records: Sequence[HostRecord]) -> list[list[HostRecord]]:
    """Records by run: those that overlap in time are hosts of one run, the others repeats.

    Raises:
        TraceError: the same folder twice, or hosts of one run whose clocks are apart.
    """
    folders = [record.folder.resolve() for record in records]
    for number, folder in enumerate(folders):
        if folder in folders[:number]:
            raise TraceError(f"{records[number].folder} is given twice; give each record once")
    runs: list[list[HostRecord]] = []
    for record in sorted(records, key=lambda record: record.wall_s):
        mine = next((run for run in runs if _overlap(run[0], record)), None)
        if mine is None:
            runs.append([record])
        else:
            mine.append(record)
    for run in runs[1:]:
        first, other = _ranks(runs[0]), _ranks(run)
        if first and other and not first & other:
            raise TraceError(
                f"{runs[0][0].folder} has ranks {_words(first)} and {run[0].folder} ranks "
                f"{_words(other)}, as hosts of one run have, but they do not overlap in time by "
                "their wall clocks; set the clocks (chrony, ntpd) and record again"
            )
    return runs


def common_window(
    records: Sequence[HostRecord], steps: Sequence[StepTimes]
) -> tuple[list[tuple[int, int]], list[Remark]]:
    """Begin and end of the shared time on each host's monotonic clock, and remarks on clocks.

    Args:
        records: hosts of one run.
        steps: of each of them.

    Raises:
        TraceError: the hosts share less than three steps.
    """
    ahead = [record.wall_offset_ns for record in records]
    remarks: list[Remark] = []
    for number in range(1, len(records)):
        if records[number].about.boot_id == records[0].about.boot_id:
            ahead[number] = ahead[0]
            continue
        names = {"record": records[number].folder.name, "other": records[0].folder.name}
        skew_ns = _skew_ns(records[0], records[number], ahead[0], ahead[number])
        if skew_ns is None:
            remarks.append(remark("aligned_by_wall_clocks", **names))
        elif abs(skew_ns) > _ALIGNED_S * 1e9:
            ahead[number] += skew_ns
            remarks.append(remark("wall_clock_corrected", skew_s=-skew_ns / 1e9, **names))
    start = max(one.start_ns + offset for one, offset in zip(steps, ahead, strict=True))
    end = min(one.end_ns + offset for one, offset in zip(steps, ahead, strict=True))
    if end - start < _LEAST_STEPS * max(one.step_s for one in steps) * 1e9:
        raise TraceError(
            f"{records[0].folder} and {counted(len(records) - 1, 'other host')} share "
            f"{max(0.0, (end - start) / 1e9):.3g} s, needed are {_LEAST_STEPS} steps; record all "
            "hosts from before the first step to after the last"
        )
    return [(start - offset, end - offset) for offset in ahead], remarks


def _skew_ns(host: HostRecord, other: HostRecord, ahead: int, other_ahead: int) -> int | None:
    """What must be added to the other's wall clock, by marks; None if they do not match."""
    if not host.marks or not other.marks:
        return None
    mine, theirs = host.marks[0].times_ns + ahead, other.marks[0].times_ns + other_ahead
    if len(mine) != len(theirs):
        return None
    return int(np.median(mine - theirs))


def _overlap(host: HostRecord, other: HostRecord) -> bool:
    (begin, end), (other_begin, other_end) = host.wall_s, other.wall_s
    shorter = min(end - begin, other_end - other_begin)
    return min(end, other_end) - max(begin, other_begin) > _LEAST_OVERLAP * shorter


def _ranks(run: Sequence[HostRecord]) -> set[int]:
    return {process.rank for record in run for process in record.marks if process.rank >= 0}


def _words(ranks: set[int]) -> str:
    return ", ".join(map(str, sorted(ranks)))
