"""From the name of a setting to machines: who runs where, on what, joined by which links.

    2080Ti-P4w4/he-40G -> two machines, each with two servers, a 2080 Ti and a Titan RTX, 40 GbE

Table 6 of the paper names the machines of its settings and what the unlike workers are; settings
that it does not name get a machine per role, or one for all where they are co-located.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from driple.catalog import Device, device_named, link_named, shipped_hardware
from driple.cluster.setting import Setting
from driple.errors import SettingError

__all__ = ["Topology", "copy_s_per_byte", "known_scene", "topology_of"]

# Devices of all workers in the heterogeneous settings of Table 6, by topology; its machines hold
# two V100 (two of them) or three 2080 Ti and a Titan RTX (three of them).
_UNLIKE: dict[tuple[int, int], tuple[tuple[str, ...], ...]] = {
    (2, 2): (("2080Ti", "TitanRTX"), ("CPU", "CPU25")),
    (1, 2): (("CPU", "CPU25"),),
    (4, 4): (("2080Ti", "TitanRTX", "2080Ti", "TitanRTX"),),
    (5, 5): (("V100", "V100", "2080Ti", "2080Ti", "2080Ti"),),
    (5, 10): (("V100",) * 4 + ("2080Ti",) * 6,),
}
# Machines that share the roles of a topology (Table 6, "# of GPU machines").
_MACHINES = {(2, 2): 2, (4, 4): 2, (5, 5): 5, (5, 10): 5}


@dataclass(frozen=True, kw_only=True, slots=True)
class Topology:
    """A cluster, role by role.

    Attributes:
        devices: device of each worker; the setting's own worker comes first.
        worker_machine: machine of each worker.
        server_machine: machine of each server; empty for a ring.
        link: name of what joins machines, or the roles of the only one.
        link_bytes_per_s: nominal rate of that link, each way.
    """

    devices: tuple[str, ...]
    worker_machine: tuple[int, ...]
    server_machine: tuple[int, ...]
    link: str
    link_bytes_per_s: float

    @property
    def num_sharing(self) -> int:
        """Machines with workers, which share the links: what `LinkEfficiency` was fitted by."""
        return len(set(self.worker_machine))

    def labelled_workers(self) -> dict[int, int]:
        """Workers with the setting's own device: the first of each kind, and how many are of it.

        Two are of a kind if the same servers are on their machines: what they fetch from these
        crosses no link.
        """
        kinds: dict[tuple[int, ...], int] = {}
        found: Counter[int] = Counter()
        for worker, (device, machine) in enumerate(
            zip(self.devices, self.worker_machine, strict=True)
        ):
            if device == self.devices[0]:
                near = tuple(s for s, place in enumerate(self.server_machine) if place == machine)
                found[kinds.setdefault(near, worker)] += 1
        return dict(found)

    @property
    def num_machines(self) -> int:
        """How many machines there are."""
        return 1 + max((*self.worker_machine, *self.server_machine))


def topology_of(setting: Setting) -> Topology:
    """The machines of a setting.

    Raises:
        SettingError: unlike workers of which the paper does not tell the devices, or a device or
            a link that is not in the catalogue, or an NVLink that the device has not.
    """
    devices = _devices(setting)
    num_workers, num_servers = setting.num_workers, setting.num_servers
    link = _link_name(setting)
    machines = 1  # co-located
    if not link_named(link).within_machine:
        table6 = not setting.homogeneous  # its settings with a network are all of unlike workers
        machines = _MACHINES.get((num_servers, num_workers), 0) if table6 else 0
    if not machines or setting.on_cpu:  # each role on its own
        workers = tuple(range(num_workers))
        servers = tuple(range(num_workers, num_workers + num_servers))
    else:
        workers = tuple(i * machines // num_workers for i in range(num_workers))
        servers = tuple(i * machines // num_servers for i in range(num_servers))
    return Topology(
        devices=devices,
        worker_machine=workers,
        server_machine=servers,
        link=link,
        link_bytes_per_s=link_named(link).bytes_per_s,
    )


def known_scene(setting: Setting) -> Topology | None:
    """The machines of a setting; None where it is not known what they are."""
    try:
        return topology_of(setting)
    except SettingError:
        return None


def copy_s_per_byte(device: Device) -> float:
    """Seconds for a byte between a host's memory and its device, at the nominal rate of their link.

    Raises:
        CatalogError: the catalogue does not know that link.
    """
    if device.is_cpu:
        return 0.0
    return 1 / shipped_hardware().host_link(device).bytes_per_s


def _link_name(setting: Setting) -> str:
    """Name of the link in the catalogue: the device's own NVLink or PCIe.

    Workers of a ring that cannot copy to each other go through the host's memory.
    """
    if setting.network == "PCIe" and not setting.on_cpu:
        device = device_named(setting.device)
        through_host = not setting.num_servers and not device.pcie_peers
        return shipped_hardware().pcie_link(device, through_host=through_host).name
    if not setting.network.startswith("NVLink"):
        return setting.network
    own = device_named(setting.device).nvlink
    if own is None:
        raise SettingError(f"{setting.device} has no NVLink; give another network, such as PCIe")
    if setting.network not in {"NVLink", own}:
        raise SettingError(
            f"{setting.device} has no {setting.network}; give NVLink, which is {own}"
        )
    return own


def _devices(setting: Setting) -> tuple[str, ...]:
    """Device of each worker, the setting's own first."""
    if setting.homogeneous:
        return (setting.device,) * setting.num_workers
    for mixture in _UNLIKE.get((setting.num_servers, setting.num_workers), ()):
        if setting.device in mixture:
            own = mixture.index(setting.device)
            return (setting.device, *mixture[:own], *mixture[own + 1 :])
    raise SettingError(
        f"what the other workers of {setting.name} are is not known; choose a homogeneous (ho) "
        "setting, or one of the paper's Table 6"
    )
