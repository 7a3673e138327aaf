"""From a name to a setting: the paper's names, machines x devices, instances and short names.

    "V100" -> V100-P1w2/ho-PCIe      "8xH100" -> 8xH100/NVLink      "4xp5.48xlarge" -> 4 machines
    "4x8xH100+8x400G" -> 4x8xH100/NVLink+8x400G

Entry point: `setting_named`, which `Setting.parse` calls.
"""

from __future__ import annotations

import difflib
import math
import re
from pathlib import Path

from driple.catalog import Device, Instance, shipped_catalog, shipped_hardware
from driple.catalog.catalog import Catalog
from driple.catalog.model import TCP
from driple.cluster.cluster import MOST_DEVICES, Cluster, Host, Machine
from driple.cluster.links import default_link_name, link_spelling, network_link, within_link
from driple.cluster.paper_names import paper_setting
from driple.cluster.schemes import SchemeChoice
from driple.cluster.setting import KNOWN_SETTINGS, Setting, UnknownCluster
from driple.errors import CatalogError, SettingError

__all__ = ["instance_cluster_setting", "machines_name", "machines_setting", "setting_named"]

_MACHINES = re.compile(
    r"(?P<counts>(?:\d{1,99}x){0,2})(?P<what>[A-Za-z0-9][A-Za-z0-9._ -]*?)"
    r"(?:/(?P<links>[A-Za-z0-9.-]+(?:\+[A-Za-z0-9.-]+)?)|(?P<network>\+[A-Za-z0-9.-]+))?(?:@(?P<scheme>[a-z0-9_-]+))?",
    re.IGNORECASE,
)
# The device at the beginning of a name that may be wrong elsewhere.
_DEVICE = re.compile(
    r"[A-Za-z0-9. ]+(?:-[A-Za-z0-9.]+)*?(?=-[PR]\d+(?:w\d+)?(?:/|$)|/|$)", re.IGNORECASE
)
_FILES = (".yaml", ".yml")
_GB = 1e9


def setting_named(text: str, catalog: Catalog | None = None) -> Setting:
    """The setting with this full or short name, or in this file.

    Args:
        text: a name, or the path of a `.yaml` file.
        catalog: devices, links and instances; as installed by default.

    Raises:
        SettingError: no such setting; the message offers the nearest known names.
        ConfigError: a file that cannot be read.
    """
    wanted = text.strip()
    known = catalog or shipped_hardware()
    if wanted.lower().endswith(_FILES):
        from driple.cluster.cluster_file import read_cluster_file

        return read_cluster_file(Path(wanted), known)
    device = known.find_device(wanted)
    if device is not None and device.default_setting is None:
        return machines_setting(known, device)
    short = device.default_setting if device is not None else _resolve_short(wanted, known)
    name, _, scheme = (short or wanted).partition("@")
    setting = paper_setting(name, known)
    if setting is not None:
        return setting.with_scheme(scheme.lower()) if scheme else setting
    setting = _new_name(wanted, known, catalog)
    if setting is None:
        raise SettingError(_no_such(wanted, known, catalog))
    return setting


def _new_name(wanted: str, known: Catalog, catalog: Catalog | None) -> Setting | None:
    """Machines x devices, or instances; None if it is no such name."""
    match = _MACHINES.fullmatch(wanted)
    if match is None:
        return None
    counts = [int(word) for word in match["counts"].lower().split("x")[:-1]]
    if 0 in counts:
        raise SettingError(f"setting '{wanted}' has no machine or no device; give one at least")
    if math.prod(counts) > MOST_DEVICES:
        raise SettingError(f"setting '{wanted}' has over {MOST_DEVICES:,} devices; give fewer")
    device = known.find_device(match["what"])
    links = match["links"] or match["network"] or ""
    if device is not None and (counts or links or match["scheme"]):
        num_machines, num_devices = ([1, 1, *counts])[-2:]
        setting = machines_setting(known, device, num_machines, num_devices, links=links)
        return setting.with_scheme(match["scheme"].lower()) if match["scheme"] else setting
    if device is not None or links or len(counts) > 1:
        return None
    instances = (catalog or shipped_catalog()).instances
    by_lower = {name.lower(): item for name, item in instances.items()}
    instance = by_lower.get(match["what"].lower())
    if instance is None:
        return None
    setting = instance_cluster_setting(known, instance, counts[0] if counts else 1)
    return setting.with_scheme(match["scheme"].lower()) if match["scheme"] else setting


def machines_name(num_machines: int, num_devices: int, device: str, links: str) -> str:
    """Such as `4x8xH100/NVLink+400G`, and `8xH100` without links."""
    count = f"{num_machines}x{num_devices}x" if num_machines > 1 else f"{num_devices}x"
    return f"{count}{device}/{links}" if links else f"{count}{device}"


def machines_setting(
    catalog: Catalog, device: Device, num_machines: int = 1, num_devices: int = 1, links: str = ""
) -> Setting:
    """All-reduce over machines that are alike.

    Args:
        catalog: devices and links.
        device: of every machine.
        num_machines: how many machines.
        num_devices: devices of each.
        links: `NVLink+400G`: within and between; one of them where the other is clear; `+400G` is
            the network alone.

    Raises:
        SettingError: a link that does not fit, or no network between machines.
    """
    within, network = _two_links(catalog, links, num_machines, num_devices)
    if num_devices > 1 and not within:
        within = default_link_name(device, num_devices)
    words = "+".join(
        link_spelling(catalog, one)
        for one in (within if num_devices > 1 or within else "", network)
        if one
    )
    name = machines_name(num_machines, num_devices, device.name, words)
    if num_machines > 1 and not network:
        example = f"{within or ''}{'+' if within else ''}100G"
        raise SettingError(
            f"setting '{name}' has no network between its {num_machines} machines; add one: "
            f"{machines_name(num_machines, num_devices, device.name, example)}"
        )
    described: Cluster | UnknownCluster
    try:
        link = within_link(catalog, device, link_spelling(catalog, within)) if within else None
        described = Cluster(
            machines=(Machine(devices=(device,) * num_devices, link=link),) * num_machines,
            network=network_link(catalog, network) if network else None,
        )
    except CatalogError as error:
        described = UnknownCluster(reason=str(error), lacks_fact=True)
    return Setting(
        name=name,
        scheme=SchemeChoice.usual(),
        worker=device,
        num_workers=num_machines * num_devices,
        network=words,
        described=described,
    )


def _two_links(
    catalog: Catalog, links: str, num_machines: int, num_devices: int
) -> tuple[str, str]:
    """Names of the link within machines and of the network; empty where there is none."""
    first, plus, second = links.partition("+")
    if plus or not first:
        return first, second
    joins = catalog.find_link(first)
    is_network = joins is not None and not joins.within_machine
    if is_network and num_machines == 1:
        raise SettingError(
            f"{first} joins machines, and there is one; write {num_devices}x1x... for machines of "
            "one device each"
        )
    return ("", first) if is_network else (first, "")


def instance_cluster_setting(
    catalog: Catalog, instance: Instance, num_machines: int = 1
) -> Setting:
    """All-reduce over all devices of one instance, or of several.

    Args:
        catalog: devices and links.
        instance: to rent.
        num_machines: how many of them.

    Raises:
        SettingError: several, and their network is not known.
        CatalogError: the catalogue lacks a fact about the device's links.
    """
    if num_machines > 1 and instance.network_gbps is None:
        raise SettingError(
            f"{instance.name} has no network_gbps, which {num_machines} of them need; add it in a "
            "catalogue file of your own"
        )
    device = catalog.device(instance.device)
    several = instance.num_devices > 1
    link = within_link(catalog, device, instance.interconnect) if several else None
    rate = f"{instance.network_gbps:g}G" if num_machines > 1 else ""
    rate += f"-{TCP}" if rate and not instance.rdma else ""
    host = Host(
        num_cpus=instance.vcpus,
        memory_bytes=None if instance.memory_gb is None else instance.memory_gb * _GB,
    )
    machine = Machine(devices=(device,) * instance.num_devices, link=link, host=host)
    words = (instance.interconnect if several else "", rate)
    return Setting(
        name=instance.name if num_machines == 1 else f"{num_machines}x{instance.name}",
        scheme=SchemeChoice.usual(),
        worker=device,
        num_workers=instance.num_devices * num_machines,
        network="+".join(filter(None, words)),
        described=Cluster(
            machines=(machine,) * num_machines,
            network=network_link(catalog, rate) if rate else None,
        ),
    )


def _resolve_short(wanted: str, catalog: Catalog) -> str | None:
    """The full name that a short one stands for; None if it is no prefix of a known one."""
    begins = [name for name in KNOWN_SETTINGS if _is_short_for(wanted, name)]
    usual = {device.default_setting for device in catalog.devices.values()}
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


def _no_such(wanted: str, known: Catalog, catalog: Catalog | None) -> str:
    """One line: what was found, and the nearest names, of the same kind of device."""
    new, begin = _MACHINES.fullmatch(wanted), _DEVICE.match(wanted)
    words = [new["what"] if new else "", begin[0] if begin else ""]
    is_new = not any(word and known.find_device(word) for word in words)
    own = " A row [[devices]] in a catalogue file of your own adds a device." if is_new else ""
    return (
        f"no setting is called '{wanted}'; did you mean "
        f"{', '.join(_nearest_names(wanted, known, catalog))}?{own}"
    )


def _nearest_names(wanted: str, known: Catalog, catalog: Catalog | None) -> list[str]:
    """Names that a user may have meant."""
    new = _MACHINES.fullmatch(wanted)
    if new is not None and not new["links"] and "." in new["what"]:
        instances = (catalog or shipped_catalog()).instances
        near = difflib.get_close_matches(new["what"], instances, n=3, cutoff=0.6)
        if near:
            return [f"{new['counts']}{name}" for name in near]
    if new is not None and new["counts"]:
        return [f"{new['counts']}{name}" for name in known.nearest_devices(new["what"])]
    begin = _DEVICE.match(wanted)
    device = begin[0] if begin else ""
    own = known.find_device(device)
    if device and own is None:
        return [_usual_setting(name) for name in known.nearest_devices(device)]
    if own and not any(name.startswith(f"{own.name}-") for name in KNOWN_SETTINGS):
        return [f"{own.name}-{topology}/ho-PCIe" for topology in ("R1", "R8", "P1w2")]
    on_cpu = device.upper().startswith("CPU")
    by_lower = {
        name.lower(): name
        for name in KNOWN_SETTINGS
        if not device or name.startswith("CPU") == on_cpu
    }
    close = difflib.get_close_matches(wanted.lower(), by_lower, n=3, cutoff=0.3)
    return [by_lower[name] for name in close] or list(by_lower.values())[:3]


def _usual_setting(device: str) -> str:
    """The first known setting of a device; one with one server where none is known."""
    known = [name for name in KNOWN_SETTINGS if name.startswith(f"{device}-")]
    return known[0] if known else f"{device}-P1w2/ho-PCIe"
