"""Cloud instances: which a user names, and what setting one or several make.

Instance of the catalogue -> Setting of one or several machines
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from driple.catalog import Instance, shipped_hardware
from driple.catalog.catalog import Catalog
from driple.cluster.names import machines_setting
from driple.cluster.setting import Setting
from driple.errors import ConfigError

__all__ = [
    "Instance",
    "choose_instances",
    "device_alone",
    "instance_setting",
]

_MOST_NAMED = 20  # instances that an error lists


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
            f"{instance.name} has no network_gbps, which {machines} of them need; add it to a "
            "file of your own (--catalog)"
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
                "and others, and you can add your own with --catalog FILE.toml"
            )
        chosen |= {key: known[key] for key in fitting}
    return [*chosen.values()]
