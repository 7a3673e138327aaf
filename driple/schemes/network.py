"""Max-min fair sharing of links by streams, and meters that record the rates.

    send(stream, bytes) -> queue of the stream -> shared rate (max-min fair) -> done at its end

Messages of a stream are sent in order; streams run in parallel. Within a group of streams, the one
with the oldest pending message has priority, and the others share the remaining rate. So the
messages of one worker keep their order over one stream or many, and requests are served first come,
first served if the streams of all workers form one group. Rates change only when a stream starts,
ends or changes its position in its group. Changes at one point in time are processed together, and
the rates of a set of streams are cached, since training steps repeat the same sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

from driple.schemes.engine import Action, EventQueue
from driple.schemes.fair_shares import ActiveStreams, FairShares, SharedLink

__all__ = ["SharedNetwork"]

# Less than this of a byte is the rounding of a rate times a time.
_NOTHING_BYTES = 1e-6
_AFTER_ALL_OTHERS = 9  # priority of the sharing among the events of one moment
_MOST_SETS = 20_000  # of streams whose rates are kept


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
        self._shares = FairShares(
            [one if isinstance(one, SharedLink) else SharedLink(one) for one in links], ports
        )
        self._most = most_at_once
        self._streams: list[_Stream] = []
        self._groups: list[list[_Stream]] = []  # waiting streams, the first to go first
        self._firsts: list[tuple[int, ...]] = []  # of each group, those that may send
        self._changed: set[int] = set()  # groups, since links were shared
        self._shared: ActiveStreams = ()  # those that the present rates are of
        self._sending: list[_Stream] = []  # with a rate
        self._is_due = False
        self._num_sent = 0
        self._known: dict[ActiveStreams, _Rates] = {}

    def group(self) -> int:
        """Create a group of streams served by priority; its number."""
        self._groups.append([])
        self._firsts.append(())
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
        self._shares.add_stream(links, (0, number) if user is None else (1, user))
        self._streams.append(_Stream(number=number, meters=meters, group=place))
        return number

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
        """Share the links anew, after all other events of this moment."""
        stream.is_planned = False
        self._changed.add(stream.group)
        if not self._is_due:
            self._is_due = True
            self._queue.at(self._queue.now_s, self._share, _AFTER_ALL_OTHERS)

    def _share(self) -> None:
        """Share the links among the streams with pending messages."""
        self._is_due = False
        for group in sorted(self._changed):
            waiting = self._groups[group]
            self._firsts[group] = tuple([one.number for one in waiting[: self._most]])
            for stream in waiting[self._most :]:
                if stream.rate or not stream.is_planned:
                    self._set_rate(stream, 0.0)
        self._changed.clear()
        active = tuple([firsts for firsts in self._firsts if firsts])
        shares = self._known.get(active)
        if shares is None:
            shares = self._rates_of(active)
            if len(self._known) < _MOST_SETS:
                self._known[active] = shares
        for stream, rate in zip(shares.streams, shares.rates, strict=True):
            if rate != stream.rate or not stream.is_planned:
                self._set_rate(stream, rate)
        if active != self._shared:
            self._shared, self._sending = active, shares.sending
            self._record(shares.meters)
        self._await_next()

    def _rates_of(self, active: ActiveStreams) -> _Rates:
        """Rates of these streams, and of what meters record."""
        numbers, rates = self._shares.rates(active)
        streams, meters = [self._streams[number] for number in numbers], [0.0] * len(self.rates)
        for stream, rate in zip(streams, rates, strict=True):
            for meter in stream.meters:
                meters[meter] += rate
        sending = [stream for stream, rate in zip(streams, rates, strict=True) if rate > 0]
        return _Rates(streams, rates, sending, meters)

    def _record(self, meters: list[float]) -> None:
        """Record what the meters read from now on."""
        now_s = self._queue.now_s
        for record, total in zip(self.rates, meters, strict=True):
            if total != record[-1][1]:
                if record[-1][0] == now_s:
                    record.pop()
                record.append((now_s, total))

    def _set_rate(self, stream: _Stream, rate: float) -> None:
        """Set the rate of a stream from now on."""
        now_s = self._queue.now_s
        stream.left -= stream.rate * (now_s - stream.since_s)
        stream.rate, stream.since_s = rate, now_s
        self._plan(stream)

    def _plan(self, stream: _Stream) -> None:
        """Work out when the first message of a stream arrives."""
        stream.is_planned = True
        if stream.rate > 0:
            left = stream.left if stream.left > _NOTHING_BYTES else 0.0
            stream.end_s = stream.since_s + left / stream.rate
            stream.place = self._queue.take_place()
        else:  # it waits for those before it, whose end shares links anew
            stream.end_s, stream.place = inf, 0

    def _await_next(self) -> None:
        """Make the next arrival an event; those after it may still change."""
        first, first_s = None, inf
        for stream in self._sending:
            end_s = stream.end_s
            if end_s < first_s or (first and end_s == first_s and stream.place < first.place):
                first, first_s = stream, end_s
        if first and first.awaited != first.place:
            first.awaited = first.place
            arrive = partial(self._arrive, first, first.place)
            self._queue.at(first_s, arrive, place=first.place)

    def _arrive(self, stream: _Stream, place: int) -> None:
        """Complete the first message of a stream, unless its rate changed since."""
        if place != stream.place:
            return
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
                stream.end_s = inf
                self._change(stream)
        else:
            stream.rate, stream.end_s = 0.0, inf
            group.remove(stream)
            self._change(stream)
        self._await_next()  # another may arrive at this moment, before links are shared
        done()


@dataclass(frozen=True, slots=True)
class _Rates:
    """What a set of active streams comes to.

    Attributes:
        streams: all of them.
        rates: of each, bytes/s.
        sending: streams with a rate above 0.
        meters: bytes/s that each meter records.
    """

    streams: list[_Stream]
    rates: list[float]
    sending: list[_Stream]
    meters: list[float]


@dataclass(slots=True, eq=False, kw_only=True)
class _Stream:
    """A queue of messages between two endpoints."""

    number: int
    meters: tuple[int, ...]
    group: int
    waiting: deque[tuple[int, float, Action]] = field(default_factory=deque)  # number, bytes, end
    left: float = 0.0  # bytes of the first message, at `since_s`
    since_s: float = 0.0
    rate: float = 0.0
    is_planned: bool = False
    end_s: float = inf  # arrival of the first message, if the rate stays
    place: int = 0  # of that arrival among the events of its moment
    awaited: int = -1  # place of the arrival that is an event

    def first_sent(self) -> int:
        """Sequence number of its first message among all messages."""
        return self.waiting[0][0]
