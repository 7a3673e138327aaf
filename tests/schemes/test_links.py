"""What links reach: a share of the nominal rate, no more with more users."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.catalog import link_named
from driple.errors import ConfigError
from driple.schemes.links import TCP_EFFICIENCY, TCP_SHARES, LinkEfficiency, ReachedLink


@given(st.floats(0.01, 1), st.floats(0, 2), st.integers(1, 64))
def test_more_users_get_no_more_each(share: float, sharing: float, count: int) -> None:
    efficiency = LinkEfficiency(share, 1e-5, sharing)
    assert efficiency.effective_share(count) <= share
    assert efficiency.effective_share(count + 1) <= efficiency.effective_share(count)
    assert efficiency.effective_share(1) == efficiency.effective_share(2) == share
    switch = LinkEfficiency(share, 1e-5, 0.0)
    assert switch.effective_share(count) == share


def test_a_single_bottleneck_is_shared_out() -> None:
    assert LinkEfficiency(0.8, 0.0, 1.0).effective_share(8) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "value"),
    [("share", 0.0), ("latency_s", -1e-9), ("sharing", -0.1), ("start", 0.0), ("own_part", -1.0),
     ("switch_share", -1.0)],
)  # fmt: skip
def test_impossible_numbers_are_refused_by_name(name: str, value: float) -> None:
    usual = {"share": 0.5, "latency_s": 0.0, "sharing": 0.0}
    with pytest.raises(ConfigError, match=name):
        LinkEfficiency(**{**usual, name: value})
    LinkEfficiency(**usual)


def test_a_hop_has_what_the_link_reaches() -> None:
    efficiency = LinkEfficiency(0.5, 3e-6, 1.0, start=1.5, own_part=0.25, switch_share=0.7)
    for name, in_order in (("NVLink-H100", True), ("PCIe4", False), ("100G", False)):
        link = link_named(name)
        reached = ReachedLink(link, efficiency)
        assert reached.bytes_per_s(2) == pytest.approx(0.5 * link.bytes_per_s)
        assert reached.bytes_per_s(4) == pytest.approx(0.25 * link.bytes_per_s)
        hop = reached.hop(4)
        assert hop.bytes_per_s == reached.bytes_per_s(4)
        assert (hop.latency_s, hop.start, hop.own_part, hop.in_order) == (3e-6, 1.5, 0.25, in_order)
        assert hop.switch_bytes_per_s == pytest.approx(0.7 * link.bytes_per_s)


def test_tcp_reaches_the_median_of_what_was_published() -> None:
    assert LinkEfficiency(median(TCP_SHARES), 14e-6, 0.0) == TCP_EFFICIENCY
    assert (TCP_EFFICIENCY.latency_s, TCP_EFFICIENCY.start) == (14e-6, 1.0)
    assert all(0 < share < 1 for share in TCP_SHARES)
    assert list(TCP_SHARES) == sorted(TCP_SHARES)
