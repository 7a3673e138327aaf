"""Stalls of links: shares of a step, rows of as many links as there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.api.linking import LinksResult, StallResult, predict_stalls
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.jobs.load import load_job
from driple.profiler.communication import Channel
from driple.profiler.linkfit import LinkFit
from tests.simulate.jobs import net

JOB = load_job(net(16))
WITHIN = Channel(name="NVLink", latency_s=1e-5, bytes_per_s=1e11)
BETWEEN = Channel(name="10G", latency_s=1e-4, bytes_per_s=1e9)
STALLS = StallResult(
    job=JOB, setting=Setting.parse("8xV100/NVLink"), num_gradients=4, gradient_bytes=1e6,
    num_buckets=2, iteration_time_s=2.0, interconnect_stall_s=0.5, network_stall_s=1.0,
    channels=(WITHIN, BETWEEN),
)  # fmt: skip


def test_a_stall_is_a_share_of_the_step_that_it_lengthens() -> None:
    """0.5 s of 2 s; then 1 s of the 2.5 s of a step on one machine."""
    assert STALLS.interconnect_stall_pct == 25.0
    assert STALLS.network_stall_pct == 40.0
    alone = replace(STALLS, network_stall_s=None, channels=(WITHIN,))
    assert alone.network_stall_pct is None


def test_there_is_a_row_for_each_link() -> None:
    assert STALLS.rows() == [
        {"stall": "interconnect", "link": "NVLink", "seconds": 0.5, "pct": 25.0},
        {"stall": "network", "link": "10G", "seconds": 1.0, "pct": 40.0},
    ]
    alone = replace(STALLS, network_stall_s=None, channels=(WITHIN,))
    assert [row["link"] for row in alone.rows()] == ["NVLink"]
    stalls = alone.to_dict()
    assert stalls["network_stall_s"] is None and stalls["network_stall_pct"] is None
    assert (stalls["gradients"], stalls["buckets"], stalls["setting"]) == (4, 2, "8xV100/NVLink")


@pytest.mark.parametrize(("overlap", "error"), [(True, 7.0), (False, 8.0)])
def test_fits_say_how_far_off_their_form_is(overlap: bool, error: float) -> None:
    errors = {"per gradient, hidden by backward": 7.0, "per gradient, after backward": 8.0}
    fit = LinkFit(
        channel=replace(WITHIN, overlap=overlap), left_out={"a": (1.0, 1.1)}, errors_pct=errors
    )
    (row,) = LinksResult(fits=(fit,)).rows()
    assert row["left_out_error_pct"] == error
    assert (row["link"], row["latency_s"], row["bytes_per_s"]) == ("NVLink", 1e-5, 1e11)
    links = LinksResult(fits=(fit,)).to_dict()["links"]
    assert isinstance(links, dict) and set(links) == {"NVLink"}
    assert isinstance(links["NVLink"], dict)
    assert links["NVLink"]["left_out_error_pct"] == error
    assert links["NVLink"]["errors_pct"] == errors


def test_a_slower_network_stalls_longer_than_the_link_of_the_machine() -> None:
    slow, fast = (
        predict_stalls(JOB, "8xV100/NVLink", network_bits_per_s=rate) for rate in (1e9, 1e10)
    )
    assert slow.interconnect_stall_s == fast.interconnect_stall_s
    assert slow.network_stall_s is not None and fast.network_stall_s is not None
    assert slow.network_stall_s > fast.network_stall_s >= 0
    assert [channel.name for channel in slow.channels][1] == "1G"
    alone = predict_stalls(JOB, "8xV100/NVLink")
    assert alone.network_stall_s is None and len(alone.channels) == 1
    assert alone.interconnect_stall_s == slow.interconnect_stall_s
    assert alone.gradient_bytes == JOB.graph.sent_bytes
    assert alone.num_gradients == len(JOB.graph.traffic.sent_bytes)


@pytest.mark.parametrize("name", ["1xV100", "V100-P1w2/ho-PCIe", "8xV100/NVLink@tp2"])
def test_only_rings_have_such_stalls(name: str) -> None:
    with pytest.raises(ConfigError, match="a ring of two or more"):
        predict_stalls(JOB, name)
