"""Cluster settings: which device, how many parameter servers and workers, joined by what.

    V100-P1w2/ho-PCIe     V100 GPUs, 1 parameter server, 2 workers, all alike, co-located over PCIe
    2080Ti-P4w4/he-40G    the 2080 Ti worker of a cluster of unlike GPUs, 40 Gbit/s Ethernet
    CPU-P1w2/ho-200M      CPU workers (0.4 of a core each), links of 200 Mbit/s
    CPU25-P1w2/he-200M    the worker with 0.25 of a core, beside one with 0.4
    V100-R4/ho-PCIe       ring all-reduce over 4 workers; R1 is one device and no exchange
    A100-80G-R8/ho-InfiniBand-HDR      names of the catalogue (`driple.catalog`) may hold dashes

Names are case-insensitive, and what the catalogue knows takes its spelling from there.
`Setting.parse` also takes short names (`V100`, `CPU-P1w2`): they stand for the declared default of
the device, or for the only known setting that begins so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from driple.catalog import find_device, find_link, nearest_devices, shipped_hardware
from driple.errors import SettingError
from driple.units import find_rate

__all__ = ["KNOWN_SETTINGS", "Setting"]

_WORD = r"[A-Za-z0-9.]+(?:-[A-Za-z0-9.]+)*"
_NAME = re.compile(
    rf"(?P<device>{_WORD})"
    r"-(?:P(?P<servers>\d{1,4})w(?P<workers>\d{1,4})|R(?P<ring>\d{1,4}))"
    rf"(?:/(?P<kind>ho|he)-(?P<network>{_WORD}))?",
    re.IGNORECASE,
)
# The device at the beginning of a name that may be wrong elsewhere.
_DEVICE = re.compile(
    r"[A-Za-z0-9. ]+(?:-[A-Za-z0-9.]+)*?(?=-[PR]\d+(?:w\d+)?(?:/|$)|/|$)", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One cluster setting (paper, section 2.5 and Table 6).

    Attributes:
        device: the worker's compute device, such as `V100` or `CPU`.
        num_servers: parameter servers; 0 for ring all-reduce.
        num_workers: workers.
        homogeneous: whether all workers have the same device.
        network: what joins them: `PCIe` when co-located, else a rate such as `40G` or `200M`.
    """

    device: str
    num_servers: int
    num_workers: int
    homogeneous: bool = True
    network: str = "PCIe"

    def __post_init__(self) -> None:
        """Refuse what cannot be a cluster."""
        if self.num_workers < 1:
            raise SettingError(f"setting {self.name} has no worker; give it at least one")
        if self.bits_per_s == 0:
            raise SettingError(f"setting {self.name} has a network of rate 0; give one such as 40G")

    @property
    def name(self) -> str:
        """The full name, such as `V100-P1w2/ho-PCIe`."""
        topology = (
            f"P{self.num_servers}w{self.num_workers}"
            if self.num_servers
            else f"R{self.num_workers}"
        )
        kind = "ho" if self.homogeneous else "he"
        return f"{self.device}-{topology}/{kind}-{self.network}"

    @property
    def file_name(self) -> str:
        """The name as a part of a path: `/` is written `_`."""
        return self.name.replace("/", "_")

    @property
    def on_cpu(self) -> bool:
        """Whether workers compute on shares of CPU cores."""
        return self.device.upper().startswith("CPU")

    @property
    def bits_per_s(self) -> float | None:
        """Rate of a worker's link in bit/s, if the network's name is a rate."""
        return find_rate(self.network)

    @classmethod
    def parse(cls, text: str) -> Setting:
        """The setting with this full or short name.

        Raises:
            SettingError: no such setting; the message offers the nearest known names.
        """
        wanted = text.strip()
        short = _resolve_short(wanted)
        match = _NAME.fullmatch(short or wanted)
        if match is None or match["kind"] is None:
            raise SettingError(_no_such(wanted))
        device, network = find_device(match["device"]), find_link(match["network"])
        if ("-" in match["device"] and not device) or ("-" in match["network"] and not network):
            raise SettingError(_no_such(wanted))
        ring = match["ring"]
        if ring is None and int(match["servers"]) < 1:
            raise SettingError(
                f"setting '{wanted}' has no parameter server; give it one, or write R for a ring"
            )
        return cls(
            device=device.name if device else match["device"],
            num_servers=0 if ring is not None else int(match["servers"]),
            num_workers=int(ring if ring is not None else match["workers"]),
            homogeneous=match["kind"].lower() == "ho",
            network=network.name if network else _spelling(match["network"]),
        )


# Table 6 of the paper, rings of today, then the settings that this project measured itself.
KNOWN_SETTINGS = (
    "V100-P1w2/ho-PCIe",
    "V100-P2w2/ho-PCIe",
    "2080Ti-P1w2/ho-PCIe",
    "2080Ti-P1w3/ho-PCIe",
    "2080Ti-P2w2/he-PCIe",
    "TitanRTX-P2w2/he-PCIe",
    "2080Ti-P2w2/he-40G",
    "TitanRTX-P2w2/he-40G",
    "2080Ti-P4w4/he-40G",
    "TitanRTX-P4w4/he-40G",
    "V100-P5w5/he-1G",
    "2080Ti-P5w5/he-1G",
    "V100-P5w10/he-1G",
    "2080Ti-P5w10/he-1G",
    "H100-R8/ho-NVLink",
    "A100-R8/ho-NVLink",
    "2080Ti-R4/ho-PCIe",
    "CPU-P1w2/ho-200M",
    "CPU25-P1w2/ho-200M",
    "CPU-P2w2/ho-200M",
    "CPU-P1w3/ho-200M",
    "CPU-P1w2/ho-400M",
    "CPU-P1w2/he-200M",
    "CPU25-P1w2/he-200M",
)


def _spelling(network: str) -> str:
    """The usual spelling of a network that the catalogue has not: which NVLink is up to devices."""
    return "NVLink" if network.lower() == "nvlink" else network


def _resolve_short(wanted: str) -> str | None:
    """The full name that a short one stands for; None if it is no prefix of a known one."""
    begins = [name for name in KNOWN_SETTINGS if _is_short_for(wanted, name)]
    usual = {device.default_setting for device in shipped_hardware().devices.values()}
    defaults = [name for name in begins if name in usual]
    if len(defaults) == 1:
        return defaults[0]
    if len(begins) == 1:
        return begins[0]
    if begins:
        raise SettingError(f"setting '{wanted}' is ambiguous: it may be {', '.join(begins)}")
    return None


def _is_short_for(wanted: str, name: str) -> bool:
    """Whether `wanted` is `name`, or `name` without its last parts."""
    rest = name.lower().removeprefix(wanted.lower())
    return rest != name.lower() and (not rest or rest[0] in "-/")


def _no_such(wanted: str) -> str:
    """One line: what was found, and the nearest names, of the same kind of device."""
    import difflib

    begin = _DEVICE.match(wanted)
    device = begin[0] if begin else ""
    known = find_device(device)
    if device and known is None:
        offers = [_usual_setting(name) for name in nearest_devices(device)]
    elif known and not any(name.startswith(f"{known.name}-") for name in KNOWN_SETTINGS):
        offers = [f"{known.name}-{topology}/ho-PCIe" for topology in ("R1", "R8", "P1w2")]
    else:
        on_cpu = device.upper().startswith("CPU")
        by_lower = {
            name.lower(): name
            for name in KNOWN_SETTINGS
            if not device or name.startswith("CPU") == on_cpu
        }
        near = difflib.get_close_matches(wanted.lower(), by_lower, n=3, cutoff=0.3)
        offers = [by_lower[name] for name in near] or list(by_lower.values())[:3]
    return f"no setting is called '{wanted}'; did you mean {', '.join(offers)}?"


def _usual_setting(device: str) -> str:
    """The first known setting of a device; one with one server where none is known."""
    known = [name for name in KNOWN_SETTINGS if name.startswith(f"{device}-")]
    return known[0] if known else f"{device}-P1w2/ho-PCIe"
