"""The machines of a setting in another number, or joined at another rate.

8xH100, 32, 400 Gbit/s -> four machines of eight H100;  8xH100, 4 -> four devices of one machine
"""

from __future__ import annotations

from dataclasses import replace

from driple.catalog import Link, link_named
from driple.catalog.model import ETHERNET, RDMA, TCP
from driple.cluster.cluster import Cluster
from driple.cluster.names import machines_name
from driple.cluster.setting import Setting
from driple.errors import SettingError
from driple.units import format_rate

__all__ = ["resized", "with_rate"]


def resized(setting: Setting, num_devices: int) -> Setting:
    """The same with another number of devices: on one machine, or on whole ones.

    Args:
        setting: machines that are alike, without parameter servers.
        num_devices: in all.

    Raises:
        SettingError: machines that differ; devices that fill no machines, or no replicas of a
            model that is split; several machines without a network.
    """
    cluster = setting.cluster
    machine = cluster.machines[0]
    per_machine = len(machine.devices)
    if not setting.homogeneous or any(other != machine for other in cluster.machines):
        raise SettingError(
            f"{setting.name} has machines or devices that differ; name some that are alike, such "
            f"as 8x{setting.device}"
        )
    if num_devices > per_machine and num_devices % per_machine:
        raise SettingError(f"not whole machines of {per_machine}")
    degrees = setting.scheme.degrees
    if num_devices % degrees.of_replica:
        raise SettingError(f"no whole number of replicas, each of {degrees.of_replica} devices")
    if num_devices // degrees.pipeline % degrees.expert:
        raise SettingError(f"no whole number of groups of {degrees.expert} devices with experts")
    num_machines = max(num_devices // per_machine, 1)
    if num_machines > 1 and cluster.network is None:
        raise SettingError(
            f"several machines of {per_machine}, and {setting.name} names no network between "
            "machines; give --bandwidth"
        )
    if num_devices < per_machine:
        devices, links = machine.devices[:num_devices], machine.host_links[:num_devices]
        machine = replace(machine, devices=devices, host_links=links)
    resized_cluster = Cluster(
        machines=(machine,) * num_machines,
        network=cluster.network if num_machines > 1 else None,
    )
    return _named(replace(setting, num_workers=num_devices, described=resized_cluster))


def with_rate(setting: Setting, bits_per_s: float, *, between: bool) -> Setting:
    """The same with another rate of the network between machines, or of the link within one.

    How data crosses the network, and the share of its rate that it reaches, stay as they are.

    Args:
        setting: without parameter servers.
        bits_per_s: rate of one direction.
        between: whether it is that between machines.

    Raises:
        SettingError: the link within the machine is not known.
    """
    cluster = setting.cluster
    if between:
        network = cluster.network or link_named(format_rate(bits_per_s))
        return replace(setting, described=replace(cluster, network=_at_rate(network, bits_per_s)))
    link = cluster.link
    if link is None:
        raise SettingError(f"what joins the devices of {setting.name} is not known; name it")
    joined = _at_rate(link, bits_per_s)
    machines = tuple(replace(machine, link=joined) for machine in cluster.machines)
    return _named(replace(setting, described=replace(cluster, machines=machines)))


def _at_rate(link: Link, bits_per_s: float) -> Link:
    """The link at a rate; one that is named by its rate has that name."""
    name = link.name
    if link.kind in {ETHERNET, TCP, RDMA}:
        name = format_rate(bits_per_s) + ("" if link.kind == ETHERNET else f"-{link.kind}")
    return replace(link, name=name, bytes_per_s=bits_per_s / 8)


def _named(setting: Setting) -> Setting:
    """The setting with a name that says what it has become."""
    cluster = setting.cluster
    count = len(cluster.machines)
    per_machine = len(cluster.machines[0].devices)
    within = cluster.link.name if cluster.link is not None and per_machine > 1 else ""
    links = "+".join(
        name for name in (within, cluster.network.name if cluster.network else "") if name
    )
    scheme = "" if setting.scheme.is_usual else f"@{setting.scheme.suffix}"
    name = machines_name(count, per_machine, setting.device, links)
    return replace(setting, name=f"{name}{scheme}", network=links)
