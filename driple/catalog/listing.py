"""Rows of the catalogue for tables and JSON: what `driple list` prints.

Catalog -> one dataclass per device, link or instance, with units in the names of its fields
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from driple.catalog.catalog import Catalog
from driple.catalog.fields import DEVICE_FACTS
from driple.catalog.model import Device

__all__ = [
    "CheckpointRow",
    "DeviceRow",
    "InstanceRow",
    "LinkRow",
    "SettingRow",
    "list_devices",
    "list_instances",
    "list_links",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceRow:
    """A device, as a table shows it; None for a number that is not known.

    Attributes:
        formats: number formats of its matrix products, such as `("fp32", "fp16")`.
        unknown: facts that no source states.
    """

    name: str
    maker: str
    generation: str
    memory_bytes: float | None
    bytes_per_s: float | None
    fp32_flops: float | None
    fp16_flops: float | None
    formats: tuple[str, ...]
    nvlink: str | None
    unknown: tuple[str, ...]
    source: str
    date: datetime.date | None


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkRow:
    """A link, as a table shows it."""

    name: str
    kind: str
    generation: str | None
    bytes_per_s: float
    within_machine: bool
    source: str
    date: datetime.date | None


@dataclass(frozen=True, kw_only=True, slots=True)
class InstanceRow:
    """An instance, as a table shows it; None for a number that is not known."""

    name: str
    provider: str
    device: str
    num_devices: int
    interconnect: str
    cpu: str
    network_gbps: float | None
    price_per_hour: float | None
    price_region: str | None
    price_date: datetime.date | None
    price_source: str | None
    source: str
    date: datetime.date | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SettingRow:
    """A named setting, as a table shows it.

    Attributes:
        inspectors: presets of which an inspector of the setting is at hand.
    """

    name: str
    device: str
    num_workers: int
    num_servers: int
    network: str
    inspectors: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointRow:
    """A shipped or own checkpoint, as a table shows it."""

    setting: str
    preset: str
    labels: str
    num_workloads: int | None
    file: str


def list_devices(catalog: Catalog) -> tuple[DeviceRow, ...]:
    """Every device, in the order of the catalogue."""
    return tuple(
        DeviceRow(
            name=item.name,
            maker=item.maker,
            generation=item.generation,
            memory_bytes=None if item.find("memory_bytes") is None else item.capacity_bytes,
            bytes_per_s=_known(item, "bytes_per_s"),
            fp32_flops=_known(item, "fp32_flops"),
            fp16_flops=_known(item, "fp16_flops"),
            formats=item.formats,
            nvlink=item.nvlink,
            unknown=tuple(name for name in DEVICE_FACTS if name in item.unknown),
            source=item.source,
            date=item.date,
        )
        for item in catalog.devices.values()
    )


def _known(device: Device, name: str) -> float | None:
    fact = device.find(name)
    return None if fact is None else float(fact)


def list_links(catalog: Catalog) -> tuple[LinkRow, ...]:
    """Every link, in the order of the catalogue."""
    return tuple(
        LinkRow(
            name=item.name,
            kind=item.kind,
            generation=item.generation,
            bytes_per_s=item.bytes_per_s,
            within_machine=item.within_machine,
            source=item.source,
            date=item.date,
        )
        for item in catalog.links.values()
    )


def list_instances(catalog: Catalog, date: datetime.date | None = None) -> tuple[InstanceRow, ...]:
    """Every instance with its newest price, in the order of the catalogue.

    Args:
        catalog: to list.
        date: last day of a price that counts; the newest price by default.
    """
    rows = []
    for instance in catalog.instances.values():
        price = instance.price(date)
        rows.append(
            InstanceRow(
                name=instance.name,
                provider=instance.provider,
                device=instance.device,
                num_devices=instance.num_devices,
                interconnect=instance.interconnect,
                cpu=instance.cpu,
                network_gbps=instance.network_gbps,
                price_per_hour=price.per_hour if price else None,
                price_region=price.region if price else None,
                price_date=price.date if price else None,
                price_source=price.source if price else None,
                source=instance.source,
                date=instance.date,
            )
        )
    return tuple(rows)
