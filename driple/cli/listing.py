"""`driple list`: devices, links, instances, settings and checkpoints, as tables or JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driple.checks import check_choice
from driple.cli.outputs import JsonOption
from driple.errors import ConfigError
from driple.render.show import note, print_json, print_table

if TYPE_CHECKING:
    from driple.api.json_types.commands import ListJson
    from driple.catalog.catalog import Catalog
    from driple.catalog.listing import CheckpointRow, DeviceRow, InstanceRow, LinkRow, SettingRow

__all__ = ["list_"]

_UNKNOWN = "unknown"


def list_(
    kind: Annotated[str, typer.Argument(help="devices, links, instances, settings or checkpoints")],
    text: Annotated[str, typer.Argument(help="only rows that contain this text, in any case")] = "",
    catalog: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="your own devices, links, instances and prices (.toml), which win"
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List what Driple knows by name: devices, links, instances, settings, checkpoints.

    Examples:

      driple list devices AMD

      driple list instances H100 --json

      driple list devices --catalog mine.toml
    """
    check_choice("the kind of list", kind, _KINDS)
    from driple.catalog.catalog import read_catalog

    rows = _KINDS[kind].rows(read_catalog(catalog or ()))
    rows = [row for row in rows if text.lower() in " ".join(_KINDS[kind].cells(row)).lower()]
    if not rows:
        raise ConfigError(f"none of the {kind} contains '{text}'; driple list {kind} shows all")
    if json:
        listed: ListJson = {"kind": kind, "rows": rows}
        print_json(listed, "list")
        return
    print_table(_KINDS[kind].header, [_KINDS[kind].cells(row) for row in rows])
    note(f"{len(rows)} {kind}; sources and dates are in the output of --json")


def _devices(catalog: Catalog) -> Sequence[DeviceRow]:
    from driple.catalog.listing import list_devices

    return list_devices(catalog)


def _device_cells(row: DeviceRow) -> list[str]:
    return [
        row.name,
        row.maker,
        row.generation,
        _scaled(row.memory_bytes, 2**30, "GiB"),
        _scaled(row.bytes_per_s, 1e9, "GB/s"),
        _scaled(row.fp32_flops, 1e12, ""),
        _scaled(row.fp16_flops, 1e12, ""),
    ]


def _links(catalog: Catalog) -> Sequence[LinkRow]:
    from driple.catalog.listing import list_links

    return list_links(catalog)


def _link_cells(row: LinkRow) -> list[str]:
    place = "within a machine" if row.within_machine else "between machines"
    return [row.name, row.kind, row.generation or "", f"{row.bytes_per_s / 1e9:.4g} GB/s", place]


def _instances(catalog: Catalog) -> Sequence[InstanceRow]:
    from driple.catalog.listing import list_instances

    return list_instances(catalog)


def _instance_cells(row: InstanceRow) -> list[str]:
    price = _UNKNOWN if row.price_per_hour is None else f"{row.price_per_hour:.2f} $/h"
    return [
        row.name,
        row.provider,
        f"{row.num_devices} x {row.device}",
        row.interconnect,
        _scaled(row.network_gbps, 1, "Gbit/s"),
        price,
        row.price_region or "",
        "" if row.price_date is None else row.price_date.isoformat(),
    ]


def _settings(_: Catalog) -> Sequence[SettingRow]:
    from driple.catalog.listing import SettingRow
    from driple.cluster.setting import KNOWN_SETTINGS, Setting
    from driple.inspector.checkpoint_places import checkpoint_files, settings_with_checkpoint

    rows = []
    for name in dict.fromkeys([*KNOWN_SETTINGS, *settings_with_checkpoint()]):
        setting = Setting.parse(name)
        rows.append(
            SettingRow(
                name=setting.name,
                device=setting.device,
                num_workers=setting.num_workers,
                num_servers=setting.num_servers,
                network=setting.network or "none",
                inspectors=tuple(checkpoint_files(setting)),
            )
        )
    return rows


def _setting_cells(row: SettingRow) -> list[str]:
    return [
        row.name,
        row.device,
        str(row.num_workers),
        str(row.num_servers),
        row.network,
        ", ".join(row.inspectors) or "none",
    ]


def _checkpoints(_: Catalog) -> Sequence[CheckpointRow]:
    from driple.catalog.listing import CheckpointRow
    from driple.cluster.setting import Setting
    from driple.inspector.checkpoint_card import read_checkpoint_card
    from driple.inspector.checkpoint_places import checkpoint_files, settings_with_checkpoint

    rows = []
    for name in settings_with_checkpoint():
        for file in checkpoint_files(Setting.parse(name)).values():
            checkpoint = read_checkpoint_card(file)
            rows.append(
                CheckpointRow(
                    setting=checkpoint.setting,
                    preset=checkpoint.preset,
                    labels=checkpoint.provenance,
                    num_workloads=checkpoint.num_workloads,
                    file=f"{file.parent.name}/{file.name}",
                )
            )
    return rows


def _checkpoint_cells(row: CheckpointRow) -> list[str]:
    workloads = _UNKNOWN if row.num_workloads is None else str(row.num_workloads)
    return [row.setting, row.preset, row.labels, workloads, row.file]


def _scaled(value: float | None, unit: float, suffix: str) -> str:
    return _UNKNOWN if value is None else f"{value / unit:.4g} {suffix}".rstrip()


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one list is made and shown."""

    rows: Callable[[Catalog], Sequence[Any]]
    cells: Callable[[Any], list[str]]
    header: Sequence[str]


_KINDS: Mapping[str, _Kind] = {
    "devices": _Kind(
        _devices,
        _device_cells,
        ("device", "maker", "generation", "memory", "bandwidth", "fp32 TFLOP/s", "fp16"),
    ),
    "links": _Kind(_links, _link_cells, ("link", "kind", "generation", "rate", "joins")),
    "instances": _Kind(
        _instances,
        _instance_cells,
        ("instance", "provider", "devices", "interconnect", "network", "price", "region", "date"),
    ),
    "settings": _Kind(
        _settings,
        _setting_cells,
        ("setting", "device", "workers", "servers", "network", "inspectors"),
    ),
    "checkpoints": _Kind(
        _checkpoints, _checkpoint_cells, ("setting", "preset", "labels", "workloads", "file")
    ),
}
