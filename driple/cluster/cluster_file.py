"""A cluster described in a YAML file.

    machines:
      - {count: 4, devices: 8, device: H100, link: NVLink}
    network: 400G          # or 25G-TCP, 25G-RDMA
    efficiency: 0.8        # optional; share of the network's rate that a large all-reduce reaches
    scheme: ddp            # optional; ps with 'servers: 2' for parameter servers

Entry point: `read_cluster_file`. The reader is bounded and takes plain values only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from driple.catalog import Link
from driple.catalog.catalog import Catalog
from driple.catalog.model import MOST_EFFICIENCY
from driple.cluster.cluster import Cluster, Host, Machine
from driple.cluster.links import default_link_name, link_spelling, network_link, within_link
from driple.cluster.schemes import SchemeChoice
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.plainyaml import MAX_YAML_BYTES, read_plain_yaml
from driple.storedfiles import read_bytes

__all__ = ["read_cluster_file"]

_FIELDS = ("machines", "network", "efficiency", "scheme", "servers")
_MACHINE_FIELDS = ("count", "devices", "device", "link", "efficiency", "cpus", "memory_gb")
_MOST = 9_999  # machines, or devices of one
_MOST_DEVICES = 10_000
_GB = 1e9


def read_cluster_file(path: Path, catalog: Catalog) -> Setting:
    """The setting that a file describes.

    Args:
        path: of the YAML file.
        catalog: devices and links.

    Raises:
        ConfigError: a file that cannot be read, or a field that cannot be.
        SettingError: no such device or link.
        CatalogError: the catalogue lacks a fact about a device.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        text = read_bytes(path, MAX_YAML_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cluster file {path} cannot be read ({error})") from error
    content = read_plain_yaml(text, str(path))
    fields = _mapping(content, _FIELDS, str(path))
    rows = fields.get("machines")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(
            f"{path} needs a list called 'machines', of entries such as "
            "'{count: 4, devices: 8, device: H100, link: NVLink}'"
        )
    machines: list[Machine] = []
    for row in rows:
        machines += _machines(row, catalog, str(path))
        if sum(len(machine.devices) for machine in machines) > _MOST_DEVICES:
            raise ConfigError(f"{path} has over {_MOST_DEVICES} devices; describe fewer")
    network = _text(fields, "network", str(path))
    if len(machines) > 1 and not network:
        raise ConfigError(
            f"{path} has {len(machines)} machines and no network; add one, such as 'network: 100G'"
        )
    joins = network_link(catalog, network) if network else None
    cluster = Cluster(
        machines=tuple(machines), network=_with_efficiency(joins, fields, "network", str(path))
    )
    servers = _whole(fields, "servers", str(path)) if "servers" in fields else 0
    return Setting(
        name=str(path),  # what names it again
        scheme=SchemeChoice(
            name=_text(fields, "scheme", str(path)) or SchemeChoice.usual(servers).name,
            num_servers=servers,
        ),
        worker=cluster.devices[0],
        num_workers=len(cluster.devices),
        homogeneous=len(cluster.kinds) == 1,
        network="+".join(link.name for link in (cluster.link, cluster.network) if link),
        described=cluster,
        states_scheme="scheme" in fields or servers > 0,
    )


def _machines(row: object, catalog: Catalog, where: str) -> list[Machine]:
    """The machines of one entry."""
    fields = _mapping(row, _MACHINE_FIELDS, f"a machine of {where}")
    device = catalog.device(_text(fields, "device", where) or _lacks("device", where))
    count, devices = (_whole(fields, name, where) for name in ("count", "devices"))
    name = _text(fields, "link", where) or (default_link_name(device, devices))
    host = Host(num_cpus=_amount(fields, "cpus", where), memory_bytes=None)
    memory_gb = _amount(fields, "memory_gb", where)
    if memory_gb is not None:
        host = Host(num_cpus=host.num_cpus, memory_bytes=memory_gb * _GB)
    link = within_link(catalog, device, link_spelling(catalog, name)) if devices > 1 else None
    link = _with_efficiency(link, fields, "link", where)
    return [Machine(devices=(device,) * devices, link=link, host=host)] * count


def _with_efficiency(
    link: Link | None, fields: dict[str, object], name: str, where: str
) -> Link | None:
    """The link with the efficiency of these fields, if they state one."""
    share = _amount(fields, "efficiency", where)
    if share is None:
        return link
    if link is None:
        raise ConfigError(
            f"efficiency of {where} belongs to a {name}, and there is none; leave it out"
        )
    if share > MOST_EFFICIENCY:
        raise ConfigError(
            f"efficiency of {where} must be a share of the rate of {link.name}, such as 0.8, got "
            f"{share:g}"
        )
    return replace(link, efficiency=share)


def _lacks(name: str, where: str) -> str:
    raise ConfigError(f"a machine of {where} has no {name}; add it, such as 'device: H100'")


def _mapping(value: object, known: tuple[str, ...], where: str) -> dict[str, object]:
    """A mapping with these fields only."""
    if value is None:
        raise ConfigError(f"{where} is empty; give {', '.join(known)}, not all of which are needed")
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must have the fields {', '.join(known)}, got {value!r:.80}")
    odd = [key for key in value if key not in known]
    if odd:
        raise ConfigError(f"{where} has an unknown field {odd[0]!r}; known are {', '.join(known)}")
    return value


def _text(fields: dict[str, object], name: str, where: str) -> str:
    """A text, or a number that is a name such as 3090; empty if it is not given."""
    value = fields.get(name, "")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ConfigError(f"{name} of {where} must be a text, got {value!r:.80}")
    return str(value)


def _whole(fields: dict[str, object], name: str, where: str) -> int:
    """A count, 1 if it is not given: one machine, one device."""
    value = fields.get(name, 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
        raise ConfigError(
            f"{name} of {where} must be a whole number of 1 to {_MOST}, got {value!r:.80}"
        )
    return value


def _amount(fields: dict[str, object], name: str, where: str) -> float | None:
    """A number above 0, None if it is not given."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigError(f"{name} of {where} must be a number above 0, got {value!r:.80}")
    return float(value)
