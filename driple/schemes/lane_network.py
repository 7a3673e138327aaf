"""Shared links of many runs of one cluster, as arrays; each run is a lane with its own time.

    rows (direction, lane, worker) -> queues of messages by server -> first of each row -> rates

The rules are those of `driple.schemes.network`, where each direction of a worker is a group:
messages to or from a server keep their order, and of a row at most `most_at_once` servers are
served, those whose messages were sent first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from driple.schemes.lane_rates import LaneRates
from driple.schemes.wiring import Wiring

__all__ = ["LaneNetwork"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

# Two ends within this, relative to the time, are the same moment: rounding.
_MOMENT = 1e-13
_NOTHING_BYTES = 1e-6  # less than this of a byte is the rounding of a rate times a time


class LaneNetwork:
    """Messages in all lanes. Rows are gradients of each lane and worker, then parameters.

    Attributes:
        num_rows: rows that may have messages: all, or those of gradients alone.
        now_s: shape [rows], time of the row's lane.
        rate: shape [slots, rows], bytes/s of the servers that a row is served by.

    Args:
        wiring: links between workers, then servers.
        num_workers: how many roles are workers.
        num_servers: how many are servers.
        num_lanes: how many runs.
        num_messages: the most messages in a row.
        most_at_once: servers that a row is served by at the same time.
    """

    def __init__(
        self,
        wiring: Wiring,
        num_workers: int,
        num_servers: int,
        *,
        num_lanes: int,
        num_messages: int,
        most_at_once: int,
    ) -> None:
        self._num_servers, self._shape = num_servers, (num_lanes, num_workers)
        self.num_rows = 2 * num_lanes * num_workers
        slots = min(most_at_once, num_servers)
        self._none = num_messages  # position of no message
        queues = (self.num_rows, num_servers + 1)  # the last is of no server
        self._first = np.full(queues, self._none)  # position of each queue's first message
        self._last = np.full(queues, self._none)
        self._left = np.ones(queues)  # bytes of the first message
        # Of the message at each position of a row: the next one of its queue, and its bytes.
        self._next = np.full((self.num_rows, num_messages), self._none)
        self._nbytes = np.ones((self.num_rows, num_messages + 1))
        self.now_s = np.zeros(self.num_rows)
        # Of the servers that a row is served by now; those of the others are in the queues.
        self._server = np.full((slots, self.num_rows), num_servers)
        self._slot_left = np.ones((slots, self.num_rows))
        self._until = np.full((slots, self.num_rows), self._none)  # position of the one behind it
        self._is_open = np.zeros(self.num_rows, bool)  # slots to be filled anew
        self._rates = LaneRates(wiring, num_workers, num_servers, num_lanes, slots)
        self.rate = np.zeros((slots, self.num_rows))
        self._end_s = np.full((slots, self.num_rows), np.inf)

    def send(
        self, rows: IntArray, positions: IntArray, servers: IntArray, nbytes: FloatArray
    ) -> None:
        """Enqueue a message of each of these rows; no row occurs twice.

        Args:
            rows: shape [n].
            positions: of each message in the order of its row, from 0 on.
            servers: which each goes to, or comes from.
            nbytes: of each, above 0.
        """
        self._nbytes[rows, positions] = nbytes
        is_first = self._first[rows, servers] == self._none
        behind = ~is_first
        before = self._last[rows[behind], servers[behind]]
        self._next[rows[behind], before] = positions[behind]
        self._last[rows, servers] = positions
        rows, servers = rows[is_first], servers[is_first]
        self._open(rows)
        self._first[rows, servers] = positions[is_first]
        self._left[rows, servers] = nbytes[is_first]

    def share(self) -> None:
        """Share the links among the messages that are first now."""
        changed = self.rows_of(self.are_changed())
        rows = self._is_open.nonzero()[0]
        self._is_open[rows] = False
        slots, count = len(self._server), self._num_servers
        keys = self._first[rows, :count] * count + np.arange(count)
        keys.sort(axis=1)
        position, server = np.divmod(keys[:, : slots + 1], count)
        server, following = server[:, :slots], position[:, 1:].T
        server[position[:, :slots] >= self._none] = count
        self._until[: len(following), rows] = following
        self._server[:, rows] = server.T
        self._slot_left[:, rows] = self._left[rows[:, None], server].T
        self._rates.place(rows, server)
        if self._are_parameters_in():
            self.num_rows = half = self.num_rows // 2
            changed, self.now_s = changed[:half], self.now_s[:half]
            self.rate, self._server, self._slot_left, self._until = (
                of_rows[:, :half].copy()
                for of_rows in (self.rate, self._server, self._slot_left, self._until)
            )
        self._rates.share(self.rate, changed)

    def _are_parameters_in(self) -> bool:
        """Whether no row of parameters has messages any more; all are sent at the start."""
        half = self.num_rows // 2
        both = self.num_rows == len(self._first)
        return both and bool((self._server[0, half:] == self._num_servers).all())

    def next_s(self) -> FloatArray:
        """When the next message of each lane arrives; shape [lanes]."""
        with np.errstate(divide="ignore"):
            self._end_s = self._slot_left / self.rate
        self._end_s += self.now_s
        by_lane = self._end_s.min(axis=0).reshape(-1, *self._shape)
        soonest: FloatArray = by_lane.min(axis=(0, 2))
        return soonest

    def rows_of(self, lanes: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of lanes, repeated for each row."""
        repeated = np.repeat(lanes, self._shape[1])
        return np.concatenate([repeated] * (self.num_rows // len(repeated)))

    def advance(self, until_s: FloatArray) -> tuple[IntArray, IntArray]:
        """Go on to a time of each lane.

        Args:
            until_s: shape [lanes], none later than `next_s`.

        Returns:
            Row and position of each message that has arrived.
        """
        row_s = self.rows_of(until_s)
        self._slot_left -= self.rate * (row_s - self.now_s)
        np.maximum(self._slot_left, _NOTHING_BYTES, out=self._slot_left)
        self.now_s = row_s
        ends = (self._end_s <= row_s * (1 + _MOMENT)).ravel().nonzero()[0]
        slots, rows = np.divmod(ends, self.num_rows)
        servers = self._server[slots, rows]
        arrived = self._first[rows, servers]
        following = self._next[rows, arrived]
        self._first[rows, servers] = following
        goes_on = following < self._until[slots, rows]
        changed = rows[~goes_on]
        self._open(changed)
        self._slot_left[slots, rows] = self._left[rows, servers] = self._nbytes[rows, following]
        return rows, arrived

    def are_changed(self) -> BoolArray:
        """Whether the links of each lane are to be shared anew; shape [lanes]."""
        by_lane = self._is_open[: self.num_rows].reshape(-1, *self._shape)
        return np.asarray(by_lane.any(axis=(0, 2)))

    def _open(self, rows: IntArray) -> None:
        """Put what is left of messages back into their queues, for the slots change."""
        rows = rows[~self._is_open[rows]]
        self._is_open[rows] = True
        for server, left in zip(self._server, self._slot_left, strict=True):
            self._left[rows, server[rows]] = left[rows]
