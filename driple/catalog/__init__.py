"""The catalogue of devices, links and instances: data files with a source and a date per row.

    devices.toml, links.toml, instances.toml, FILE.toml of the user -> Catalog

`shipped_catalog` and `read_catalog` return a `Catalog`. The functions of this module ask the
installed catalogue of devices and links.
"""

from __future__ import annotations

from collections.abc import Mapping

from driple.catalog.catalog import (
    Catalog,
    read_catalog,
    shipped_catalog,
    shipped_hardware,
)
from driple.catalog.listing import list_devices, list_instances, list_links
from driple.catalog.model import Device, Generation, Instance, Link, Price

__all__ = [
    "DEVICES",
    "LINKS",
    "Catalog",
    "Device",
    "Generation",
    "Instance",
    "Link",
    "Price",
    "device_named",
    "find_device",
    "find_link",
    "link_named",
    "list_devices",
    "list_instances",
    "list_links",
    "read_catalog",
    "shipped_catalog",
    "shipped_hardware",
]

DEVICES: Mapping[str, Device]
LINKS: Mapping[str, Link]


def __getattr__(name: str) -> object:
    """`DEVICES` and `LINKS` of the installed catalogue, read when they are first asked for."""
    if name == "DEVICES":
        return shipped_hardware().devices
    if name == "LINKS":
        return shipped_hardware().links
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def find_device(name: str) -> Device | None:
    """The installed catalogue's device of this name; None if there is none."""
    return shipped_hardware().find_device(name)


def device_named(name: str) -> Device:
    """The installed catalogue's device of this name.

    Raises:
        SettingError: there is none; the message offers the nearest names.
    """
    return shipped_hardware().device(name)


def find_link(name: str) -> Link | None:
    """The installed catalogue's link of this name; None if there is none."""
    return shipped_hardware().find_link(name)


def link_named(name: str) -> Link:
    """The installed catalogue's link of this name; `40G` is Ethernet of that rate in bit/s.

    Raises:
        SettingError: there is none.
    """
    return shipped_hardware().link(name)
