"""Which link of the catalogue joins devices, by the name that a user writes.

"NVLink" of a V100 -> NVLink-V100      "PCIe" of a 2080 Ti in a ring -> PCIe3-host
eight MI300X -> InfinityFabric-MI300X
"""

from __future__ import annotations

from driple.catalog.catalog import Catalog, shipped_hardware
from driple.catalog.model import Device, Link
from driple.cluster.cluster import INFINITY_FABRIC
from driple.errors import SettingError

__all__ = [
    "NVLINK",
    "default_link_name",
    "link_spelling",
    "named_link",
    "network_link",
    "within_link",
]

PCIE, NVLINK = "PCIe", "NVLink"


def named_link(catalog: Catalog, device: Device, name: str, *, peers: bool) -> Link:
    """The link of this name: the device's own for `PCIe` and `NVLink`.

    Devices that exchange gradients and cannot copy to each other go through the host's memory.

    Args:
        catalog: holds the link.
        device: that the link joins.
        name: `PCIe`, `NVLink`, a rate, or a link of the catalogue.
        peers: whether devices exchange gradients with each other.

    Raises:
        SettingError: no such link, or an NVLink that the device does not have.
        CatalogError: generation, lanes or peers of its PCIe are not known.
    """
    if name == PCIE and not device.is_cpu:
        return catalog.pcie_link(device, through_host=peers and not device.pcie_peers)
    if not name.startswith(NVLINK):
        return catalog.link(name)
    own = device.nvlink
    if own is not None and own.startswith(INFINITY_FABRIC):
        raise SettingError(f"{device.name} has no NVLink; its devices are joined by {own}")
    if own is None:
        advice = "give another network, such as PCIe"
        if device.name not in shipped_hardware().devices:  # a row of the user's, who can add it
            known = _nvlink_like(catalog, device)
            advice = f"add nvlink = '{known}', or another link, to its row in {device.origin}"
        raise SettingError(f"{device.name} has no NVLink; {advice}")
    if name not in {NVLINK, own}:
        raise SettingError(f"{device.name} has no {name}; give NVLink, which is {own}")
    return catalog.link(own)


def _nvlink_like(catalog: Catalog, device: Device) -> str:
    """The NVLink of the device whose generation is nearest, as an example."""
    others = [other for other in catalog.devices.values() if other.nvlink is not None]
    order = device.architecture.order
    nearest = min(others, key=lambda other: abs(other.architecture.order - order))
    return str(nearest.nvlink)


def link_spelling(catalog: Catalog, name: str) -> str:
    """The usual spelling of a link's name; the name itself where the catalogue does not have it.

    Which NVLink is meant depends on the device.
    """
    if name.lower() == NVLINK.lower():
        return NVLINK
    if name.lower() == PCIE.lower():
        return PCIE
    known = catalog.find_link(name)
    return known.name if known else name


def default_link_name(device: Device, count: int) -> str:
    """`NVLink`, or the Infinity Fabric, where a device has one for so many, else `PCIe`."""
    own, peers = device.nvlink, device.find("nvlink_peers")
    if own is None or peers is None or float(peers) < count:
        return PCIE
    return own if own.startswith(INFINITY_FABRIC) else NVLINK


def within_link(catalog: Catalog, device: Device, name: str) -> Link:
    """The link of this name, which must join devices of one machine.

    Raises:
        SettingError: it joins machines, or there is none.
        CatalogError: a fact about the device's link is not known.
    """
    link = named_link(catalog, device, name, peers=True)
    if not link.within_machine:
        raise SettingError(
            f"{link.name} joins machines, not the devices of one; write NVLink or PCIe first, "
            "such as 2x8xH100/NVLink+400G"
        )
    return link


def network_link(catalog: Catalog, name: str) -> Link:
    """The link of this name, which must join machines.

    Raises:
        SettingError: it joins devices of one machine, or its rate is 0, or there is none.
    """
    link = catalog.link(name)
    if link.within_machine:
        raise SettingError(f"{link.name} joins devices of one machine; give a network such as 400G")
    if not link.bytes_per_s > 0:
        raise SettingError(f"a network of rate 0 ({name}) joins nothing; give one such as 40G")
    return link
