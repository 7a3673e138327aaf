"""Machines, their devices, and the links within and between them.

    Cluster(machines=(Machine(devices=(V100, V100), link=NVLink), ...), network=100G)

Devices and links are objects of a catalogue, so that a user's own need no second look-up.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from driple.catalog import Device, Link
from driple.errors import SettingError

__all__ = ["INFINITY_FABRIC", "MOST_DEVICES", "Cluster", "Host", "Machine", "each_once"]

INFINITY_FABRIC = "InfinityFabric"  # kind of AMD's links, and the start of their names
MOST_DEVICES = 131_072  # of a cluster, whose every device is simulated
_Kind = TypeVar("_Kind", bound=Hashable)


def each_once(parts: Iterable[_Kind]) -> tuple[_Kind, ...]:
    """Unlike ones, in order; the thousand devices of a cluster are mostly one object."""
    return tuple(dict.fromkeys({id(part): part for part in parts}.values()))


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The computer around the devices of a machine.

    Attributes:
        num_cpus: virtual CPUs; None if they are not known.
        memory_bytes: main memory; None if it is not known.
    """

    num_cpus: float | None = None
    memory_bytes: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """One machine.

    Attributes:
        devices: that train; empty for a machine that only holds parameter servers.
        link: joins its devices, at the rate of a whole system of them; None if there is none, or
            it is not known.
        host_links: of each device to the host's memory; empty if they are not known or not needed.
        host: the computer around them.
    """

    devices: tuple[Device, ...] = ()
    link: Link | None = None
    host_links: tuple[Link, ...] = ()
    host: Host = Host()

    @property
    def shared_link(self) -> Link | None:
        """Its link at the rate of so many devices.

        AMD's Infinity Fabric joins each device with each: a device of eight sends over seven links
        at once, one of two over one.
        """
        link, count = self.link, len(self.devices)
        if link is None or link.kind != INFINITY_FABRIC or count < 2:
            return link
        whole = int(self.devices[0].find("nvlink_peers") or 0)
        if count >= whole:
            return link
        return replace(link, bytes_per_s=link.bytes_per_s * (count - 1) / (whole - 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """Machines and what joins them.

    Attributes:
        machines: in order; the first device is the one that answers are about.
        network: joins machines; None for a single machine.

    Raises:
        SettingError: no device, too many, or several machines without a network.
    """

    machines: tuple[Machine, ...]
    network: Link | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot train together."""
        if sum(len(machine.devices) for machine in self.machines) > MOST_DEVICES:
            raise SettingError(f"a cluster has at most {MOST_DEVICES:,} devices; give fewer")
        if not self.devices:
            raise SettingError("a cluster has no device; give one at least")
        if len(self.machines) > 1 and self.network is None:
            raise SettingError(
                f"{len(self.machines)} machines have no network between them; give one such as 100G"
            )

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices, machine by machine."""
        return tuple(device for machine in self.machines for device in machine.devices)

    @property
    def kinds(self) -> tuple[Device, ...]:
        """Each kind of device once, in order."""
        return each_once(self.devices)

    @property
    def host_links(self) -> tuple[Link, ...]:
        """Link of each device to its host's memory; empty unless all are known."""
        known = tuple(link for machine in self.machines for link in machine.host_links)
        return known if len(known) == len(self.devices) else ()

    @property
    def host_memory_bytes(self) -> float | None:
        """Memory of the host with least, of machines with devices; None unless all are known."""
        known = [one.host.memory_bytes for one in self.machines if one.devices]
        sizes = [size for size in known if size is not None]
        return min(sizes) if sizes and len(sizes) == len(known) else None

    @property
    def device_machine(self) -> tuple[int, ...]:
        """Machine of each device."""
        return tuple(
            number for number, machine in enumerate(self.machines) for _ in machine.devices
        )

    @property
    def joining_link(self) -> Link | None:
        """The network between machines, where there are several; else the link within."""
        return self.network or self.link

    @property
    def link(self) -> Link | None:
        """The slowest link within machines of several devices; else the first that is known."""
        joined = [one for one in self.machines if one.link and len(one.devices) > 1]
        links = [one.shared_link for one in joined or self.machines]
        known = [link for link in links if link is not None]
        return min(known, key=lambda link: link.bytes_per_s, default=None)
