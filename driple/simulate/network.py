"""Links that streams share fairly: every stream crosses two of them, its sender's and its reader's.

    send(stream, bytes) -> queue of the stream -> shared rate (max-min fair) -> done at its end

Messages of a stream go one after another, in order; streams go side by side. While no stream begins
or ends, all rates stay, so only such changes cost work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from driple.simulate.engine import Action, EventQueue

__all__ = ["SharedNetwork", "max_min_rates"]

# Less than this of a byte is the rounding of a rate times a time.
_NOTHING_BYTES = 1e-6


class SharedNetwork:
    """Streams over links of fixed rates.

    Attributes:
        rates: of each link, what it carried: lists of (time in s, bytes/s from then on).
    """

    def __init__(self, queue: EventQueue, capacities: Sequence[float]) -> None:
        self.rates: list[list[tuple[float, float]]] = [[(0.0, 0.0)] for _ in capacities]
        self._queue = queue
        self._capacities = list(capacities)
        self._streams: list[_Stream] = []
        self._active: dict[int, _Stream] = {}

    def stream(self, sender: int, reader: int) -> int:
        """A new stream over the links of these numbers; its own number."""
        self._streams.append(_Stream(len(self._streams), sender, reader))
        return len(self._streams) - 1

    def send(self, stream: int, nbytes: float, done: Action) -> None:
        """Put a message on a stream; `done` is called when its last byte has come."""
        if nbytes <= 0:
            self._queue.at(self._queue.now_s, done)
            return
        chosen = self._streams[stream]
        chosen.waiting.append((nbytes, done))
        if stream not in self._active:
            chosen.left, chosen.since_s = nbytes, self._queue.now_s
            self._active[stream] = chosen
            self._share()

    def _share(self) -> None:
        """Divide the links anew among the streams that have something to send."""
        now_s = self._queue.now_s
        pairs = [(stream.sender, stream.reader) for stream in self._active.values()]
        rates = max_min_rates(pairs, self._capacities)
        totals = dict.fromkeys(range(len(self._capacities)), 0.0)
        for stream, rate in zip(self._active.values(), rates, strict=True):
            totals[stream.sender] += rate
            totals[stream.reader] += rate
            if rate != stream.rate or stream.fresh:
                stream.left -= stream.rate * (now_s - stream.since_s)
                stream.rate, stream.since_s, stream.fresh = rate, now_s, False
                self._schedule(stream)
        for link, total in totals.items():
            record = self.rates[link]
            if total != record[-1][1]:
                if record[-1][0] == now_s:
                    record.pop()
                record.append((now_s, total))

    def _schedule(self, stream: _Stream) -> None:
        stream.version += 1
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
            self._schedule(stream)
        else:
            del self._active[stream.number]
            stream.rate, stream.fresh = 0.0, True
            self._share()
        done()


class _Stream:
    """Messages from one end to another, in order."""

    def __init__(self, number: int, sender: int, reader: int) -> None:
        self.number, self.sender, self.reader = number, sender, reader
        self.waiting: deque[tuple[float, Action]] = deque()
        self.left = 0.0  # bytes of the first message, at `since_s`
        self.since_s = 0.0
        self.rate = 0.0
        self.version = 0  # of the planned arrival; older ones are void
        self.fresh = True


def max_min_rates(pairs: Iterable[tuple[int, int]], capacities: Sequence[float]) -> list[float]:
    """Max-min fair rates of streams that each cross two links (progressive filling).

    Args:
        pairs: the links that each stream crosses.
        capacities: bytes/s of each link.

    Returns:
        Bytes/s of each stream, in order.
    """
    streams = list(pairs)
    rates = [0.0] * len(streams)
    left = dict(enumerate(capacities))
    open_streams = dict(enumerate(streams))
    while open_streams:
        crossing: dict[int, int] = {}
        for pair in open_streams.values():
            for link in pair:
                crossing[link] = crossing.get(link, 0) + 1
        tightest = min(crossing, key=lambda link: (left[link] / crossing[link], link))
        share = left[tightest] / crossing[tightest]
        for number in [n for n, pair in open_streams.items() if tightest in pair]:
            rates[number] = share
            for link in open_streams.pop(number):
                left[link] = max(left[link] - share, 0.0)
    return rates
