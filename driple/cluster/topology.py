"""Who runs where: the roles of a scheme on the machines of a cluster.

V100-P1w2/ho-PCIe -> two workers and a server, all on machine 0, joined by PCIe3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from driple.catalog import Device, Link, shipped_hardware
from driple.catalog.catalog import Catalog
from driple.cluster.cluster import each_once
from driple.cluster.schemes import DDP, Degrees
from driple.cluster.setting import Setting
from driple.errors import SettingError

__all__ = ["Topology", "copies_s_per_byte", "copy_s_per_byte", "topology_of"]

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """A cluster, role by role.

    Attributes:
        workers: device of each worker; the setting's own worker comes first.
        worker_machine: machine of each worker.
        server_machine: machine of each server; empty for schemes without.
        within: link between devices of one machine; None if it is not needed, or not known.
        between: network between machines; None for a single one.
        host_links: of each worker's device to its host's memory; empty if they are not known.
        scheme: under which the exchange is registered.
        name: of the setting; empty if it has none.
        host_memory_bytes: memory of the host with least; None if one does not state it.
        degrees: neighbouring devices are a tensor group, neighbouring tensor groups a context
            group, then come replicas; a stage has neighbouring devices too, those of all replicas.
    """

    workers: tuple[Device, ...]
    worker_machine: tuple[int, ...]
    server_machine: tuple[int, ...] = ()
    within: Link | None = None
    between: Link | None = None
    host_links: tuple[Link, ...] = ()
    scheme: str = DDP
    name: str = field(default="", compare=False)
    host_memory_bytes: float | None = None
    degrees: Degrees = field(default_factory=Degrees)

    @property
    def kinds(self) -> tuple[Device, ...]:
        """Each kind of the workers' devices once, in order."""
        return each_once(self.workers)

    def of_each(self, values: Mapping[Device, _Value]) -> tuple[_Value, ...]:
        """What each worker has, of values for each kind of device."""
        if len(values) == 1:
            return (*values.values(),) * len(self.workers)
        return tuple(values[device] for device in self.workers)

    @property
    def devices(self) -> tuple[str, ...]:
        """Name of each worker's device."""
        return tuple(device.name for device in self.workers)

    @property
    def joined_by(self) -> Link | None:
        """What joins machines, or the roles of the only one; None for a device alone."""
        return self.within if self.between is None else self.between

    @property
    def link(self) -> str:
        """Name of what joins machines, or the roles of the only one; empty for a device alone."""
        return "" if self.joined_by is None else self.joined_by.name

    @property
    def link_bytes_per_s(self) -> float:
        """Nominal rate of that link, each way.

        Raises:
            SettingError: a device alone has no link.
        """
        if self.joined_by is None:
            raise SettingError(
                f"one {self.devices[0]} alone exchanges nothing; give several devices"
            )
        return self.joined_by.bytes_per_s

    @property
    def num_sharing(self) -> int:
        """Machines with workers, which share the links: what `LinkEfficiency` was fitted by."""
        return len(set(self.worker_machine))

    @property
    def num_machines(self) -> int:
        """How many machines there are."""
        return 1 + max((*self.worker_machine, *self.server_machine))

    @property
    def devices_per_machine(self) -> int:
        """Workers of the machine that has most of them."""
        return max(Counter(self.worker_machine).values())

    def labelled_workers(self) -> dict[int, int]:
        """Workers with the setting's own device: the first of each kind, and how many are of it.

        Two are of a kind if the same servers are on their machines: what they fetch from these
        crosses no link.
        """
        own = self.workers[0]
        if not self.server_machine:
            return {0: self.workers.count(own)}
        kinds: dict[tuple[int, ...], int] = {}
        kinds_count: Counter[int] = Counter()
        for worker, (device, machine) in enumerate(
            zip(self.workers, self.worker_machine, strict=True)
        ):
            if device is own or device == own:
                near = tuple(s for s, place in enumerate(self.server_machine) if place == machine)
                kinds_count[kinds.setdefault(near, worker)] += 1
        return dict(kinds_count)


def topology_of(setting: Setting) -> Topology:
    """Roles on the machines of a setting.

    Servers get the machines without devices; where there are none, they share those of the workers.

    Raises:
        SettingError: unlike workers that nobody described, or a link that does not fit.
        CatalogError: the catalogue lacks a fact about the device.
    """
    cluster = setting.cluster
    places = range(len(cluster.machines))
    free = [place for place in places if not cluster.machines[place].devices]
    count, num_servers = len(cluster.machines), setting.num_servers
    servers = tuple(
        free[i % len(free)] if free else i * count // num_servers for i in range(num_servers)
    )
    return Topology(
        workers=cluster.devices,
        worker_machine=cluster.device_machine,
        server_machine=servers,
        within=cluster.link,
        between=cluster.network,
        host_links=cluster.host_links,
        scheme=setting.scheme.name,
        name=setting.name,
        host_memory_bytes=cluster.host_memory_bytes,
        degrees=setting.scheme.degrees,
    )


def copies_s_per_byte(topology: Topology) -> tuple[float, ...]:
    """Seconds of each worker for a byte between its host's memory and its device.

    Raises:
        CatalogError: the catalogue does not know the link of a device to its host.
    """
    if topology.host_links:
        return tuple(1 / link.bytes_per_s for link in topology.host_links)
    return tuple(copy_s_per_byte(device) for device in topology.workers)


def copy_s_per_byte(device: Device, catalog: Catalog | None = None) -> float:
    """Seconds for a byte between a host's memory and its device, at the nominal rate of their link.

    Args:
        device: whose host link counts.
        catalog: holds that link; as installed by default.

    Raises:
        CatalogError: the catalogue does not know that link.
    """
    if device.is_cpu:
        return 0.0
    return 1 / (catalog or shipped_hardware()).host_link(device).bytes_per_s
