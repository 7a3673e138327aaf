"""NVLink as NCCL uses it: by hand, by generation, and against the measured collectives."""

from __future__ import annotations

import numpy as np
import pytest

from driple.catalog import link_named
from driple.schemes.collectives import CollectiveKind, DeviceGroup, Hop
from driple.schemes.links import ReachedLink
from driple.schemes.nccl_links import SWITCHED, nccl_efficiency
from driple.simulate.calibration import shipped_calibration
from scripts.fits import nccl

LARGE = np.array([1e12])
SWITCHES: tuple[dict[str, float], ...] = ({"switch_bytes_per_s": 9e10}, {})


def group(count: int, **facts: float) -> DeviceGroup:
    hop = {"bytes_per_s": 1e11, "latency_s": 1e-6, **facts}
    return DeviceGroup(count=count, within=Hop(**hop))  # type: ignore[arg-type]


def test_a_device_copies_its_own_part_beside_what_it_sends() -> None:
    """Four devices: three quarters sent and a half of one copied; half of that in an all-reduce."""
    devices = group(4, own_part=0.5)
    assert devices.seconds("all_gather", LARGE) == pytest.approx((0.75 + 0.125) * 10, rel=1e-4)
    assert devices.seconds("all_reduce", LARGE) == pytest.approx((1.5 + 0.0625) * 10, rel=1e-4)
    assert devices.seconds("broadcast", LARGE) == group(4).seconds("broadcast", LARGE)


def test_a_collective_without_data_takes_its_start_and_latencies() -> None:
    """LL: 6.7 us, and a fifth of the latency for each of two steps."""
    nothing = np.array([0.0])
    assert group(2).seconds("all_reduce", nothing) == pytest.approx(6.7e-6 + 0.4e-6)
    assert group(2, start=2.0).seconds("all_reduce", nothing) == pytest.approx(13.4e-6 + 0.4e-6)


def test_a_switch_sums_for_many_devices_of_one_machine() -> None:
    cases: tuple[tuple[CollectiveKind, int, bool], ...] = (
        ("all_reduce", 8, True), ("all_reduce", 4, False), ("all_gather", 8, False),
    )  # fmt: skip
    for kind, count, helps in cases:
        times = [group(count, **facts).seconds(kind, LARGE)[0] for facts in SWITCHES]
        assert (times[0] < times[1]) == helps
    hop = Hop(bytes_per_s=1e11, latency_s=1e-6, switch_bytes_per_s=9e10)
    two = DeviceGroup(count=16, machines=2, within=hop, between=hop)
    assert two.seconds("all_reduce", LARGE)[0] > 17  # no switch between machines


def test_bridges_and_pcie_stay_as_they_are_fitted_to_training() -> None:
    for name in ("NVLink-GA102", "NVLink-V100", "PCIe4", "InfiniBand-HDR"):
        assert nccl_efficiency(link_named(name)) is None
    for name, efficiency in SWITCHED.items():
        assert shipped_calibration().link(name) == efficiency


@pytest.mark.parametrize("link", ["NVLink-A100", "NVLink-H100", "NVLink-B200"])
def test_measured_collectives_are_met(link: str) -> None:
    """A tenth off in the median, a fifth at the 90th percentile, and a quarter of what it was."""
    rows = nccl.collectives()
    rows = rows[rows["link"] == link].reset_index(drop=True)
    us = rows["us"].to_numpy()
    shipped = nccl.seconds(rows, lambda name: shipped_calibration().link(name))
    median, ninth, _ = nccl.errors(shipped, us)
    assert median < 10
    assert ninth < 20
    before = nccl.errors(nccl.seconds(rows, nccl.BEFORE.__getitem__), us)
    assert median < before[0] / 2
    fitted = nccl.fit_link(rows)
    hop = ReachedLink(link_named(link), fitted).hop(8)
    assert hop.bytes_per_s == pytest.approx(
        ReachedLink(link_named(link), SWITCHED[link]).hop(8).bytes_per_s, rel=0.02
    )
