"""A network as somebody measured it, in place of the usual one.

    Setting, 5.08 GB/s                     -> Setting whose link reaches that
    Setting, table of all_reduce_perf      -> the same, with rate and latency of the table

What counts is the bus bandwidth of a large all-reduce over all devices: the rate at which the
slowest hop is crossed (nccl-tests, doc/PERFORMANCE.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from driple.catalog import Link
from driple.catalog.model import MOST_EFFICIENCY
from driple.cluster.cluster import Cluster
from driple.cluster.nccl_table import NcclTable, read_nccl_table
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import ConfigError
from driple.schemes.collectives import DeviceGroup, Hop
from driple.schemes.links import ReachedLink
from driple.simulate.calibration import shipped_calibration
from driple.units import counted, find_rate, parse_rate

__all__ = ["with_link_bandwidth", "with_measured_link"]

_FLAG = "--link-bandwidth"
_LEAST_SENT, _MOST_SENT = 2**20, 2**26  # bytes of messages such as buckets of gradients
_LEAST_LATENCY_S, _MOST_LATENCY_S = 1e-7, 1.0
_HALVINGS = 40


def with_link_bandwidth(setting: Setting, given: str) -> Setting:
    """The setting whose devices exchange gradients as fast as somebody measured.

    It is the network between machines, where there are several, else the link within the machine.

    Args:
        setting: all-reduce or shards over several devices.
        given: bus bandwidth of a large all-reduce, such as `5.08GB/s`, or a file with the table of
            all_reduce_perf.

    Raises:
        ConfigError: neither, or a table that does not belong to the setting.
        SettingError: the machines of the setting are not known.
    """
    if setting.num_servers or setting.num_workers < 2:
        what = "parameter servers" if setting.num_servers else "one device"
        raise ConfigError(
            f"{_FLAG} is the bandwidth of all-reduce, and {setting.name} has {what}; leave it out, "
            "or give several devices, such as 2x8xA100/NVLink+100G"
        )
    link = setting.cluster.joining_link
    if link is None:
        raise ConfigError(
            f"{_FLAG}: what joins the devices of {setting.name} is not known; name it, as in "
            "2x8xV100/NVLink+100G"
        )
    if find_rate(given) is not None:
        return _with_rate(setting, link, parse_rate(_FLAG, given) / 8, None, _FLAG)
    if not Path(given).exists():
        raise ConfigError(
            f"{_FLAG} needs a rate such as 5.08GB/s, or the output of all_reduce_perf, and "
            f"'{given[:200]}' is neither"
        )
    table = read_nccl_table(Path(given))
    count = len(setting.cluster.machines)
    if table.machines is not None and (table.machines > 1) != (count > 1):
        raise ConfigError(
            f"{given} was measured on {counted(table.machines, 'machine')}, and {setting.name} has "
            f"{count}; measure over as many machines, or give another setting"
        )
    return with_measured_link(setting, link, table, _FLAG)


def with_measured_link(setting: Setting, link: Link, table: NcclTable, named: str) -> Setting:
    """The setting whose devices, or machines, are joined by a link as all-reduces over it show.

    Args:
        setting: all-reduce or shards over several devices.
        link: of its machines, or between them.
        table: measured over that link.
        named: where the table is from, for errors.

    Raises:
        ConfigError: the link cannot be that fast.
    """
    return _with_rate(setting, link, *_fitted(table, setting, link), named)


def _with_rate(
    setting: Setting, link: Link, rate: float, latency_s: float | None, named: str
) -> Setting:
    """The setting whose link reaches a rate (bytes/s) with a latency (seconds)."""
    share = rate / link.bytes_per_s
    if share > MOST_EFFICIENCY:
        raise ConfigError(
            f"{named}: {rate / 1e9:.3g} GB/s is {share:.2g} times what {link.name} of "
            f"{setting.name} has ({link.bytes_per_s / 1e9:.3g} GB/s); name the network "
            "that was measured, such as +100G for 12.5 GB/s"
        )
    measured = replace(link, efficiency=share, latency_s=latency_s)
    return replace(setting, described=_with_link(setting.cluster, measured))


def _with_link(cluster: Cluster, link: Link) -> Cluster:
    """The machines, joined by a link if it is a network's; else joined so within each."""
    if cluster.network is not None and not link.within_machine:
        return replace(cluster, network=link)
    machines = []
    for machine in cluster.machines:
        own = machine.link
        if own is not None:  # of fewer devices than a system has, the rate is another
            link = replace(link, bytes_per_s=own.bytes_per_s)
        machines.append(replace(machine, link=link))
    return replace(cluster, machines=tuple(machines))


def _fitted(table: NcclTable, setting: Setting, link: Link) -> tuple[float, float | None]:
    """Rate (bytes/s) and latency of a step (seconds) of a table.

    The rate is the highest bus bandwidth. With it, collectives of messages such as training sends
    take as long as measured, in the geometric mean: what they lack of the rate counts as latency.
    """
    rate = float(table.bytes_per_s.max())
    sent = (table.sizes >= _LEAST_SENT) & (table.sizes <= _MOST_SENT)
    if not sent.any():
        return rate, None
    group_of = _groups(table, setting, link, rate)
    low, high = _LEAST_LATENCY_S, _MOST_LATENCY_S
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        simulated = group_of(middle).seconds("all_reduce", table.sizes[sent])
        if np.log(simulated / table.seconds[sent]).mean() < 0:
            low = middle
        else:
            high = middle
    return rate, low


def _groups(
    table: NcclTable, setting: Setting, link: Link, rate: float
) -> Callable[[float], DeviceGroup]:
    """The devices that were measured, by the latency of what joins them."""
    topology, calibration = topology_of(setting), shipped_calibration(setting)
    machines = min(table.machines or len(setting.cluster.machines), table.ranks)
    within = None
    if topology.within is not None:
        reached = ReachedLink(topology.within, calibration.link(topology.within))
        within = reached.hop(topology.devices_per_machine)
    in_order = ReachedLink(link, calibration.link(link)).hop(2).in_order

    def group(latency_s: float) -> DeviceGroup:
        hop = Hop(bytes_per_s=rate, latency_s=latency_s, in_order=in_order)
        return DeviceGroup(
            count=table.ranks,
            machines=machines,
            within=(within or hop) if machines > 1 else hop,
            between=hop if machines > 1 else None,
        )

    return group
