"""The clock of the benchmarks: the median of some calls."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def median_s(work: Callable[[], object], repeats: int, *, warm_ups: int = 1) -> float:
    """Median seconds of a call.

    Args:
        work: what is timed.
        repeats: calls that count.
        warm_ups: calls before them, which do not.
    """
    for _ in range(warm_ups):
        work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)
