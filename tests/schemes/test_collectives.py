"""Laws of collectives: bytes, monotony, and numbers that NCCL's users publish."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from driple.catalog import shipped_hardware
from driple.errors import ConfigError
from driple.schemes.collectives import COLLECTIVES, CollectiveKind, DeviceGroup, Hop
from driple.schemes.links import ReachedLink
from driple.simulate.calibration import shipped_calibration

LARGE_BYTES = 1e8
SIZES = np.array([0.0, 8.0, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e11])
SHAPES = [(2, 1), (3, 1), (8, 1), (2, 2), (16, 2), (24, 3), (64, 8), (64, 64), (1024, 128)]


def group(
    count: int, machines: int, *, within: float = 1e11, between: float = 1e10, slow: float = 1.0
) -> DeviceGroup:
    return DeviceGroup(
        count=count,
        machines=machines,
        within=Hop(bytes_per_s=within, latency_s=slow * 4e-6, in_order=True),
        between=Hop(bytes_per_s=between, latency_s=slow * 14e-6),
    )


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_one_device_exchanges_nothing(kind: CollectiveKind) -> None:
    alone = DeviceGroup(count=1)
    assert not alone.seconds(kind, SIZES).any()
    assert not alone.sent_bytes(kind, SIZES).any()


@pytest.mark.parametrize(("count", "machines"), SHAPES)
def test_bytes_are_those_of_theory(count: int, machines: int) -> None:
    """2 (n - 1) / n S for an all-reduce, which is a reduce-scatter and an all-gather."""
    sent_bytes = {kind: group(count, machines).sent_bytes(kind, SIZES) for kind in COLLECTIVES}
    assert sent_bytes["all_reduce"] == pytest.approx(2 * (count - 1) / count * SIZES)
    assert sent_bytes["all_reduce"] == pytest.approx(
        sent_bytes["all_gather"] + sent_bytes["reduce_scatter"]
    )
    # Over all devices: each shard goes to the n - 1 others, a broadcast reaches n - 1 devices.
    assert count * sent_bytes["all_gather"] == pytest.approx((count - 1) * SIZES)
    assert count * sent_bytes["broadcast"] == pytest.approx((count - 1) * SIZES)


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize(("count", "machines"), SHAPES)
def test_more_bytes_and_slower_hops_never_take_less(
    kind: CollectiveKind, count: int, machines: int
) -> None:
    usual = group(count, machines).seconds(kind, SIZES)
    assert (np.diff(usual) >= 0).all()
    for slower in (
        group(count, machines, within=9e10),
        group(count, machines, between=9e9),
        group(count, machines, within=1e9, between=1e8),
        group(count, machines, slow=1.1),
        replace(group(count, machines), within=Hop(bytes_per_s=1e11, latency_s=4e-6)),
    ):
        assert (slower.seconds(kind, SIZES) >= usual).all()


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_more_devices_and_machines_never_take_less(kind: CollectiveKind) -> None:
    for fewer_s, other in pairwise(
        group(count, 1).seconds(kind, SIZES) for count in (2, 3, 4, 8, 16)
    ):
        assert (other >= fewer_s * (1 - 1e-12)).all()
    for fewer_s, other in pairwise(
        group(8 * m, m).seconds(kind, SIZES) for m in (1, 2, 4, 16, 128)
    ):
        assert (other >= fewer_s * (1 - 1e-12)).all()


@pytest.mark.parametrize(("count", "machines"), SHAPES)
def test_no_device_sends_faster_than_its_link(count: int, machines: int) -> None:
    devices = group(count, machines)
    slowest = min(hop.bytes_per_s for hop in devices.hops)
    for kind in COLLECTIVES:
        least_s = devices.sent_bytes(kind, SIZES) / slowest
        assert (devices.seconds(kind, SIZES) >= least_s).all()


def test_small_messages_take_trees_and_large_ones_rings() -> None:
    """128 machines of 8: a ring has 2,046 steps, trees 2 x (7 + 7)."""
    devices = group(1024, 128)
    small, large = devices.seconds("all_reduce", np.array([1e3, 1e11]))
    assert small < 100e-6
    assert large == pytest.approx(2 * 1023 / 1024 * 1e11 / 1e10, rel=0.01)
    assert devices.seconds("all_gather", np.array([1e3]))[0] > 10 * small  # rings alone


@pytest.mark.parametrize(
    ("link", "count", "bus_bytes_per_s", "tolerance"),
    [
        ("NVLink-H100", 8, 370e9, 0.15),  # NVIDIA/nccl-tests issue 212: rings, without NVLS
        ("NVLink-A100", 2, 208e9, 0.20),  # NVIDIA/nccl-tests issue 178
        ("InfiniBand-HDR", 8, 0.9 * 24.2e9, 0.10),  # issue 119: 85 to 96 % of four of them
    ],
)
def test_large_all_reduces_reach_published_rates(
    link: str, count: int, bus_bytes_per_s: float, tolerance: float
) -> None:
    spec = shipped_hardware().link(link)
    reached = ReachedLink(spec, shipped_calibration().link(spec))
    devices = DeviceGroup(count=count, within=reached.hop(count))
    took_s = devices.seconds("all_reduce", np.array([8e9]))
    assert devices.sent_bytes("all_reduce", np.array([8e9])) / took_s == pytest.approx(
        bus_bytes_per_s, rel=tolerance
    )


@pytest.mark.parametrize("count", [2, 4, 8])
def test_of_two_links_of_a_family_the_faster_is_never_slower(count: int) -> None:
    """Large messages over any two; all sizes over two that NCCL uses alike.

    Small ones take longer over a later NVLink: 26 us on eight B200, 16 us on eight H100.
    """
    calibration, hardware = shipped_calibration(), shipped_hardware()
    families: dict[tuple[str, bool], list[ReachedLink]] = {}
    for link in hardware.links.values():
        reached_link = ReachedLink(link, calibration.link(link))
        families.setdefault((link.kind, link.through_host), []).append(reached_link)
    for links in families.values():
        links.sort(key=lambda one: one.link.bytes_per_s)
        times = [
            DeviceGroup(count=count, within=one.hop(count)).seconds("all_reduce", SIZES)
            for one in links
        ]
        for (slow, slower), (fast, faster) in pairwise(zip(links, times, strict=True)):
            alike = slow.efficiency == fast.efficiency
            some = (0 if alike else LARGE_BYTES) <= SIZES
            assert some.any()
            assert (faster[some] <= slower[some] * (1 + 1e-12)).all(), (slow.link, fast.link)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"count": 0}, "count of a group"),
        ({"machines": 3}, "machines of a group"),
        ({"machines": 2}, "need a hop within machines"),
        ({"within": None}, "need a hop within machines"),
    ],
)
def test_impossible_groups_are_refused(changed: dict[str, object], words: str) -> None:
    right = {"count": 2, "machines": 1, "within": Hop(bytes_per_s=1e9, latency_s=0.0)}
    with pytest.raises(ConfigError, match=words):
        DeviceGroup(**{**right, **changed})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="kind of a collective"):
        DeviceGroup(count=1).seconds("gossip", SIZES)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="bytes_per_s of a hop"):
        Hop(bytes_per_s=0.0, latency_s=0.0)
