"""Record of a simulated worker: compute segments, ends of steps, rates on its links.

Every scheme returns one `WorkerRecord` per worker; counters read them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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


Rates = list[tuple[float, float]]
Use = tuple[list[Computing], Rates, Rates]


class WorkerRecord:
    """What one worker did.

    Attributes:
        step_ends_s: end of each step after the warm-up, while all workers are training, seconds.

    Args:
        computing: segments, in order.
        step_ends_s: see above.
        tx: (time in s, bytes/s from then on) of its outgoing link.
        rx: the same of its incoming link.
        make_use: returns segments, tx and rx of the steps from a first to before a last one, when
            they are asked for: counters read all of them, a picture those of a step, and a step
            time none.
    """

    __slots__ = ("_make_use", "_use", "step_ends_s")

    def __init__(
        self,
        *,
        computing: list[Computing] | None = None,
        step_ends_s: list[float] | None = None,
        tx: Rates | None = None,
        rx: Rates | None = None,
        make_use: Callable[[int, int], Use] | None = None,
    ) -> None:
        self.step_ends_s = [] if step_ends_s is None else step_ends_s
        self._make_use = make_use
        self._use: Use = (
            [] if computing is None else computing,
            [] if tx is None else tx,
            [] if rx is None else rx,
        )

    def __eq__(self, other: object) -> bool:
        """Whether another worker did the same at the same times."""
        if not isinstance(other, WorkerRecord):
            return NotImplemented
        return self.step_ends_s == other.step_ends_s and self._found() == other._found()

    __hash__ = None  # type: ignore[assignment]  # it compares by content, which may still change

    def _found(self) -> Use:
        if self._make_use is not None:
            self._use, self._make_use = self._make_use(0, len(self.step_ends_s)), None
        return self._use

    def use_beside(self, number: int) -> Use:
        """Segments and rates on both links, those of a step and of its neighbours at least."""
        if self._make_use is None:
            return self._use
        return self._make_use(max(number - 1, 0), min(number + 2, len(self.step_ends_s)))

    @property
    def computing(self) -> list[Computing]:
        """Segments of its device, in order."""
        return self._found()[0]

    @property
    def tx(self) -> Rates:
        """Rates on its outgoing link: (time in s, bytes/s from then on)."""
        return self._found()[1]

    @property
    def rx(self) -> Rates:
        """The same of its incoming link."""
        return self._found()[2]

    @property
    def iteration_time_s(self) -> float:
        """Mean time of a step after the first."""
        ends = self.step_ends_s
        return (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else ends[0]


def check_rate(name: str, value: float) -> None:
    """Raise ConfigError unless the rate is positive; infinity means no limit."""
    if not value > 0:
        raise ConfigError(f"{name} must be above 0, got {value!r}")
