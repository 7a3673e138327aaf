"""Devices and links of the machines that published rows ran on.

    "A100 SXM 80GB", 16 devices, 8 of a machine -> A100-80G, NVLink-A100 within, 1600G between

A link is given where the source names it or the machine is known (DGX-1, DGX-2, DGX A100, DGX
H100, HGX boards, GB200 NVL72), and for cards in PCIe slots. Between machines it is the rate of all
adapters of a machine together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from driple.catalog import find_device, shipped_hardware

__all__ = [
    "BETWEEN",
    "canonical_device",
    "devices_of_machine",
    "is_card",
    "link_between",
    "link_within",
]

# Names of the gathered tables (`gpu_canonical`) -> the catalogue's.
_CANONICAL: Mapping[str, str] = MappingProxyType({
    "H100 SXM": "H100", "H100 PCIe": "H100-PCIe", "A100 SXM 80GB": "A100-80G",
    "A100 SXM 40GB": "A100", "A100 PCIe 80GB": "A100-PCIe-80G", "A100 PCIe 40GB": "A100",
    "A100": "A100", "V100 16GB": "V100-SXM2", "V100 32GB": "V100-SXM2", "V100": "V100",
    "RTX 3090": "3090", "RTX 4090": "4090", "RTX 2080 Ti": "2080Ti", "RTX 3080": "3080",
    "RTX 3070": "3070", "GTX 1080 Ti": "GTX1080Ti", "Titan RTX": "TitanRTX",
    "Quadro RTX 8000": "RTX8000", "Quadro RTX 6000": "RTX6000", "Quadro RTX 5000": "RTX5000",
    "RTX A6000": "A6000", "RTX A5500": "A5500", "RTX A5000": "A5000", "RTX A4500": "A4500",
    "RTX A4000": "A4000",
})  # fmt: skip
# Network of a machine, all its adapters together, of systems whose makers publish it.
BETWEEN: Mapping[str, str] = MappingProxyType({
    "DGX-1": "400G",  # four InfiniBand EDR
    "DGX-2": "800G",  # eight InfiniBand EDR
    "DGX A100": "1600G",  # eight InfiniBand HDR
    "DGX H100": "3200G",  # eight InfiniBand NDR
})  # fmt: skip
_PCIE = re.compile(r"pcie|nvl\b", re.IGNORECASE)


def canonical_device(name: str) -> str:
    """Catalogue's name of a device as the gathered tables write it; empty if it has none."""
    device = find_device(_CANONICAL.get(name, name)) if name else None
    return device.name if device else ""


def link_within(device: str, devices: int, *, bridged: bool = False, pcie: bool = False) -> str:
    """Link of a machine's devices: NVLink of modules on a board, else the slots' PCIe.

    Args:
        device: by the catalogue's name; empty for an unknown one.
        devices: of the machine.
        bridged: pairs of cards have an NVLink bridge, and there are two of them.
        pcie: the source says that the devices are cards, whatever the catalogue has.
    """
    if not device or devices < 2:
        return ""
    hardware = shipped_hardware()
    known = hardware.device(device)
    nvlink = hardware.nvlink(known)
    on_board = int(known.find("nvlink_peers") or 0) >= 4 and not pcie
    if nvlink is not None and (on_board or (bridged and devices == 2)):
        return nvlink.name
    if known.find("pcie_generation") is None:
        return ""
    return hardware.pcie_link(known, through_host=known.find("pcie_peers") is False).name


def devices_of_machine(device: str, devices: int, stated: int) -> int:
    """Devices that share the link within a machine: those of a node, or of an NVLink domain.

    A domain of more than one node (GB200 NVL72) counts as a machine; larger jobs fill domains
    evenly, which takes 64 of 72 devices for powers of two.

    Args:
        device: by the catalogue's name; empty for an unknown one.
        devices: of the job.
        stated: devices of a node.
    """
    domain = int(shipped_hardware().device(device).find("nvlink_peers") or 0) if device else 0
    if domain <= max(8, stated) or domain <= 16:
        return min(stated, devices)
    return next(each for each in range(min(domain, devices), 0, -1) if devices % each == 0)


def link_between(text: str, *, nodes: int = 1) -> str:
    """Name of the rate that a note states of each node, such as `2x200 Gb/s` or `400 Gbps`."""
    match = re.search(r"(?:(\d+)\s*[x*]\s*)?(\d+)\s*G(?:b/s|bps)", text, re.IGNORECASE)
    return f"{nodes * int(match[1] or 1) * int(match[2])}G" if match else ""


def is_card(text: str) -> bool:
    """Whether a source's name of a device says that it sits in a PCIe slot."""
    return _PCIE.search(text) is not None
