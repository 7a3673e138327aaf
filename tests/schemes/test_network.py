"""Messages arrive when a plain model of the same rules, which works out all rates anew, says."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.schemes.engine import EventQueue
from driple.schemes.fair_shares import SharedLink, max_min_rates
from driple.schemes.network import SharedNetwork

NUM_LINKS = 4
MOST_AT_ONCE = 2


@dataclass
class PlainStream:
    """Messages of a stream that wait: number in order of sending, bytes left."""

    links: tuple[int, ...]
    group: int
    user: int
    waiting: list[list[float]] = field(default_factory=list)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[SharedLink], list[PlainStream], list[list[int]]]:
    """Links, streams over some of them in groups, and messages: time, stream, bytes.

    Times and bytes are small whole numbers, so that many things happen at the same moment.
    """
    links = [
        SharedLink(float(draw(st.integers(1, 4))), sharing=draw(st.sampled_from([0.0, 1.0])))
        for _ in range(NUM_LINKS)
    ]
    crossed = st.lists(st.integers(0, NUM_LINKS - 1), min_size=1, max_size=3, unique=True)
    streams = [
        PlainStream(tuple(draw(crossed)), draw(st.integers(0, 2)), draw(st.integers(0, 3)))
        for _ in range(draw(st.integers(1, 7)))
    ]
    stream = st.integers(0, len(streams) - 1)
    message = st.tuples(st.integers(0, 6), stream, st.integers(1, 8)).map(list)
    return links, streams, sorted(draw(st.lists(message, min_size=1, max_size=20)))


def plain_rates(links: list[SharedLink], streams: list[PlainStream]) -> dict[int, float]:
    """Of each group the streams whose messages were sent first; these share in turns."""
    active: dict[int, list[int]] = {}
    for group in sorted({one.group for one in streams}):
        mine = [n for n, one in enumerate(streams) if one.group == group and one.waiting]
        active[group] = sorted(mine, key=lambda n: streams[n].waiting[0][0])[:MOST_AT_ONCE]
    users = [
        {streams[n].user for chosen in active.values() for n in chosen if link in streams[n].links}
        for link in range(len(links))
    ]
    left = [link.capacity(max(1, len(who))) for link, who in zip(links, users, strict=True)]
    rates: dict[int, float] = {}
    for turn in range(MOST_AT_ONCE):
        chosen = [numbers[turn] for numbers in active.values() if turn < len(numbers)]
        if chosen:
            shares = max_min_rates([streams[n].links for n in chosen], left)
            rates |= dict(zip(chosen, shares, strict=True))
        for number in chosen:
            for link in streams[number].links:
                left[link] = max(0.0, left[link] - rates[number])
    return rates


def plain_arrivals(
    links: list[SharedLink], streams: list[PlainStream], messages: list[list[int]]
) -> list[float]:
    """When each message arrives: time goes on to the next arrival or sending."""
    now_s, ends, unsent = 0.0, [inf] * len(messages), list(enumerate(messages))
    while unsent or any(one.waiting for one in streams):
        while unsent and unsent[0][1][0] <= now_s:
            number, (_, stream, nbytes) = unsent.pop(0)
            streams[stream].waiting.append([number, nbytes])
        rates = {n: rate for n, rate in plain_rates(links, streams).items() if rate > 1e-9}
        events = [now_s + streams[n].waiting[0][1] / rate for n, rate in rates.items()]
        next_s = min([*events, *(float(message[0]) for _, message in unsent[:1])])
        for number, rate in rates.items():
            first = streams[number].waiting[0]
            first[1] -= rate * (next_s - now_s)
            if first[1] <= 1e-6:
                ends[int(first[0])] = next_s
                streams[number].waiting.pop(0)
        now_s = next_s
    return ends


@given(networks())
def test_arrivals_are_those_of_a_plain_model(
    case: tuple[list[SharedLink], list[PlainStream], list[list[int]]],
) -> None:
    """Whatever is sent over whichever links, at one moment or later."""
    links, streams, messages = case
    queue = EventQueue()
    network = SharedNetwork(queue, links, 0, MOST_AT_ONCE)
    groups = [network.group() for _ in range(3)]
    numbers = [network.stream(one.links, (), groups[one.group], one.user) for one in streams]
    ends = [inf] * len(messages)
    for message, (time_s, stream, nbytes) in enumerate(messages):

        def send(message: int = message, stream: int = stream, nbytes: float = nbytes) -> None:
            def come() -> None:
                ends[message] = queue.now_s

            network.send(numbers[stream], nbytes, come)

        queue.at(float(time_s), send)
    queue.run()
    assert ends == pytest.approx(plain_arrivals(links, streams, messages), rel=1e-5)


def test_what_arrives_at_one_moment_comes_in_the_order_in_which_its_rate_was_set() -> None:
    """The second message of the first stream begins after the second stream's only one."""
    queue, seen = EventQueue(), []
    network = SharedNetwork(queue, [10.0, 10.0], 0)
    first, second = network.stream((0,)), network.stream((1,))
    for stream, name, nbytes in ((first, "a", 5.0), (second, "b", 10.0), (first, "c", 5.0)):
        network.send(stream, nbytes, lambda name=name: seen.append((name, queue.now_s)))
    queue.run()
    assert seen == [("a", 0.5), ("b", 1.0), ("c", 1.0)]
