"""The catalogue: devices, links and instances by name, as people write the names.

    Catalog.device("rtx 4090") -> Device      .link("40G") -> Link      .instance("p3.8xlarge")

Entry points: `shipped_catalog`, and `read_catalog` for files of the user's own, which come on top.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from driple.catalog.build import (
    build_devices,
    build_generations,
    build_instances,
    build_links,
    index,
    plain,
)
from driple.catalog.fields import SIMULATION_FACTS
from driple.catalog.machine_file import MachineFile
from driple.catalog.model import ETHERNET, RDMA, TCP, Device, Generation, Instance, Link
from driple.catalog.rows import TABLES, Row, merged, parse_file, read_file
from driple.errors import ConfigError, SettingError

__all__ = ["Catalog", "read_catalog", "shipped_catalog", "shipped_hardware"]

_FILES = ("devices.toml", "links.toml", "instances.toml")
_SEVERAL = re.compile(r"(?P<count>[1-9]\d{0,2})x(?P<link>\D.*|\d+(?:\.\d+)?[MG])", re.IGNORECASE)
_TRANSPORT = re.compile(rf"(?P<link>.+)-(?P<transport>{TCP}|{RDMA})", re.IGNORECASE)
_ETHERNET = re.compile(r"(\d+(?:\.\d+)?)([MG])", re.IGNORECASE)
_ETHERNET_SOURCE = "IEEE 802.3 line rate"
_ALIKE = 0.75  # least similarity of a name that is misspelt, from 0 to 1
_MAKER_WORD = re.compile(r"(nvidia|geforce|tesla|amd|quadro(?=p|rtx))")
_MOST_NAMED = 12  # instances that an error lists
_FULL_LANES = 16

Rows = Mapping[str, Sequence[Row]]  # of one file, by table


@dataclass(frozen=True, slots=True)
class Catalog:
    """Devices, links and instances that Driple knows.

    Attributes:
        generations: by name, oldest first.
        devices: by name, in the order of the files.
        links: by name.
        instances: by name.
    """

    generations: Mapping[str, Generation] = field(hash=False)
    devices: Mapping[str, Device] = field(hash=False)
    links: Mapping[str, Link] = field(hash=False)
    instances: Mapping[str, Instance] = field(hash=False)
    _device_of: Mapping[str, Device] = field(init=False, repr=False, compare=False)
    _link_of: Mapping[str, Link] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index devices and links by plain name; a name of its own wins over an alias."""
        object.__setattr__(self, "_device_of", index(self.devices))
        object.__setattr__(self, "_link_of", index(self.links))

    def find_device(self, name: str) -> Device | None:
        """The device of this name, as `device` reads names; None if there is none."""
        return self._device_of.get(plain(name))

    def device(self, name: str) -> Device:
        """The device of this name; case, blanks, dashes and usual prefixes do not matter.

        Raises:
            SettingError: there is none; the message offers the nearest names.
        """
        device = self.find_device(name)
        if device is None:
            raise SettingError(
                f"no device in the catalogue is called '{name}'; did you mean "
                f"{', '.join(self.nearest_devices(name))}?"
            )
        return device

    def find_link(self, name: str) -> Link | None:
        """The link of this name, as `link` reads names; None if there is none."""
        known = self._link_of.get(plain(name))
        transport = None if known else _TRANSPORT.fullmatch(name)
        if transport is not None:
            network, kind = self.find_link(transport["link"]), transport["transport"].upper()
            if network is None or network.within_machine or network.kind in {TCP, RDMA}:
                return None
            return replace(network, name=f"{network.name}-{kind}", kind=kind)
        several = None if known else _SEVERAL.fullmatch(name)
        if several is not None:
            single = self.find_link(several["link"])
            if single is None or single.within_machine:
                return None
            count = int(several["count"])
            return replace(
                single, name=f"{count}x{single.name}", bytes_per_s=count * single.bytes_per_s
            )
        rate = None if known else _ETHERNET.fullmatch(name)
        if rate is None:
            return known
        bits_per_s = float(rate[1]) * (1e9 if rate[2].upper() == "G" else 1e6)
        return Link(
            name=name.upper(),
            kind=ETHERNET,
            bytes_per_s=bits_per_s / 8,
            within_machine=False,
            source=_ETHERNET_SOURCE,
        )

    def link(self, name: str) -> Link:
        """The link of this name; `40G` and `200M` are Ethernet of that rate in bit/s.

        `8x400G` are the eight interfaces of a machine with a network together; `25G-TCP` and
        `25G-RDMA` state how data crosses it.

        Raises:
            SettingError: there is none.
        """
        link = self.find_link(name)
        if link is None:
            raise SettingError(
                f"no link in the catalogue is called '{name}'; give a rate such as 40G, or one of "
                f"{', '.join(self.links)}"
            )
        return link

    def instance(self, name: str) -> Instance:
        """The instance of this name.

        Raises:
            ConfigError: there is none; the message offers names like it.
        """
        instance = self.instances.get(name)
        if instance is None:
            near = difflib.get_close_matches(name, self.instances, n=3, cutoff=0.5)
            offers = near or list(self.instances)[:_MOST_NAMED]
            raise ConfigError(f"no instance is called '{name}'; did you mean {', '.join(offers)}?")
        return instance

    def pcie_link(self, device: Device, *, through_host: bool = False) -> Link:
        """PCI Express as a device has it, one way.

        Args:
            device: its generation and lanes of PCIe must be known.
            through_host: whether copies between devices go through the host's memory.

        Raises:
            CatalogError: generation or lanes are not known.
            SettingError: the catalogue has no such link.
        """
        lanes = "" if device.pcie_lanes == _FULL_LANES else f"x{device.pcie_lanes}"
        host = "-host" if through_host else ""
        return self.link(f"PCIe{device.pcie_generation}{lanes}{host}")

    def host_link(self, device: Device) -> Link:
        """What joins a device and its host's memory: PCI Express, or a link of its own.

        Raises:
            CatalogError: it is not known.
        """
        own = device.find("host_link")
        return self.link(str(own)) if own is not None else self.pcie_link(device)

    def nvlink(self, device: Device) -> Link | None:
        """The NVLink of a device; None if it has none."""
        return None if device.nvlink is None else self.link(device.nvlink)

    def missing_for_simulation(self, device: Device) -> tuple[str, ...]:
        """Facts that a simulation of training on GPUs needs and that are not known."""
        has_link = device.find("host_link") is not None
        return tuple(
            name
            for name in device.missing(SIMULATION_FACTS)
            if not (has_link and name.startswith("pcie_"))
        )

    def nearest_devices(self, name: str, most: int = 3) -> tuple[str, ...]:
        """The devices that come closest to a name that is in no catalogue.

        A GPU is offered GPUs: of the same maker, then of the nearest generation, then of the same
        class (data centre or not), then of the most similar name. A name without a generation is
        offered what is spelt like it, else the newest data-centre GPUs.

        Args:
            name: the text that the user wrote.
            most: how many names are returned at most.
        """
        wanted = plain(name)
        if wanted.startswith("cpu"):
            return tuple(item.name for item in self.devices.values() if item.is_cpu)[:most]
        kind = self._kind_of(wanted)
        known = self._device_of
        spelt = difflib.get_close_matches(wanted, known, n=most, cutoff=_ALIKE)
        if kind is None and spelt:
            return tuple(dict.fromkeys(known[word].name for word in spelt))
        newest = max((item.order for item in self.generations.values()), default=0.0)
        maker, order, in_centre = kind or ("NVIDIA", newest, True)

        def distance(device: Device) -> tuple[bool, float, bool, float, float]:
            alike = difflib.SequenceMatcher(None, wanted, plain(device.name)).ratio()
            apart = abs(device.architecture.order - order)
            other_class = bool(device.find("datacentre")) != in_centre
            return (
                device.maker != maker,
                apart,
                other_class,
                -alike,
                -_number(device, "bytes_per_s"),
            )

        gpus = sorted((item for item in self.devices.values() if not item.is_cpu), key=distance)
        return tuple(item.name for item in gpus[:most])

    def _kind_of(self, wanted: str) -> tuple[str, float, bool] | None:
        """Maker, order of generation and class of a GPU, by its plain name."""
        bare = _MAKER_WORD.sub("", wanted)
        for generation in self.generations.values():
            for pattern, in_centre in (
                (generation.datacentre_names, True),
                (generation.other_names, False),
            ):
                if pattern and re.fullmatch(pattern, bare):
                    return generation.maker, generation.order, in_centre
        return None


def _number(device: Device, name: str) -> float:
    """A fact that only breaks ties, 0 if it is not known."""
    return float(device.find(name) or 0.0)


def read_catalog(paths: Iterable[Path] = (), machine: MachineFile | None = None) -> Catalog:
    """The shipped catalogue and files of the user's own; later files take precedence.

    Args:
        paths: TOML files with any of the tables `generations`, `devices`, `links`, `instances`.
            A row of a known name replaces the fields that it states; others are added.
        machine: measured devices, which take precedence over all files.

    Raises:
        ConfigError: a file that cannot be read, or a wrong row: with file, row and field.
    """
    own = [] if machine is None else [machine.tables]
    return _catalog(_FILES, [*(read_file(path) for path in paths), *own])


@cache
def shipped_catalog() -> Catalog:
    """The catalogue that is installed with Driple."""
    return read_catalog()


@cache
def shipped_hardware() -> Catalog:
    """The installed catalogue without its instances: what most commands need, read faster."""
    return _catalog(_FILES[:2], ())


@cache
def _shipped_rows(name: str) -> Rows:
    text = (files("driple.catalog") / name).read_text(encoding="utf-8")
    return parse_file(text, name, own=False)


def _catalog(shipped: Sequence[str], own: Sequence[Rows]) -> Catalog:
    tables: dict[str, dict[str, Row]] = {table: {} for table in TABLES}
    for rows in (*(_shipped_rows(name) for name in shipped), *own):
        for table in TABLES:
            tables[table] = merged(tables[table], rows[table])
    generations = build_generations(tables["generations"])
    links = build_links(tables["links"])
    devices = build_devices(tables["devices"], generations, links)
    catalog = Catalog(generations, devices, links, {})
    names = {word: item.name for word, item in index(devices).items()}
    instances = build_instances(tables["instances"], names)
    for instance in instances.values():
        _check_interconnect(instance, catalog, tables["instances"][instance.name].file)
    return Catalog(generations, devices, links, instances)


def _check_interconnect(instance: Instance, catalog: Catalog, file: str) -> None:
    """Refuse an instance whose devices cannot be joined so."""
    if instance.interconnect in {"PCIe", "NVLink"}:
        if instance.interconnect == "NVLink" and catalog.devices[instance.device].nvlink is None:
            raise ConfigError(
                f"interconnect of {file}: instance {instance.name} is NVLink, which a "
                f"{instance.device} does not have; give PCIe or another link"
            )
    elif catalog.find_link(instance.interconnect) is None:
        raise ConfigError(
            f"interconnect of {file}: instance {instance.name} is '{instance.interconnect}', which "
            "is no link of the catalogue; give PCIe, NVLink, or add a row [[links]]"
        )
