"""Load of this machine by other programs while it is measured."""

from __future__ import annotations

import os
import time

from driple.errors import MeasureError
from driple.measure.counters.machine import BusyTime, busy_time, wait_until_quiet

__all__ = ["DISTURBING_CORES", "OtherLoad"]

DISTURBING_CORES = 0.5
"""Cores in use by other programs from which on times may be too long."""


class OtherLoad:
    """Cores that other programs use, from its making to each look.

    Args:
        wait_s: how long it waits for a quiet machine first.

    Raises:
        MeasureError: the system does not show its load.
    """

    def __init__(self, wait_s: float) -> None:
        try:
            wait_until_quiet(DISTURBING_CORES, wait_s)
            self._before = self._now()
        except OSError as error:
            raise MeasureError(
                f"/proc/stat cannot be read ({error.strerror}); measure on Linux"
            ) from error
        self.most_cores = 0.0

    def look(self) -> float:
        """Cores in use by others since the last look; it keeps the most."""
        busy, own_s, time_s = self._now()
        before, own_before_s, time_before_s = self._before
        self._before = busy, own_s, time_s
        spent_s = busy.busy_s - before.busy_s - (own_s - own_before_s)
        cores = max(0.0, spent_s / max(time_s - time_before_s, 1e-3))
        self.most_cores = max(self.most_cores, cores)
        return cores

    @staticmethod
    def _now() -> tuple[BusyTime, float, float]:
        times = os.times()
        own_s = times.user + times.system + times.children_user + times.children_system
        return busy_time(), own_s, time.monotonic()
