"""Max-min fair sharing of links by streams, and meters that record the rates.

    send(stream, bytes) -> queue of the stream -> shared rate (max-min fair) -> done at its end

The capacity of a link may fall with the number of its users, as TCP connections that fill one
queue lose packets and send them again.
Messages of a stream are sent in order; streams run in parallel. Within a group of streams, the one
with the oldest pending message has priority, and the others share the remaining rate. So the
messages of one worker keep their order over one stream or many, and requests are served first come,
first served if the streams of all workers form one group. Rates change only when a stream starts,
ends or changes its position in its group. Changes at one point in time are processed together, and
the rates of a set of streams are cached, since training steps repeat the same sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from driple.comm.engine import Action, EventQueue

__all__ = ["SharedLink", "SharedNetwork", "max_min_rates"]

# Less than this of a byte is the rounding of a rate times a time.
_NOTHING_BYTES = 1e-6
_AFTER_ALL_OTHERS = 9  # priority of the sharing among the events of one moment
_MOST_SETS = 20_000  # of streams whose rates are kept
_FREE_USERS = 2  # as many users of a link lose nothing; as LinkEfficiency.sharing counts


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
        if users > _FREE_USERS:
            reached *= (_FREE_USERS / users) ** self.sharing
        return 1 / (1 / reached + self.copy_s_per_byte)


class SharedNetwork:
    """Streams over links.

    Attributes:
        rates: for each meter, a list of (time in s, bytes/s from then on).

    Args:
        queue: the event queue.
        links: each link, or its capacity in bytes/s.
        num_meters: number of meters.
        most_at_once: maximum number of streams of a group that send at the same time.
        ports: number of each link's port; users of both directions of a port contend, as data of
            one waits with acknowledgements of the other. Each link has its own by default.
    """

    def __init__(
        self,
        queue: EventQueue,
        links: Sequence[SharedLink | float],
        num_meters: int,
        most_at_once: int = 3,
        ports: Sequence[int] | None = None,
    ) -> None:
        self.rates: list[list[tuple[float, float]]] = [[(0.0, 0.0)] for _ in range(num_meters)]
        self._queue = queue
        self._links = [one if isinstance(one, SharedLink) else SharedLink(one) for one in links]
        self._alone = [link.capacity(1) for link in self._links]
        self._ports = list(range(len(self._links))) if ports is None else list(ports)
        # Of each link whose capacity falls with its users: number, port, capacity by users.
        self._contended: list[tuple[int, int, dict[int, float]]] = [
            (n, self._ports[n], {}) for n, link in enumerate(self._links) if link.sharing > 0
        ]
        self._most = most_at_once
        self._streams: list[_Stream] = []
        self._groups: list[list[_Stream]] = []  # active streams, the first to go first
        self._shared: tuple[tuple[int, ...], ...] = ()  # those that the present rates are of
        self._is_due = False
        self._num_sent = 0
        self._known: dict[tuple[tuple[int, ...], ...], list[tuple[_Stream, float]]] = {}

    def group(self) -> int:
        """Create a group of streams served by priority; its number."""
        self._groups.append([])
        return len(self._groups) - 1

    def stream(
        self,
        links: tuple[int, ...],
        meters: tuple[int, ...] = (),
        group: int | None = None,
        user: int | None = None,
    ) -> int:
        """Create a stream; its number.

        Args:
            links: numbers of the links that it crosses.
            meters: numbers of the meters that record it.
            group: its group; a new group by default.
            user: whose stream it is; streams of one user count once. Its own by default.
        """
        place, number = self.group() if group is None else group, len(self._streams)
        owner = (0, number) if user is None else (1, user)
        self._streams.append(
            _Stream(
                number=number,
                links=links,
                ports=tuple(dict.fromkeys(self._ports[link] for link in links)),
                meters=meters,
                group=place,
                user=owner,
            )
        )
        return len(self._streams) - 1

    def send(self, stream: int, nbytes: float, done: Action) -> None:
        """Enqueue a message on a stream; `done` is called when its last byte arrives."""
        if nbytes <= 0:
            self._queue.at(self._queue.now_s, done)
            return
        chosen = self._streams[stream]
        chosen.waiting.append((self._num_sent, nbytes, done))
        self._num_sent += 1
        if len(chosen.waiting) == 1:
            chosen.left, chosen.since_s = nbytes, self._queue.now_s
            self._groups[chosen.group].append(chosen)  # sent last, so it is served last
            self._change(chosen)

    def _change(self, stream: _Stream) -> None:
        """Reallocate the links after all other events of the current time."""
        stream.is_planned = False
        if not self._is_due:
            self._is_due = True
            self._queue.at(self._queue.now_s, self._share, _AFTER_ALL_OTHERS)

    def _share(self) -> None:
        """Allocate the links to the streams with pending messages."""
        self._is_due = False
        now_s = self._queue.now_s
        most = self._most
        active = tuple(
            [tuple([one.number for one in group[:most]]) for group in self._groups if group]
        )
        waiting = [(stream, 0.0) for group in self._groups for stream in group[most:]]
        rates = self._rates_of(active)
        for stream, rate in (*waiting, *rates):
            if rate != stream.rate or not stream.is_planned:
                self._pass_at(stream, rate)
        if active == self._shared:
            return
        self._shared = active
        totals = [0.0] * len(self.rates)
        for stream, rate in rates:
            for meter in stream.meters:
                totals[meter] += rate
        for record, total in zip(self.rates, totals, strict=True):
            if total != record[-1][1]:
                if record[-1][0] == now_s:
                    record.pop()
                record.append((now_s, total))

    def _pass_at(self, stream: _Stream, rate: float) -> None:
        """Set the rate of a stream from now on."""
        now_s = self._queue.now_s
        stream.left -= stream.rate * (now_s - stream.since_s)
        stream.rate, stream.since_s = rate, now_s
        self._plan(stream)

    def _rates_of(self, active: tuple[tuple[int, ...], ...]) -> list[tuple[_Stream, float]]:
        """Rate of each active stream."""
        found = self._known.get(active)
        if found is None:
            left = self._capacities(active)
            if len(active) == 1:
                found = self._in_turn(active[0], left)
            else:
                found = self._side_by_side(active, left)
            if len(self._known) < _MOST_SETS:
                self._known[active] = found
        return found

    def _capacities(self, active: tuple[tuple[int, ...], ...]) -> list[float]:
        """Capacity of each link with the users of these streams, bytes/s."""
        found = list(self._alone)
        if self._contended:
            users: list[set[tuple[int, int]]] = [set() for _ in self._alone]
            streams = self._streams
            for group in active:
                for number in group:
                    stream = streams[number]
                    for port in stream.ports:
                        users[port].add(stream.user)
            for link, port, known in self._contended:
                num_users = len(users[port])
                capacity = known.get(num_users)
                if capacity is None:
                    capacity = known[num_users] = self._links[link].capacity(num_users)
                found[link] = capacity
        return found

    def _in_turn(self, group: tuple[int, ...], left: list[float]) -> list[tuple[_Stream, float]]:
        """Rates of one group, by strict priority."""
        found = []
        for number in group:
            stream = self._streams[number]
            rate = min([left[link] for link in stream.links])
            if rate > 0:
                for link in stream.links:
                    left[link] -= rate
            found.append((stream, rate))
        return found

    def _side_by_side(
        self, active: tuple[tuple[int, ...], ...], left: list[float]
    ) -> list[tuple[_Stream, float]]:
        """Rates of several groups: first streams of all share fairly, then second ones, ..."""
        found = []
        for place in range(max(map(len, active), default=0)):
            streams = []
            for group in active:
                if place < len(group):
                    stream = self._streams[group[place]]
                    if 0.0 not in [left[link] for link in stream.links]:
                        streams.append(stream)
                    else:  # a link is full
                        found.append((stream, 0.0))
            crossed = [link for stream in streams for link in stream.links]
            if len(crossed) == len(set(crossed)):  # none shares a link
                rates = [min([left[link] for link in stream.links]) for stream in streams]
            else:
                rates = max_min_rates([stream.links for stream in streams], left)
            for stream, rate in zip(streams, rates, strict=True):
                found.append((stream, rate))
                if rate > 0:
                    for link in stream.links:
                        rest = left[link] - rate
                        left[link] = rest if rest > 0 else 0.0
        return found

    def _plan(self, stream: _Stream) -> None:
        stream.version += 1
        stream.is_planned = True
        version = stream.version

        def arrive() -> None:
            if version == stream.version:
                self._arrived(stream)

        if stream.rate > 0:  # else it waits for those before it, whose end shares links anew
            end_s = stream.since_s + max(stream.left, _NOTHING_BYTES) / stream.rate
            self._queue.at(end_s, arrive)

    def _arrived(self, stream: _Stream) -> None:
        """Complete the first message of a stream; the next starts at once."""
        _, _, done = stream.waiting.popleft()
        stream.since_s = self._queue.now_s
        group = self._groups[stream.group]
        if stream.waiting:
            stream.left = stream.waiting[0][1]
            before = list(group)
            group.sort(key=_Stream.first_sent)
            if group == before:
                self._plan(stream)
            else:
                self._change(stream)
        else:
            stream.rate = 0.0
            group.remove(stream)
            self._change(stream)
        done()


@dataclass(slots=True, eq=False, kw_only=True)
class _Stream:
    """A queue of messages between two endpoints."""

    number: int
    links: tuple[int, ...]
    ports: tuple[int, ...]
    meters: tuple[int, ...]
    group: int
    user: tuple[int, int]
    waiting: deque[tuple[int, float, Action]] = field(default_factory=deque)  # number, bytes, end
    left: float = 0.0  # bytes of the first message, at `since_s`
    since_s: float = 0.0
    rate: float = 0.0
    version: int = 0  # of the planned arrival; older ones are invalid
    is_planned: bool = False

    def first_sent(self) -> int:
        """Sequence number of its first message among all messages."""
        return self.waiting[0][0]


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
