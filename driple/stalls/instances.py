"""Instances that can be rented, with dated prices: the shipped catalogue, and users' own files.

instances.yaml, FILE.yaml ... -> Instance by name; what a later file says wins

Entry point: `read_instances`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from driple.checks import check_number, check_whole
from driple.errors import ConfigError
from driple.hardware import device_named
from driple.settings import Setting
from driple.stalls.plainyaml import MAX_YAML_BYTES, read_plain_yaml
from driple.storedfiles import read_bytes

__all__ = ["Instance", "Price", "choose_instances", "read_instances"]

FORMAT = 1
MOST_DEVICES = 4096  # of an instance; the simulator takes every one as a worker
_NUMBERS = ("vcpus", "device_memory_gb", "memory_gb", "network_gbps")
_FIELDS = frozenset({"name", "device", "devices", "interconnect", "network_is_burst", "prices",
                     "price_per_hour", *_NUMBERS})  # fmt: skip
_NEEDED = ("device", "devices", "interconnect")
_LATE = datetime.date.max


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """What an hour cost.

    Attributes:
        per_hour: in US dollars, or in the currency of the user's file.
        date: on which it was so; None for a price of the user's own, which always counts.
        source: of the price, in words.
    """

    per_hour: float
    date: datetime.date | None
    source: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Instance:
    """A machine to rent (paper, Table I).

    Attributes:
        name: as its provider calls it.
        device: in the catalogue of devices.
        devices: that it has.
        interconnect: of its devices: `PCIe`, `NVLink`, or a link of the catalogue.
        network_gbps: of its network, Gbit/s; 0 if nobody says.
        network_is_burst: the network is sold as up to that rate.
        vcpus: virtual CPUs; 0 if nobody says.
        device_memory_gb: of all devices together; 0 if nobody says.
        memory_gb: main memory; 0 if nobody says.
        prices: that are known.
    """

    name: str
    device: str
    devices: int
    interconnect: str
    network_gbps: float = 0.0
    network_is_burst: bool = False
    vcpus: float = 0.0
    device_memory_gb: float = 0.0
    memory_gb: float = 0.0
    prices: tuple[Price, ...] = field(default=())

    def price(self, date: datetime.date | None = None) -> Price | None:
        """The newest price, or the newest up to a date; the user's own before all."""
        own = [price for price in self.prices if price.date is None]
        if own:
            return own[-1]
        limit = date or _LATE
        known = [price for price in self.prices if (price.date or _LATE) <= limit]
        return max(known, key=lambda price: price.date or _LATE, default=None)

    def setting(self, machines: int = 1) -> Setting:
        """Ring all-reduce over all devices of one such machine, or of several.

        Raises:
            ConfigError: several, and nobody says what network they have.
        """
        if machines > 1 and not self.network_gbps:
            raise ConfigError(
                f"{self.name} has no network_gbps, which {machines} of them need; add it to your "
                "--instances file"
            )
        return Setting(
            device=self.device,
            num_servers=0,
            num_workers=self.devices * machines,
            network=self.interconnect if machines == 1 else f"{self.network_gbps:g}G",
        )


def read_instances(own_files: Sequence[Path] = ()) -> dict[str, Instance]:
    """The shipped catalogue and the user's files, by name.

    Args:
        own_files: later ones win.

    Raises:
        ConfigError: a file that cannot be read, or an instance that cannot be.
        MissingExtraError: PyYAML is not installed.
    """
    shipped = files("driple.stalls") / "instances.yaml"
    found = _merged({}, shipped.read_text(encoding="utf-8"), "instances.yaml", own=False)
    for file in own_files:
        try:
            text = read_bytes(file, MAX_YAML_BYTES).decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--instances {file} cannot be read ({error})") from error
        found = _merged(found, text, str(file), own=True)
    return {name: _instance(name, fields, where) for name, (fields, where) in found.items()}


def choose_instances(known: Mapping[str, Instance], names: Sequence[str]) -> list[Instance]:
    """Instances of these names, all if there are none; `p3` stands for all that begin with `p3.`.

    Raises:
        ConfigError: nothing is called so.
    """
    if not names:
        return [*known.values()]
    chosen: dict[str, Instance] = {}
    for name in names:
        fitting = [key for key in known if key == name or key.startswith(f"{name}.")]
        if not fitting:
            raise ConfigError(
                f"no instance is called '{name}'; there are {', '.join(known)}, and you can add "
                "your own with --instances FILE.yaml"
            )
        chosen |= {key: known[key] for key in fitting}
    return [*chosen.values()]


_Raw = dict[str, tuple[dict[str, Any], str]]


def _merged(before: _Raw, text: str, where: str, *, own: bool) -> _Raw:
    """What a file adds to the instances so far; fields of the same instance are replaced."""
    found = read_plain_yaml(text, where)
    if not isinstance(found, dict) or not isinstance(found.get("instances"), list):
        raise ConfigError(
            f"{where} needs a list called 'instances', of entries such as 'name: p3.2xlarge'"
        )
    if found.get("format", FORMAT) != FORMAT:
        raise ConfigError(f"{where} has format {found['format']!r}; this Driple reads {FORMAT}")
    sources = found.get("sources") or {}
    if not isinstance(sources, dict):
        raise ConfigError(f"{where}: sources must be names with their texts, got {sources!r}")
    merged = dict(before)
    for entry in found["instances"]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigError(f"{where}: an instance without a name: {entry!r}")
        name = entry["name"]
        odd = set(entry) - _FIELDS
        if odd:
            raise ConfigError(
                f"{where}: {name} has unknown fields {', '.join(sorted(map(str, odd)))}; known "
                f"are {', '.join(sorted(_FIELDS))}"
            )
        fields = {key: value for key, value in entry.items() if key not in {"name", "prices"}}
        fields.pop("price_per_hour", None)
        prices = _prices(entry, sources, f"{where}: {name}", own=own)
        old, _ = merged.get(name, ({}, ""))
        kept = prices or old.get("prices", ())
        merged[name] = ({**old, **fields, "prices": kept}, where)
    return merged


def _prices(
    entry: Mapping[str, Any], sources: Mapping[str, object], where: str, *, own: bool
) -> tuple[Price, ...]:
    if "price_per_hour" in entry:
        check_number(f"price_per_hour of {where}", entry["price_per_hour"], above=0)
        return (Price(per_hour=float(entry["price_per_hour"]), date=None, source=where),)
    prices = []
    items = entry.get("prices") or []
    if not isinstance(items, list):
        raise ConfigError(f"{where}: prices must be a list of per_hour and date, got {items!r}")
    for item in items:
        if not isinstance(item, dict) or "per_hour" not in item:
            raise ConfigError(f"{where}: a price needs per_hour, got {item!r}")
        check_number(f"per_hour of {where}", item["per_hour"], above=0)
        date = item.get("date")
        # A time of day is a date to Python, but cannot be compared with one.
        if date is not None and type(date) is not datetime.date:
            raise ConfigError(f"{where}: a price's date must be like 2026-08-26, got {date!r}")
        if date is None and not own:
            raise ConfigError(f"{where}: a price without a date")
        source = str(item.get("source", where))
        source = str(sources.get(source, source))
        prices.append(Price(per_hour=float(item["per_hour"]), date=date, source=source))
    return tuple(prices)


def _instance(name: str, fields: Mapping[str, Any], where: str) -> Instance:
    """An instance, checked."""
    place = f"{where}: {name}"
    missing = [key for key in _NEEDED if key not in fields]
    if missing:
        raise ConfigError(f"{place} lacks {', '.join(missing)}")
    check_whole(f"devices of {place}", fields["devices"], 1, MOST_DEVICES)
    for key in ("device", "interconnect"):
        if not isinstance(fields[key], str):
            raise ConfigError(f"{key} of {place} must be a name, got {fields[key]!r}")
    is_burst = fields.get("network_is_burst", False)
    if not isinstance(is_burst, bool):
        raise ConfigError(f"network_is_burst of {place} must be true or false, got {is_burst!r}")
    for key in _NUMBERS:
        if key in fields:
            check_number(f"{key} of {place}", fields[key], least=0)
    device = device_named(fields["device"]).name
    return Instance(**{**fields, "name": name, "device": device})
