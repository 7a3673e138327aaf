"""Max-min fair rates: no link is overfull, and no stream gets more but at a poorer one's cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.schemes.fair_shares import FREE_USERS, FairShares, SharedLink, max_min_rates

CAPACITIES = st.lists(st.floats(1, 100), min_size=1, max_size=5)


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[float]]:
    """Links that each stream crosses, and the capacity of each link."""
    capacities = draw(CAPACITIES)
    some = st.lists(
        st.integers(0, len(capacities) - 1), min_size=1, max_size=len(capacities), unique=True
    ).map(tuple)
    return draw(st.lists(some, min_size=1, max_size=7)), capacities


@given(networks())
def test_every_stream_has_a_full_link_on_which_none_gets_more(
    network: tuple[list[tuple[int, ...]], list[float]],
) -> None:
    """The definition of max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2)."""
    crossed, capacities = network
    rates = max_min_rates(crossed, capacities)
    loads = [
        sum(rate for rate, links in zip(rates, crossed, strict=True) if link in links)
        for link in range(len(capacities))
    ]
    for load, capacity in zip(loads, capacities, strict=True):
        assert load <= capacity * (1 + 1e-9)
    for rate, links in zip(rates, crossed, strict=True):
        assert any(
            loads[link] >= capacities[link] * (1 - 1e-9)
            and rate >= max(
                other for other, others in zip(rates, crossed, strict=True) if link in others
            ) * (1 - 1e-9)
            for link in links
        )  # fmt: skip


@given(networks())
def test_streams_have_their_rates_in_any_order(
    network: tuple[list[tuple[int, ...]], list[float]],
) -> None:
    crossed, capacities = network
    rates = max_min_rates(crossed, capacities)
    assert max_min_rates(crossed[::-1], capacities)[::-1] == pytest.approx(rates)
    doubled = [2 * capacity for capacity in capacities]
    assert max_min_rates(crossed, doubled) == pytest.approx([2 * rate for rate in rates])


def test_rates_by_hand() -> None:
    """Two over a link of 10, one of them over one of 3 too; the other gets what it leaves."""
    assert max_min_rates([(0, 1), (0,)], [10.0, 3.0]) == [3.0, 7.0]
    assert max_min_rates([(0,), (0,), (0, 1)], [9.0, 100.0]) == [3.0, 3.0, 3.0]
    assert max_min_rates([(0,), (1,)], [4.0, 6.0]) == [4.0, 6.0]
    assert max_min_rates([], [1.0]) == []


@given(st.floats(1, 1e12), st.floats(0, 2), st.floats(0, 1e-9))
def test_a_link_passes_no_more_with_more_users(rate: float, sharing: float, copy_s: float) -> None:
    link = SharedLink(rate, sharing=sharing, copy_s_per_byte=copy_s)
    reached = [link.capacity(users) for users in range(1, 9)]
    assert reached == sorted(reached, reverse=True)
    assert reached[0] == reached[FREE_USERS - 1] <= rate * (1 + 1e-9)


def test_capacities_by_hand() -> None:
    """Four users of sharing 1 pass half; a copy of as long as the link halves what it passes."""
    assert SharedLink(8.0, sharing=1.0).capacity(4) == pytest.approx(4.0)
    assert SharedLink(8.0, sharing=0.5).capacity(8) == pytest.approx(4.0)
    assert SharedLink(8.0, copy_s_per_byte=1 / 8).capacity(1) == pytest.approx(4.0)
    assert SharedLink(8.0).capacity(100) == pytest.approx(8.0)


def shares(
    links: list[SharedLink], streams: list[tuple[tuple[int, ...], tuple[int, int]]],
    ports: list[int] | None = None,
) -> FairShares:  # fmt: skip
    fair_shares = FairShares(links, ports)
    for crossed, user in streams:
        fair_shares.add_stream(crossed, user)
    return fair_shares


def rates_of(fair_shares: FairShares, *groups: tuple[int, ...]) -> dict[int, float]:
    numbers, rates = fair_shares.rates(groups)
    assert len(numbers) == len(set(numbers))
    return dict(zip(numbers, rates, strict=True))


def test_one_group_goes_in_turn() -> None:
    """The first takes all; what leaves nothing on a link leaves the next one none."""
    fair_shares = shares([SharedLink(10.0), SharedLink(4.0)], [((0, 1), (0, 0)), ((0,), (0, 0)),
                                                        ((1,), (0, 0))])  # fmt: skip
    assert rates_of(fair_shares, (0, 1, 2)) == {0: 4.0, 1: 6.0, 2: 0.0}
    assert rates_of(fair_shares, (1, 0, 2)) == {1: 10.0, 0: 0.0, 2: 4.0}


def test_groups_share_fairly_then_what_is_left() -> None:
    fair_shares = shares(
        [SharedLink(10.0), SharedLink(4.0)],
        [((0, 1), (0, 0)), ((0,), (1, 0)), ((0,), (0, 0)), ((1,), (1, 0))],
    )
    # The first of both: 4 and 6; then nothing is left of link 0, and nothing of link 1.
    assert rates_of(fair_shares, (0, 2), (1, 3)) == {0: 4.0, 1: 6.0, 2: 0.0, 3: 0.0}
    # Alone on link 1, stream 3 leaves all of link 0 to the other group.
    assert rates_of(fair_shares, (2,), (3,)) == {2: 10.0, 3: 4.0}
    assert rates_of(fair_shares, (2, 0), (3,)) == {2: 10.0, 3: 4.0, 0: 0.0}
    assert rates_of(fair_shares, (), (1,)) == {1: 10.0}


def test_many_users_of_a_port_contend() -> None:
    """Four users pass half of what two do; streams of one user count once."""
    link = SharedLink(8.0, sharing=1.0)
    own = shares([link], [((0,), (user, 0)) for user in range(4)])
    assert rates_of(own, (0,), (1,)) == {0: 4.0, 1: 4.0}
    assert rates_of(own, (0,), (1,), (2,), (3,)) == pytest.approx(dict.fromkeys(range(4), 1.0))
    fair_shares = shares([link], [((0,), (0, 0)) for _ in range(4)])
    assert rates_of(fair_shares, (0,), (1,), (2,), (3,)) == pytest.approx(
        dict.fromkeys(range(4), 2.0)
    )


def test_both_directions_of_a_port_contend() -> None:
    """Three users on two links of one port: each link passes 2/3 of its rate."""
    link = SharedLink(9.0, sharing=1.0)
    streams = [((0,), (0, 0)), ((1,), (1, 0)), ((1,), (2, 0))]
    apart, together = shares([link] * 2, streams), shares([link] * 2, streams, ports=[0, 0])
    assert rates_of(apart, (0,), (1,), (2,)) == {0: 9.0, 1: 4.5, 2: 4.5}
    assert rates_of(together, (0,), (1,), (2,)) == pytest.approx({0: 6.0, 1: 3.0, 2: 3.0})
    assert rates_of(together, (0,), (1,)) == {0: 9.0, 1: 9.0}
