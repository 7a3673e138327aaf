"""Cloud instances: the shipped catalogue and users' own YAML files.

shipped catalogue, FILE.yaml ... -> Instance by name -> Setting of one or several machines

Entry point: `read_instances`. A YAML file has the fields of `[[instances]]` in a catalogue file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from driple.catalog import Instance, shipped_catalog, shipped_hardware
from driple.catalog.catalog import Catalog, with_instances
from driple.catalog.rows import Row, parse_table
from driple.cluster.names import machines_setting
from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.plainyaml import MAX_YAML_BYTES, read_plain_yaml
from driple.storedfiles import read_bytes

__all__ = [
    "Instance",
    "choose_instances",
    "device_alone",
    "instance_setting",
    "read_instances",
]

FORMAT = 1
_MOST_NAMED = 20  # maximum number of instances in an error
# Fields that a YAML file may give as 0, meaning unknown.
_NUMBERS = ("vcpus", "device_memory_gb", "memory_gb", "network_gbps")


def read_instances(own_files: Sequence[Path] = ()) -> Mapping[str, Instance]:
    """The shipped catalogue and the user's YAML files, by name.

    Args:
        own_files: the user's files; later ones take precedence.

    Raises:
        ConfigError: a file or an instance cannot be read.
        MissingExtraError: PyYAML is not installed.
    """
    if not own_files:
        return shipped_catalog().instances
    return with_instances([_rows(file) for file in own_files])


def instance_setting(
    instance: Instance, machines: int = 1, catalog: Catalog | None = None
) -> Setting:
    """Setting with ring all-reduce over all devices of one or several machines.

    Args:
        instance: the instance.
        machines: number of instances.
        catalog: devices and links; the shipped catalogue by default.

    Raises:
        ConfigError: several machines, and their network is unknown.
    """
    if machines > 1 and instance.network_gbps is None:
        raise ConfigError(
            f"{instance.name} has no network_gbps, which {machines} of them need; add it to your "
            "--instances file"
        )
    known = catalog or shipped_hardware()
    device = known.device(instance.device)
    several = instance.num_devices > 1
    if machines > 1 and several:
        links = f"{instance.interconnect}+{instance.network_gbps:g}G"
        return machines_setting(known, device, machines, instance.num_devices, links)
    network = f"{instance.network_gbps:g}G" if machines > 1 else instance.interconnect
    return Setting.parse(
        f"{device.name}-R{instance.num_devices * machines}/ho-{network}", catalog=known
    )


def device_alone(instance: Instance, catalog: Catalog | None = None) -> Setting:
    """Setting with one device of an instance, without communication.

    Args:
        instance: the instance.
        catalog: devices and links; the shipped catalogue by default.
    """
    known = catalog or shipped_hardware()
    return Setting.parse(f"{instance.device}-R1/ho-{instance.interconnect}", catalog=known)


def choose_instances(known: Mapping[str, Instance], names: Sequence[str]) -> list[Instance]:
    """Instances of these names, all without names; `p3` selects all that begin with `p3.`.

    Raises:
        ConfigError: no instance has this name.
    """
    if not names:
        return [*known.values()]
    chosen: dict[str, Instance] = {}
    for name in names:
        fitting = [key for key in known if key == name or key.startswith(f"{name}.")]
        if not fitting:
            raise ConfigError(
                f"no instance is called '{name}'; there are {', '.join([*known][:_MOST_NAMED])} "
                "and others, and you can add your own with --instances FILE.yaml"
            )
        chosen |= {key: known[key] for key in fitting}
    return [*chosen.values()]


def _rows(file: Path) -> list[Row]:
    """The rows of a user's YAML file."""
    try:
        text = read_bytes(file, MAX_YAML_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--instances {file} cannot be read ({error})") from error
    content = read_plain_yaml(text, str(file))
    if not isinstance(content, dict) or not isinstance(content.get("instances"), list):
        raise ConfigError(
            f"{file} needs a list called 'instances', of entries such as 'name: p3.2xlarge'"
        )
    if content.get("format", FORMAT) != FORMAT:
        raise ConfigError(f"{file} has format {content['format']!r}; this Driple reads {FORMAT}")
    sources = content.get("sources") or {}
    if not isinstance(sources, dict):
        raise ConfigError(f"{file}: sources must be names with their texts, got {sources!r:.80}")
    entries = [_renamed(entry) for entry in content["instances"]]
    texts = {str(name): str(text) for name, text in sources.items()}
    return parse_table(entries, "instances", str(file), texts)


def _renamed(entry: object) -> object:
    """An entry with the catalogue's field names, without unknown fields."""
    if not isinstance(entry, dict):
        return entry
    named = {"num_devices" if key == "devices" else key: value for key, value in entry.items()}
    return {
        key: value
        for key, value in named.items()
        if not (key in _NUMBERS and type(value) in {int, float} and value == 0)
        and not (key == "prices" and value is None)
    }
