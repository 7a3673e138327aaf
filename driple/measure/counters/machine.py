"""Properties of this machine, and its load by other programs."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from driple.measure.counters.memory import write_bandwidth_bytes_per_s
from driple.trace.provenance import MeasuringHost

__all__ = ["BusyTime", "busy_time", "host_facts", "wait_until_quiet"]

_QUIET_PROBE_S = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class BusyTime:
    """CPU seconds of the whole machine since it started.

    Attributes:
        busy_s: busy time of all cores.
        steal_s: time that the hypervisor gave to other machines.
    """

    busy_s: float
    steal_s: float


def busy_time() -> BusyTime:
    """CPU time used so far by all programs on this machine."""
    with Path("/proc/stat").open() as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    user, nice, system, _idle, _wait, irq, soft_irq, steal = ticks
    per_s = os.sysconf("SC_CLK_TCK")
    return BusyTime(busy_s=(user + nice + system + irq + soft_irq) / per_s, steal_s=steal / per_s)


def wait_until_quiet(
    max_cores: float, timeout_s: float, waits: Callable[[float], None] = lambda _: None
) -> float:
    """Wait until other programs use at most `max_cores`; the cores used at the end.

    Args:
        max_cores: of a quiet machine.
        timeout_s: the longest wait, seconds.
        waits: called once with the cores in use, if there is a wait.
    """
    give_up, is_first = time.monotonic() + timeout_s, True
    while True:
        before = busy_time().busy_s
        time.sleep(_QUIET_PROBE_S)
        cores = (busy_time().busy_s - before) / _QUIET_PROBE_S
        if cores <= max_cores or time.monotonic() > give_up:
            return cores
        if is_first:
            waits(cores)
            is_first = False


def host_facts(*, bandwidth: bool = True) -> MeasuringHost:
    """Properties of this machine that affect measurements.

    Args:
        bandwidth: also measure the memory's write bandwidth, which takes half a second.
    """
    return MeasuringHost(
        cpu=_cpu_model(),
        cores=os.cpu_count(),
        memory_gib=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        kernel=platform.release(),
        memory_write_bytes_per_s=round(write_bandwidth_bytes_per_s()) if bandwidth else None,
    )


def _cpu_model() -> str:
    with Path("/proc/cpuinfo").open() as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()
