"""Objects of the catalogue from rows: what a row refers to must be there.

rows by table -> generations -> devices, links -> instances
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from driple.catalog.fields import DEVICE_FACTS, TUNING_FACTS
from driple.catalog.model import Device, Fact, Generation, Instance, Link, Price
from driple.catalog.rows import Row
from driple.errors import ConfigError

__all__ = [
    "build_devices",
    "build_generations",
    "build_instances",
    "build_links",
    "index",
    "plain",
]

Item = TypeVar("Item", Device, Link)

_MAX_PATTERN = 200  # characters of a regular expression


def plain(name: str) -> str:
    """A name without blanks, dashes and underscores, in lower case."""
    return re.sub(r"[\s_-]", "", name).lower()


def index(items: Mapping[str, Item]) -> dict[str, Item]:
    """Devices or links by plain name and alias.

    A name of its own wins over an alias, and a later alias over an earlier one, so that a user's
    device may take the alias of another.
    """
    by_alias = {plain(word): item for item in items.values() for word in item.aliases}
    return by_alias | {plain(name): item for name, item in items.items()}


def build_generations(rows: Mapping[str, Row]) -> dict[str, Generation]:
    """Generations by name, oldest first.

    Raises:
        ConfigError: one lacks its maker or order, or a pattern is no regular expression.
    """
    generations = [_generation(row) for row in rows.values()]
    return {item.name: item for item in sorted(generations, key=lambda item: item.order)}


def _generation(row: Row) -> Generation:
    where = f"{row.file}: generation {row.name}"
    _need(row, where, ("maker", "order"))
    for key in ("datacentre_names", "other_names"):
        _check_pattern(row.text(key), f"{key} of {where}")
    return Generation(
        name=row.name,
        maker=row.text("maker"),
        order=row.required("order"),
        datacentre_names=row.text("datacentre_names"),
        other_names=row.text("other_names"),
        tensor_sides=int(row.number("tensor_sides") or 1),
        source=row.text("source") or row.file,
        date=row.date(),
    )


def _check_pattern(pattern: str, named: str) -> None:
    if len(pattern) > _MAX_PATTERN:
        raise ConfigError(f"{named} has over {_MAX_PATTERN} characters; give a shorter pattern")
    try:
        re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{named} is no regular expression ({error}): {pattern!r}") from error


def build_devices(
    rows: Mapping[str, Row], generations: Mapping[str, Generation], links: Mapping[str, Link]
) -> dict[str, Device]:
    """Devices by name, in the order of the rows.

    Raises:
        ConfigError: a row names a generation or a link that there is not, or two devices share a
            name.
    """
    devices = {row.name: _device(row, generations, links) for row in rows.values()}
    _check_names(devices, rows)
    return devices


def _device(row: Row, generations: Mapping[str, Generation], links: Mapping[str, Link]) -> Device:
    where = f"{row.file}: device {row.name}"
    _need(row, where, ("generation",))
    generation = generations.get(row.text("generation"))
    if generation is None:
        raise ConfigError(
            f"generation of {where} is '{row.text('generation')}', which is not in the catalogue; "
            f"take one of {', '.join(generations)}, or add a row [[generations]]"
        )
    for key in ("nvlink", "host_link"):
        name = row.text(key)
        if name and name not in links:
            raise ConfigError(
                f"{key} of {where} is '{name}', which is no link of the catalogue; there are "
                f"{', '.join(link for link in links if links[link].within_machine)}, and you can "
                "add a row [[links]]"
            )
    facts: dict[str, Fact] = {}
    for key in (*DEVICE_FACTS, *TUNING_FACTS):
        value = row.values.get(key)
        if isinstance(value, float | int | str):
            facts[key] = value
    return Device(
        name=row.name,
        architecture=generation,
        aliases=row.texts("aliases"),
        facts=facts,
        unknown=frozenset(row.texts("unknown")),
        origin=row.file,
        source=row.text("source") or row.file,
        date=row.date(),
    )


def _check_names(items: Mapping[str, Item], rows: Mapping[str, Row]) -> None:
    """Refuse two names that are one, and an alias that is the name of another.

    A new device or link of the user's may have the alias of a shipped one for its name.
    """
    owners: dict[str, str] = {}
    for name in items:
        other = owners.setdefault(plain(name), name)
        if other != name:
            raise ConfigError(
                f"{rows[name].file}: '{name}' and '{other}' are one name without blanks and "
                "dashes; rename one"
            )
    for name, entry in items.items():
        for alias in entry.aliases:
            other = owners.get(plain(alias), name)
            if other != name and (rows[name].own or not rows[other].own):
                raise ConfigError(
                    f"aliases of {rows[name].file}, {name}: '{alias}' is the name of {other}; "
                    "take it off"
                )


def build_links(rows: Mapping[str, Row]) -> dict[str, Link]:
    """Links by name, in the order of the rows.

    Raises:
        ConfigError: a row lacks kind, rate, or whether it is within a machine.
    """
    links = {row.name: _link(row) for row in rows.values()}
    _check_names(links, rows)
    return links


def _link(row: Row) -> Link:
    _need(row, f"{row.file}: link {row.name}", ("kind", "bytes_per_s", "within_machine"))
    return Link(
        name=row.name,
        kind=row.text("kind"),
        bytes_per_s=row.required("bytes_per_s"),
        within_machine=bool(row.values["within_machine"]),
        through_host=bool(row.values.get("through_host", False)),
        generation=row.text("generation") or None,
        aliases=row.texts("aliases"),
        source=row.text("source") or row.file,
        date=row.date(),
    )


def build_instances(
    rows: Mapping[str, Row], device_names: Mapping[str, str]
) -> dict[str, Instance]:
    """Instances by name, in the order of the rows.

    Args:
        rows: by name.
        device_names: name in the catalogue of devices, by plain name or alias.

    Raises:
        ConfigError: a row lacks device, num_devices or interconnect, or has no such device.
    """
    return {row.name: _instance(row, device_names) for row in rows.values()}


def _instance(row: Row, device_names: Mapping[str, str]) -> Instance:
    where = f"{row.file}: instance {row.name}"
    _need(row, where, ("device", "num_devices", "interconnect"))
    device = device_names.get(plain(row.text("device")))
    if device is None:
        raise ConfigError(
            f"device of {where} is '{row.text('device')}', which is not in the catalogue; add a "
            "row [[devices]]"
        )
    return Instance(
        name=row.name,
        provider=row.text("provider"),
        device=device,
        num_devices=int(row.required("num_devices")),
        interconnect=row.text("interconnect"),
        network_gbps=row.number("network_gbps"),
        network_is_burst=bool(row.values.get("network_is_burst", False)),
        rdma=bool(row.values.get("rdma", False)),
        cpu=row.text("cpu"),
        vcpus=row.number("vcpus"),
        device_memory_gb=row.number("device_memory_gb"),
        memory_gb=row.number("memory_gb"),
        prices=tuple(
            Price(
                per_hour=price.per_hour,
                date=price.date,
                region=price.region,
                source=price.source,
                spot=price.spot,
            )
            for price in row.prices
        ),
        source=row.text("source") or row.file,
        date=row.date(),
    )


def _need(row: Row, where: str, names: tuple[str, ...]) -> None:
    missing = [name for name in names if name not in row.values]
    if missing:
        raise ConfigError(f"{where} has no {', '.join(missing)}; add it")
