"""Max-min fair rates in many runs of one cluster at once, as arrays; each run is a lane.

    slots of rows (direction, lane, worker) -> links that they cross, users of ports -> rates

The rules are those of `driple.schemes.fair_shares`: the first slots of all rows share fairly, then
the second ones what these leave, and so on. In place of one link at a time, all links are filled at
once whose streams get no less elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from driple.schemes.fair_shares import FREE_USERS
from driple.schemes.wiring import Wiring

__all__ = ["LaneRates"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


class LaneRates:
    """Rates of rows: gradients of each lane and worker, then parameters.

    Link `n` of lane `i` has place n * lanes + i in arrays of links. Link 0 is none, and limits
    nothing; then come joint links, and last those which one row alone crosses.

    Args:
        wiring: links between workers, then servers.
        num_workers: how many roles are workers.
        num_servers: how many are servers.
        num_lanes: how many runs.
        slots: servers that a row is served by at the same time.
    """

    def __init__(
        self, wiring: Wiring, num_workers: int, num_servers: int, num_lanes: int, slots: int
    ) -> None:
        self._num_lanes, self._num_workers = num_lanes, num_workers
        workers, servers = range(num_workers), range(num_workers, num_workers + num_servers)
        # Of each direction, worker and server; a worker's own port comes first.
        paths = [[_own_first(wiring.path(w, s), -2) for s in servers] for w in workers]
        paths += [[_own_first(wiring.path(s, w), -1) for s in servers] for w in workers]
        own = {path[0] for row in paths for path in row}
        joint = {link for row in paths for path in row for link in path[1:]}
        links = [*sorted(joint), *sorted(own)]
        number = {link: place for place, link in enumerate(links, 1)}
        self._paths = num_lanes * _table(
            [[[number[link] for link in path] for path in row] for row in paths]
        )
        self._num_joint = (1 + len(joint)) * num_lanes
        alone = [np.inf, *(wiring.links[link].capacity(1) for link in links)]
        self._alone = np.repeat(alone, num_lanes)
        crowded = _crowded_ports(wiring, paths[:num_workers])
        port_number = {port: place for place, port in enumerate(crowded, 1)}
        ports = _table(
            [
                [[port_number[one // 2] for one in path if one // 2 in port_number] for path in row]
                for row in paths
            ]
        )
        user = np.tile(np.arange(num_workers), 2)[:, None, None]
        self._ports = ports * num_lanes * num_workers + user
        contended = [link for link in links if link // 2 in port_number]
        self._contended = self._in_lanes([number[link] for link in contended])
        self._port_of = self._in_lanes([port_number[link // 2] for link in contended])
        self._capacity_of = np.array(
            [[wiring.links[link].capacity(n) for n in range(num_workers + 1)] for link in contended]
        )
        self._first_capacity = np.arange(len(contended)).repeat(num_lanes) * (num_workers + 1)
        self._uses = np.zeros(((1 + len(crowded)) * num_lanes, num_workers), np.float32)
        self._ones = np.ones(num_workers, np.float32)
        num_rows = 2 * num_lanes * num_workers
        lane_and_way, worker = np.divmod(np.arange(num_rows), num_workers)
        way, self._lane = np.divmod(lane_and_way, num_lanes)
        self._group = way * num_workers + worker
        self._crossed = np.zeros((slots, self._paths.shape[2], num_rows), np.intp)
        self._used = np.zeros((slots, self._ports.shape[2], num_rows), np.intp)

    def _in_lanes(self, numbers: Sequence[int]) -> IntArray:
        """Places of some links or ports in all lanes."""
        first = np.array(numbers, np.intp)[:, None] * self._num_lanes
        return (first + np.arange(self._num_lanes)).ravel()

    def place(self, rows: IntArray, servers: IntArray) -> None:
        """Set the servers of some rows.

        Args:
            rows: shape [n].
            servers: shape [n, slots]; the number of servers stands for none.
        """
        group, lane = self._group.take(rows)[:, None], self._lane.take(rows)[:, None, None]
        crossed = self._paths[group, servers] + lane
        self._crossed[:, :, rows] = crossed.transpose(1, 2, 0)
        if len(self._contended):
            used = self._ports[group, servers] + lane * self._num_workers
            self._used[:, :, rows] = used.transpose(1, 2, 0)

    def share(self, rate: FloatArray, changed: BoolArray) -> None:
        """Set the rates of the first rows anew.

        Args:
            rate: shape [slots, rows], bytes/s.
            changed: shape [rows], whether anything in the row's lane has changed.
        """
        num_rows = rate.shape[1]
        rate *= ~changed
        left = self._capacities(num_rows)
        for slot, crossed in enumerate(self._crossed[:, :, :num_rows]):
            rows = ((crossed[0] >= self._num_lanes) & changed).nonzero()[0]
            if not len(rows):
                break
            self._fill(rate[slot], rows, [links.take(rows) for links in crossed], left)

    def _fill(
        self, rate: FloatArray, rows: IntArray, crossed: list[IntArray], left: FloatArray
    ) -> None:
        """Share what is left of the links among one slot of these rows; sets both."""
        while True:
            rest = [left.take(links) for links in crossed]
            is_open = _least(rest) > 0
            if not is_open.all():
                kept = is_open.nonzero()[0]
                if not len(kept):
                    return
                rows = rows.take(kept)
                crossed = [links.take(kept) for links in crossed]
                rest = [part.take(kept) for part in rest]
            own, *joint = crossed
            count = np.bincount(np.concatenate(joint), minlength=self._num_joint)
            parts = [part / count.take(links) for part, links in zip(rest[1:], joint, strict=True)]
            share = np.minimum(rest[0], _least(parts))
            get_less = [part > share for part in parts]
            if not any(less.any() for less in get_less):  # all joint links are full at once
                rate[rows] = share
                left[own] -= share
                for links in joint:
                    left[links] = 0.0
                return
            is_tight = np.ones(self._num_joint, bool)  # joint links whose streams all get its share
            for links, less in zip(joint, get_less, strict=True):
                is_tight[links[less]] = False
            is_done = rest[0] == share
            full = [own[is_done]]
            for links, part in zip(joint, parts, strict=True):
                fills = is_tight.take(links) & (part == share)
                full.append(links[fills])
                is_done |= fills
            done = is_done.nonzero()[0]
            share = share.take(done)
            rate[rows.take(done)] = share
            for links in crossed:
                np.subtract.at(left, links.take(done), share)
            for links in full:
                left[links] = 0.0
            if len(share) == len(rows):
                return
            rows, crossed = rows[~is_done], [links[~is_done] for links in crossed]

    def _capacities(self, num_rows: int) -> FloatArray:
        """Capacity of each link of each lane with the users of its port, bytes/s."""
        left = self._alone.copy()
        if len(self._contended):
            self._uses.fill(0.0)
            uses = self._uses.ravel()
            for used in self._used[:, :, :num_rows].reshape(-1, num_rows):
                uses[used] = 1.0
            users = (self._uses @ self._ones).astype(np.intp).take(self._port_of)
            left[self._contended] = self._capacity_of.take(users + self._first_capacity)
        return left


def _own_first(path: Sequence[int], own: int) -> list[int]:
    """A path with one of its links in front of the others."""
    return [path[own], *path[:own], *path[len(path) + own + 1 :]]


def _crowded_ports(wiring: Wiring, paths: Iterable[Iterable[Iterable[int]]]) -> list[int]:
    """Ports whose links lose capacity, as more workers may use them than lose nothing.

    Args:
        wiring: links of all ports.
        paths: links of each worker and server.
    """
    users: dict[int, set[int]] = {}
    for worker, row in enumerate(paths):
        for link in (link for path in row for link in path):
            if wiring.links[link].sharing > 0:
                users.setdefault(link // 2, set()).add(worker)
    return sorted(port for port, found in users.items() if len(found) > FREE_USERS)


def _table(rows: Sequence[Sequence[Sequence[int]]]) -> IntArray:
    """Numbers of each row and server, with zeros at the end; zeros alone for no server."""
    width = max(len(path) for row in rows for path in row) or 1
    return np.array(
        [[[*path, *[0] * (width - len(path))] for path in (*row, [])] for row in rows], np.intp
    )


def _least(values: Sequence[FloatArray]) -> FloatArray:
    """The least of each place of some arrays."""
    least = values[0]
    for others in values[1:]:
        least = np.minimum(least, others)
    return least
