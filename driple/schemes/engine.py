"""The event queue: a deterministic order of events by time, priority and sequence.

at(time, action) -> heap of (time, priority, sequence) -> run: pop, set the clock, act
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

from driple.errors import SimulationError

__all__ = ["EventQueue"]

Action = Callable[[], None]

_ROUNDING = 1e-9  # of a time, relative to the clock or to 1 s


class EventQueue:
    """Events ordered by time, then priority (smallest first), then insertion.

    Attributes:
        now_s: time of the current event, seconds.
        num_events: number of events processed.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.num_events = 0
        self._heap: list[tuple[float, int, int, Action]] = []
        self._sequence = 0

    def take_place(self) -> int:
        """A place after all events that were inserted so far, for an event to be inserted later."""
        self._sequence += 1
        return self._sequence

    def at(
        self, time_s: float, action: Action, priority: int = 0, *, place: int | None = None
    ) -> None:
        """Schedule `action` at a time; a time that is past by rounding counts as now.

        Args:
            time_s: seconds.
            action: what happens then.
            priority: among the events of that time.
            place: among those of one priority, from `take_place`; by default after all so far.

        Raises:
            SimulationError: the time is in the past, or not a number.
        """
        if not time_s >= self.now_s:
            self._check_rounding(time_s)
            time_s = self.now_s
        if place is None:
            place = self.take_place()
        heapq.heappush(self._heap, (time_s, priority, place, action))

    def _check_rounding(self, time_s: float) -> None:
        if not self.now_s - time_s <= _ROUNDING * max(self.now_s, 1.0):
            raise SimulationError(
                f"an event at {time_s:.9g} s was added at {self.now_s:.9g} s, when it is past; "
                "this is a fault of Driple: report it with the graph and the setting"
            )

    def run(self, until_s: float = math.inf) -> None:
        """Process events until none is left, or the next is later than `until_s`."""
        heap, pop = self._heap, heapq.heappop
        while heap and heap[0][0] <= until_s:
            self.now_s, _, _, action = pop(heap)
            self.num_events += 1
            action()
