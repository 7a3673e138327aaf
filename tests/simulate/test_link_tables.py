"""Tables of all-reduces give back the rate and the latency that they were made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.catalog import Link
from driple.cluster.nccl_table import NcclTable
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.schemes.collectives import DeviceGroup, Hop
from driple.simulate.measured_link import with_link_bandwidth, with_measured_link

ALONE = "2x1xH100/PCIe+400G"
TABLES = Path(__file__).parents[1] / "data" / "nccl"
RATE = 1e10


def network_of(setting: Setting) -> Link:
    """The network between machines."""
    network = setting.cluster.network
    assert network is not None
    return network


def table_of(
    latency_s: float, *, first: int = 10, last: int = 33, machines: int | None = 2
) -> NcclTable:
    """Two machines of a device each, over a network of 1e10 bytes/s."""
    hop = Hop(bytes_per_s=RATE, latency_s=latency_s)
    group = DeviceGroup(count=2, machines=2, between=hop)
    sizes = np.array([2.0**power for power in range(first, last)])
    return NcclTable(
        sizes=sizes, seconds=group.seconds("all_reduce", sizes), ranks=2, machines=machines
    )


def measured(table: NcclTable, name: str = ALONE) -> Link:
    """The network of a setting with what a table shows."""
    setting = Setting.parse(name)
    return network_of(with_measured_link(setting, network_of(setting), table, "table"))


@pytest.mark.parametrize("latency_s", [2e-6, 3e-5, 4e-4])
@pytest.mark.parametrize("machines", [2, None])
def test_a_table_gives_back_what_it_was_made_of(latency_s: float, machines: int | None) -> None:
    """The rate is that of the largest message, 8 GB, to which the latency adds little."""
    link = measured(table_of(latency_s, machines=machines))
    assert link.efficiency == pytest.approx(RATE / 50e9, rel=1e-2)
    assert link.latency_s == pytest.approx(latency_s, rel=0.05)


@pytest.mark.parametrize(("times", "latency_s"), [(1e-6, 1e-7), (1e9, 1.0)])
def test_latencies_lie_between_a_tenth_of_a_microsecond_and_a_second(
    times: float, latency_s: float
) -> None:
    """However fast or slow messages are beside the rate of the largest one."""
    usual = table_of(1e-5)
    seconds = usual.seconds * np.where(usual.sizes <= 2**26, times, 1.0)
    if times < 1:  # the highest bandwidth would be theirs
        seconds = np.maximum(seconds, usual.sizes / RATE)
    link = measured(replace(usual, seconds=seconds))
    assert link.latency_s == pytest.approx(latency_s, rel=1e-3)


@pytest.mark.parametrize(
    ("first", "last", "is_known"),
    [(10, 20, False), (27, 33, False), (10, 21, True), (26, 33, True)],
)
def test_only_messages_as_training_sends_them_tell_of_the_latency(
    first: int, last: int, is_known: bool
) -> None:
    """From 1 to 64 MiB, both included; without any the calibration's stays."""
    link = measured(table_of(3e-5, first=first, last=last))
    assert (link.latency_s is not None) == is_known


def test_a_bandwidth_changes_the_rate_and_leaves_the_latency() -> None:
    link = network_of(with_link_bandwidth(Setting.parse(ALONE), "12.5GB/s"))
    assert link.efficiency == pytest.approx(0.25)
    assert link.latency_s is None
    inside = with_link_bandwidth(Setting.parse("4xA100/PCIe4"), "10.5GB/s").cluster
    assert inside.link is not None
    assert inside.link.efficiency == pytest.approx(10.5 / 31.5)
    assert inside.network is None
    machines = with_link_bandwidth(Setting.parse("2x4xA100/PCIe4+100G"), "6.25GB/s").cluster
    assert machines.link is not None and machines.link.efficiency is None
    assert machines.network is not None and machines.network.efficiency == pytest.approx(0.5)


def test_tables_belong_to_as_many_machines_as_the_setting_has() -> None:
    """One or several; a table that does not say is taken for either."""
    two = str(TABLES / "gh200-2x1.txt")
    with pytest.raises(ConfigError, match=r"measured on 2 machines, and 8xH100/NVLink has 1"):
        with_link_bandwidth(Setting.parse("8xH100/NVLink"), two)
    assert with_link_bandwidth(Setting.parse("4x1xGH200/200G"), two) != Setting.parse(
        "4x1xGH200/200G"
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("1xA100", "has one device"), ("V100-P1w2/ho-PCIe", "has parameter servers")],
)
def test_settings_without_an_all_reduce_have_no_such_link(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        with_link_bandwidth(Setting.parse(name), "1GB/s")
    two = with_link_bandwidth(Setting.parse("2xA100"), "100GB/s")
    assert two.cluster.link is not None and two.cluster.link.efficiency is not None
