"""Rates at which streams share links, max-min fair, and the links' capacities for many users.

The capacity of a link may fall with the number of its users, as TCP connections that fill one
queue lose packets and send them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

__all__ = ["FREE_USERS", "ActiveStreams", "FairShares", "SharedLink", "max_min_rates"]

FREE_USERS = 2  # as many users of a link lose nothing; as LinkEfficiency.sharing counts

# Streams that send: of each group that has any, their numbers, the first to go first.
ActiveStreams = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link, or what one end passes of it.

    Attributes:
        bytes_per_s: rate with one or two users.
        sharing: n users together pass (2 / n) ** sharing of that rate.
        copy_s_per_byte: time to copy a byte between memory and the link, in series with it.
    """

    bytes_per_s: float
    sharing: float = 0.0
    copy_s_per_byte: float = 0.0

    def capacity(self, users: int) -> float:
        """Bytes/s that `users` pass together."""
        reached = self.bytes_per_s
        if users > FREE_USERS:
            reached *= (FREE_USERS / users) ** self.sharing
        return 1 / (1 / reached + self.copy_s_per_byte)


class FairShares:
    """Rates of groups of streams over shared links.

    Args:
        links: each link.
        ports: number of each link's port; users of both directions of a port contend, as data of
            one waits with acknowledgements of the other. Each link has its own by default.
    """

    def __init__(self, links: Sequence[SharedLink], ports: Sequence[int] | None = None) -> None:
        self._links = links
        self._alone = [link.capacity(1) for link in links]
        self._ports = list(range(len(links))) if ports is None else list(ports)
        self._contended: dict[int, list[int]] = {}  # by port, links whose capacity falls with users
        for number, link in enumerate(links):
            if link.sharing > 0:
                self._contended.setdefault(self._ports[number], []).append(number)
        self._reached: dict[tuple[int, int], float] = {}  # capacity of a link with many users
        self._crossed: list[tuple[int, ...]] = []  # links of each stream
        self._loads: list[tuple[tuple[int, ...], int]] = []  # its contended ports, its user's bit
        self._bits: dict[tuple[int, int], int] = {}  # of each user

    def add_stream(self, links: tuple[int, ...], user: tuple[int, int]) -> None:
        """Add the next stream.

        Args:
            links: numbers of the links that it crosses.
            user: whose stream it is; streams of one user count once.
        """
        ports = {port for link in links if (port := self._ports[link]) in self._contended}
        self._crossed.append(links)
        self._loads.append((tuple(ports), 1 << self._bits.setdefault(user, len(self._bits))))

    def rates(self, active: ActiveStreams) -> tuple[list[int], list[float]]:
        """Numbers of the active streams, and the rate of each, bytes/s."""
        left = self._capacities(active)
        return self._in_turn(active[0], left) if len(active) == 1 else self._beside(active, left)

    def _capacities(self, active: ActiveStreams) -> list[float]:
        """Capacity of each link with the users of these streams, bytes/s."""
        capacities = list(self._alone)
        if not self._contended:
            return capacities
        users, loads = [0] * len(capacities), self._loads  # a bit for each user of a port
        for group in active:
            for number in group:
                ports, bit = loads[number]
                for port in ports:
                    users[port] |= bit
        for port, links in self._contended.items():
            num_users = users[port].bit_count()
            if num_users > FREE_USERS:
                for link in links:
                    capacity = self._reached.get((link, num_users))
                    if capacity is None:
                        capacity = self._links[link].capacity(num_users)
                        self._reached[link, num_users] = capacity
                    capacities[link] = capacity
        return capacities

    def _in_turn(self, group: tuple[int, ...], left: list[float]) -> tuple[list[int], list[float]]:
        """Rates of one group, by strict priority."""
        rates = []
        for number in group:
            links = self._crossed[number]
            rate = min([left[link] for link in links])
            if rate > 0:
                for link in links:
                    left[link] -= rate
            rates.append(rate)
        return list(group), rates

    def _beside(self, active: ActiveStreams, left: list[float]) -> tuple[list[int], list[float]]:
        """Rates of several groups: first streams of all share fairly, then second ones, ..."""
        order: list[int] = []
        rates: list[float] = []
        crossed = self._crossed
        for place in range(max(map(len, active), default=0)):
            numbers = []
            for group in active:
                if place < len(group):
                    number = group[place]
                    for link in crossed[number]:
                        if left[link] == 0.0:  # it is full
                            order.append(number)
                            rates.append(0.0)
                            break
                    else:
                        numbers.append(number)
            if len(numbers) == 1:
                shared = [min([left[link] for link in crossed[numbers[0]]])]
            elif numbers:
                shared = max_min_rates([crossed[number] for number in numbers], left)
            else:
                continue
            order += numbers
            rates += shared
            for number, rate in zip(numbers, shared, strict=True):
                if rate > 0:
                    for link in crossed[number]:
                        rest = left[link] - rate
                        left[link] = rest if rest > 0 else 0.0
        return order, rates


def max_min_rates(crossed: Iterable[tuple[int, ...]], capacities: Sequence[float]) -> list[float]:
    """Max-min fair rates of streams (progressive filling).

    Args:
        crossed: links that each stream crosses, at least one.
        capacities: capacity of each link, bytes/s.

    Returns:
        Rate of each stream, bytes/s.
    """
    streams = list(crossed)
    rates = [0.0] * len(streams)
    over: dict[int, list[int]] = {}  # streams over each link
    for number, links in enumerate(streams):
        for link in links:
            if link in over:
                over[link].append(number)
            else:
                over[link] = [number]
    left = {link: capacities[link] for link in over}
    open_over = {link: len(numbers) for link, numbers in over.items()}
    is_open = [True] * len(streams)
    while open_over:
        tightest, share = -1, inf
        for link, num_open in open_over.items():
            part = left[link] / num_open
            if part < share or (part == share and link < tightest):
                tightest, share = link, part
        for number in over[tightest]:
            if is_open[number]:
                is_open[number] = False
                rates[number] = share
                for link in streams[number]:
                    rest = left[link] - share
                    left[link] = rest if rest > 0 else 0.0
                    if open_over[link] > 1:
                        open_over[link] -= 1
                    else:
                        del open_over[link]
    return rates
