"""What a worker did: segments of computing, ends of steps, rates of its links.

Every scheme returns one `WorkerRecord` per worker; counters read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from driple.errors import ConfigError

__all__ = ["Computing", "WorkerRecord", "check_rate"]


@dataclass(frozen=True, slots=True)
class Computing:
    """One segment that a worker's device has run.

    Attributes:
        start_s: when it began.
        end_s: when it ended.
        busy_share: share of it in which a kernel ran.
        memory_share: share of it in which a kernel used device memory.
    """

    start_s: float
    end_s: float
    busy_share: float
    memory_share: float


@dataclass(kw_only=True, slots=True)
class WorkerRecord:
    """What one worker did.

    Attributes:
        computing: segments, in order.
        step_ends_s: when each step ended, after the warm-up and as long as all workers train.
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
    """Raise ConfigError unless bytes pass at this rate; infinity stands for no limit."""
    if not value > 0:
        raise ConfigError(f"{name} must be above 0, got {value!r}")
