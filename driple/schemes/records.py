"""Record of a simulated worker: compute segments, ends of steps, rates on its links.

Every scheme returns one `WorkerRecord` per worker; counters read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from driple.errors import ConfigError
from driple.step.phases import PhasePart

__all__ = ["Computing", "WorkerRecord", "check_rate"]


@dataclass(frozen=True, slots=True)
class Computing:
    """One compute segment of a worker's device.

    Attributes:
        start_s: start, seconds.
        end_s: end, seconds.
        busy_share: fraction of the segment in which a kernel ran.
        memory_share: fraction in which a kernel used device memory.
        parts: its phases, in order; their seconds are in proportion to those of the segment. Empty
            if unknown.
    """

    start_s: float
    end_s: float
    busy_share: float
    memory_share: float
    parts: tuple[PhasePart, ...] = ()


@dataclass(kw_only=True, slots=True)
class WorkerRecord:
    """What one worker did.

    Attributes:
        computing: segments, in order.
        step_ends_s: end of each step after the warm-up, while all workers are training, seconds.
        tx: (time in s, bytes/s from then on) of its outgoing link.
        rx: the same of its incoming link.
    """

    computing: list[Computing] = field(default_factory=list)
    step_ends_s: list[float] = field(default_factory=list)
    tx: list[tuple[float, float]] = field(default_factory=list)
    rx: list[tuple[float, float]] = field(default_factory=list)

    @property
    def iteration_time_s(self) -> float:
        """Mean time of a step after the first."""
        ends = self.step_ends_s
        return (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else ends[0]


def check_rate(name: str, value: float) -> None:
    """Raise ConfigError unless the rate is positive; infinity means no limit."""
    if not value > 0:
        raise ConfigError(f"{name} must be above 0, got {value!r}")
