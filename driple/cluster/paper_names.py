"""The paper's names of settings: device, topology, kind and network.

    2080Ti-P4w4/he-40G -> two machines, each with two servers, a 2080 Ti and a Titan RTX, 40 GbE

Table 6 of the paper names the machines of its settings and what the unlike workers are; settings
that it does not name get a machine per role, or one for all where they are co-located.
"""

from __future__ import annotations

import itertools
import re

from driple.catalog import Device, Link
from driple.catalog.catalog import Catalog
from driple.catalog.model import RDMA, TCP
from driple.cluster.cluster import Cluster, Machine
from driple.cluster.links import link_spelling, named_link
from driple.cluster.schemes import SchemeChoice
from driple.cluster.setting import Setting, UnknownCluster
from driple.errors import CatalogError, SettingError
from driple.units import find_rate

__all__ = ["WORD", "paper_setting"]

WORD = r"[A-Za-z0-9.]+(?:-[A-Za-z0-9.]+)*"
_NAME = re.compile(
    rf"(?P<device>{WORD})"
    r"-(?:P(?P<servers>\d{1,4})w(?P<workers>\d{1,4})|R(?P<ring>\d{1,4}))"
    rf"/(?P<kind>ho|he)-(?P<network>{WORD})",
    re.IGNORECASE,
)

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


def paper_setting(text: str, catalog: Catalog) -> Setting | None:
    """The setting with this full name of the paper's form; None if it has another form.

    Args:
        text: such as `V100-P1w2/ho-PCIe`.
        catalog: devices and links.

    Raises:
        SettingError: no worker, no parameter server, or a network of rate 0.
    """
    match = _NAME.fullmatch(text)
    device = None if match is None else catalog.find_device(match["device"])
    if match is None or device is None or not _may_be_link(catalog, match["network"]):
        return None
    ring = match["ring"]
    num_servers = 0 if ring is not None else int(match["servers"])
    num_workers = int(ring if ring is not None else match["workers"])
    if ring is None and num_servers < 1:
        raise SettingError(
            f"setting '{text}' has no parameter server; give it one, or write R for a ring"
        )
    stated = catalog.find_link(match["network"])
    if num_servers and stated is not None and stated.kind in {TCP, RDMA}:
        raise SettingError(
            f"setting '{text}': parameter servers send by gRPC, so that -{stated.kind} says "
            "nothing; leave it out"
        )
    homogeneous = match["kind"].lower() == "ho"
    network = link_spelling(catalog, match["network"])
    topology = f"P{num_servers}w{num_workers}" if num_servers else f"R{num_workers}"
    name = f"{device.name}-{topology}/{'ho' if homogeneous else 'he'}-{network}"
    if num_workers < 1:
        raise SettingError(f"setting {name} has no worker; give it at least one")
    if find_rate(network) == 0:
        raise SettingError(f"setting {name} has a network of rate 0; give one such as 40G")
    described: Cluster | UnknownCluster
    try:
        devices = _devices(catalog, device, name, num_servers, num_workers, homogeneous)
        link = named_link(catalog, device, network, peers=not num_servers)
        hosts = _host_links(catalog, devices) if num_servers else ()
        described = _machines(devices, hosts, num_servers, link, homogeneous=homogeneous)
    except CatalogError as error:
        described = UnknownCluster(reason=str(error), lacks_fact=True)
    except SettingError as error:
        described = UnknownCluster(reason=str(error))
    return Setting(
        name=name,
        scheme=SchemeChoice.usual(num_servers),
        worker=device,
        num_workers=num_workers,
        homogeneous=homogeneous,
        network=network,
        described=described,
        states_scheme=True,
    )


def _may_be_link(catalog: Catalog, name: str) -> bool:
    """Whether the catalogue has a link of this name; `NVLink` depends on the device."""
    return name.lower() == "nvlink" or catalog.find_link(name) is not None


def _host_links(catalog: Catalog, devices: tuple[Device, ...]) -> tuple[Link, ...]:
    """Link of each device to its host's memory, over which what servers send goes; empty for CPUs.

    Where the catalogue lacks a fact, the simulation that needs it names it.
    """
    if any(device.is_cpu for device in devices):
        return ()
    try:
        return tuple(catalog.host_link(device) for device in devices)
    except CatalogError:
        return ()


def _machines(
    devices: tuple[Device, ...],
    hosts: tuple[Link, ...],
    num_servers: int,
    link: Link,
    *,
    homogeneous: bool,
) -> Cluster:
    """Machines of a setting: co-located, as in Table 6, or one for each role."""
    num_workers, on_cpu = len(devices), devices[0].is_cpu
    if link.within_machine and not on_cpu:
        return Cluster(machines=(Machine(devices=devices, link=link, host_links=hosts),))
    # The paper's settings with a network are all of unlike workers.
    count = 0 if homogeneous else _MACHINES.get((num_servers, num_workers), 0)
    if not count or on_cpu:
        alone = tuple(
            Machine(devices=(device,), host_links=hosts[i : i + 1])
            for i, device in enumerate(devices)
        )
        return Cluster(machines=(*alone, *(Machine(),) * num_servers), network=link)
    ends = [-(-machine * num_workers // count) for machine in range(count + 1)]
    shared = tuple(
        Machine(devices=devices[begin:end], host_links=hosts[begin:end])
        for begin, end in itertools.pairwise(ends)
    )
    return Cluster(machines=shared, network=link)


def _devices(  # noqa: PLR0917  # parts of one name
    catalog: Catalog,
    own: Device,
    name: str,
    num_servers: int,
    num_workers: int,
    homogeneous: bool,
) -> tuple[Device, ...]:
    """Device of each worker, the setting's own first."""
    if homogeneous:
        return (own,) * num_workers
    for mixture in _UNLIKE.get((num_servers, num_workers), ()):
        if own.name in mixture:
            place = mixture.index(own.name)
            others = (*mixture[:place], *mixture[place + 1 :])
            return (own, *(catalog.device(other) for other in others))
    raise SettingError(
        f"what the other workers of {name} are is not known; choose a homogeneous (ho) setting, or "
        "one of the paper's Table 6"
    )
