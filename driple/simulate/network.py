"""Links that streams share fairly, and meters that count what passes.

    send(stream, bytes) -> queue of the stream -> shared rate (max-min fair) -> done at its end

Messages of a stream go one after another, in order; streams go side by side. Rates change only when
a stream begins or ends; all changes of one moment are dealt with together, and what a set of
streams shares is worked out once, since steps of training repeat the same sets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from driple.simulate.engine import Action, EventQueue

__all__ = ["SharedNetwork", "max_min_rates"]

# Less than this of a byte is the rounding of a rate times a time.
_NOTHING_BYTES = 1e-6
_AFTER_ALL_OTHERS = 9  # priority of the sharing among the events of one moment
_MOST_SETS = 20_000  # of streams whose rates are kept


class SharedNetwork:
    """Streams over links of fixed rates.

    Attributes:
        rates: of each meter, what passed it: lists of (time in s, bytes/s from then on).
    """

    def __init__(self, queue: EventQueue, capacities: Sequence[float], num_meters: int) -> None:
        self.rates: list[list[tuple[float, float]]] = [[(0.0, 0.0)] for _ in range(num_meters)]
        self._queue = queue
        self._capacities = list(capacities)
        self._streams: list[_Stream] = []
        self._active = 0  # bit n: stream n has something to send
        self._shared = 0  # the set of streams that the present rates are of
        self._is_due = False
        self._known: dict[int, list[tuple[_Stream, float]]] = {}

    def stream(self, links: tuple[int, ...], meters: tuple[int, ...] = ()) -> int:
        """A new stream over the links, past the meters, of these numbers; its own number."""
        self._streams.append(_Stream(len(self._streams), links, meters))
        return len(self._streams) - 1

    def send(self, stream: int, nbytes: float, done: Action) -> None:
        """Put a message on a stream; `done` is called when its last byte has come."""
        if nbytes <= 0:
            self._queue.at(self._queue.now_s, done)
            return
        chosen = self._streams[stream]
        chosen.waiting.append((nbytes, done))
        if len(chosen.waiting) == 1:
            chosen.left, chosen.since_s = nbytes, self._queue.now_s
            self._active |= 1 << stream
            self._change(chosen)

    def _change(self, stream: _Stream) -> None:
        """Have the links shared anew once this moment's other events are through."""
        stream.is_planned = False
        if not self._is_due:
            self._is_due = True
            self._queue.at(self._queue.now_s, self._share, _AFTER_ALL_OTHERS)

    def _share(self) -> None:
        """Divide the links among the streams that have something to send."""
        self._is_due = False
        now_s = self._queue.now_s
        totals = [0.0] * len(self.rates)
        for stream, rate in self._rates_of(self._active):
            for meter in stream.meters:
                totals[meter] += rate
            if rate != stream.rate or not stream.is_planned:
                stream.left -= stream.rate * (now_s - stream.since_s)
                stream.rate, stream.since_s = rate, now_s
                self._plan(stream)
        if self._active == self._shared:
            return
        self._shared = self._active
        for record, total in zip(self.rates, totals, strict=True):
            if total != record[-1][1]:
                if record[-1][0] == now_s:
                    record.pop()
                record.append((now_s, total))

    def _rates_of(self, active: int) -> list[tuple[_Stream, float]]:
        found = self._known.get(active)
        if found is None:
            streams = [stream for stream in self._streams if active >> stream.number & 1]
            rates = max_min_rates([stream.links for stream in streams], self._capacities)
            found = list(zip(streams, rates, strict=True))
            if len(self._known) < _MOST_SETS:
                self._known[active] = found
        return found

    def _plan(self, stream: _Stream) -> None:
        stream.version += 1
        stream.is_planned = True
        version = stream.version

        def arrive() -> None:
            if version == stream.version:
                self._arrived(stream)

        end_s = stream.since_s + max(stream.left, _NOTHING_BYTES) / stream.rate
        self._queue.at(end_s, arrive)

    def _arrived(self, stream: _Stream) -> None:
        """The first message of a stream is through; the next begins at once."""
        _, done = stream.waiting.popleft()
        stream.since_s = self._queue.now_s
        if stream.waiting:
            stream.left = stream.waiting[0][0]
            self._plan(stream)
        else:
            stream.rate = 0.0
            self._active &= ~(1 << stream.number)
            self._change(stream)
        done()


class _Stream:
    """Messages from one end to another, in order."""

    def __init__(self, number: int, links: tuple[int, ...], meters: tuple[int, ...]) -> None:
        self.number, self.links, self.meters = number, links, meters
        self.waiting: deque[tuple[float, Action]] = deque()
        self.left = 0.0  # bytes of the first message, at `since_s`
        self.since_s = 0.0
        self.rate = 0.0
        self.version = 0  # of the planned arrival; older ones are void
        self.is_planned = False


def max_min_rates(crossed: Iterable[tuple[int, ...]], capacities: Sequence[float]) -> list[float]:
    """Max-min fair rates of streams (progressive filling).

    Args:
        crossed: the links that each stream crosses, one at least.
        capacities: bytes/s of each link.

    Returns:
        Bytes/s of each stream, in order.
    """
    streams = list(crossed)
    rates = [0.0] * len(streams)
    left = dict(enumerate(capacities))
    open_streams = dict(enumerate(streams))
    while open_streams:
        crossing: dict[int, int] = {}
        for links in open_streams.values():
            for link in links:
                crossing[link] = crossing.get(link, 0) + 1
        tightest = min(crossing, key=lambda link: (left[link] / crossing[link], link))
        share = left[tightest] / crossing[tightest]
        for number in [n for n, links in open_streams.items() if tightest in links]:
            rates[number] = share
            for link in open_streams.pop(number):
                left[link] = max(left[link] - share, 0.0)
    return rates
