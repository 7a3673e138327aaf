"""Machines x devices, instances, bare devices and files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driple.cluster.setting import Setting, parse_setting
from driple.cluster.topology import topology_of
from driple.errors import CatalogError, ConfigError, DripleError, SettingError


@pytest.mark.parametrize(
    ("written", "name", "shape", "within", "between"),
    [
        ("H100", "1xH100", (1, 1), None, None),
        ("a100-80gb", "1xA100-80G", (1, 1), None, None),
        ("1xV100", "1xV100", (1, 1), None, None),
        ("8xh100", "8xH100/NVLink", (1, 8), "NVLink-H100", None),
        ("8xL4", "8xL4/PCIe", (1, 8), "PCIe4", None),
        ("4x3090/pcie", "4x3090/PCIe", (1, 4), "PCIe4-host", None),
        ("4x8xH100/NVLink+400G", "4x8xH100/NVLink+400G", (4, 8), "NVLink-H100", "400G"),
        ("4x8xH100/400g", "4x8xH100/NVLink+400G", (4, 8), "NVLink-H100", "400G"),
        ("2x8xV100-SXM2/100G", "2x8xV100-SXM2/NVLink+100G", (2, 8), "NVLink-V100", "100G"),
        ("2x1xV100/InfiniBand-EDR", "2x1xV100/InfiniBand-EDR", (2, 1), None, "InfiniBand-EDR"),
        ("4x8xH100+100G", "4x8xH100/NVLink+100G", (4, 8), "NVLink-H100", "100G"),
        ("4x8xH100/NVLink+8x400G", "4x8xH100/NVLink+8x400G", (4, 8), "NVLink-H100", "8x400G"),
        ("4x8xh100+8X400g", "4x8xH100/NVLink+8x400G", (4, 8), "NVLink-H100", "8x400G"),
        ("2x4xL4+2x100G", "2x4xL4/PCIe+2x100G", (2, 4), "PCIe4", "2x100G"),
        ("2x1xV100+infiniband-edr", "2x1xV100/InfiniBand-EDR", (2, 1), None, "InfiniBand-EDR"),
        (
            "2x8xH100+8xInfiniBand-NDR",
            "2x8xH100/NVLink+8xInfiniBand-NDR",
            (2, 8),
            "NVLink-H100",
            "8xInfiniBand-NDR",
        ),
        ("p5.48xlarge", "p5.48xlarge", (1, 8), "NVLink-H100", None),
        ("4xP5.48xlarge", "4xp5.48xlarge", (4, 8), "NVLink-H100", "3200G"),
    ],
)
def test_new_names(
    written: str, name: str, shape: tuple[int, int], within: str | None, between: str | None
) -> None:
    """Several devices mean all-reduce; the full name parses to the same setting."""
    setting = Setting.parse(written)
    topology = topology_of(setting)
    assert (setting.name, Setting.parse(setting.name)) == (name, setting)
    assert setting.scheme.name == "ddp"
    assert (topology.num_machines, topology.devices_per_machine) == shape
    assert setting.num_workers == shape[0] * shape[1] == len(setting.cluster.devices)
    assert (topology.within.name if topology.within and shape[1] > 1 else None) == within
    assert (topology.between.name if topology.between else None) == between


def test_interfaces_of_a_machine_add_up() -> None:
    for single, several in (("400G", "8x400G"), ("InfiniBand-NDR", "8xInfiniBand-NDR")):
        slow, fast = (
            topology_of(Setting.parse(f"2x8xH100+{link}")).between for link in (single, several)
        )
        assert slow is not None
        assert fast is not None
        assert fast.bytes_per_s == 8 * slow.bytes_per_s
        assert fast.kind == slow.kind


def test_declared_defaults_keep_their_meaning() -> None:
    names = {"V100": "V100-P1w2/ho-PCIe", "2080ti": "2080Ti-P1w2/ho-PCIe",
             "CPU": "CPU-P1w2/ho-200M", "CPU25": "CPU25-P1w2/ho-200M"}  # fmt: skip
    assert {short: Setting.parse(short).name for short in names} == names


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("4x8xH100", "no network between its 4 machines; add one: 4x8xH100/NVLink+100G"),
        ("8xH100/400G", "400G joins machines, and there is one"),
        ("2x8xH100/PCIe+NVLink", "NVLink"),
        ("2x8xH100+NVLink", "NVLink-H100"),
        ("2x8xH100+8xNVLink", "no link in the catalogue is called '8xNVLink'"),
        ("2x8xH100+0x400G", "no link in the catalogue is called '0x400G'"),
        ("2x8xH100/100G+400G", "joins machines, not the devices of one"),
        ("2x8xT4/NVLink+400G", "T4 has no NVLink"),
        ("0xH100", "no machine or no device"),
        ("131073xH100", "over 131,072 devices; give fewer"),
        (f"{10**30}xH100", "over 131,072 devices; give fewer"),
        ("9999x9999xH100/NVLink+400G", "over 131,072 devices; give fewer"),
        ("131072xp5.48xlarge", "at most 131,072 devices; give fewer"),
        ("8xH101", "did you mean 8xH100"),
        ("4090x", "A row [[devices]] in a catalogue file of your own adds a device"),
        ("p5.49xlarge", ", p5.48xlarge"),
        ("3xp5.49xlarge", ", 3xp5.48xlarge"),
        ("2x2xp5.48xlarge", "no setting is called"),
        ("V100-R4/ho-rope", "no setting is called"),
        ("Abacus-P1w2/ho-1G", "no setting is called"),
        ("2x1xV100/0G", "rate 0"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(name: str, words: str) -> None:
    with pytest.raises(SettingError, match=re.escape(words)):
        Setting.parse(name)


def test_missing_facts_of_a_link_are_named_where_machines_are_needed() -> None:
    """Measured data of such a setting can still be learned from."""
    setting = Setting.parse("MI300X-P1w2/ho-NVLink")
    with pytest.raises(SettingError, match="no NVLink; its devices are joined by InfinityFabric"):
        topology_of(setting)


def test_a_cluster_file(tmp_path: Path) -> None:
    """Two kinds of machines, and what joins them."""
    file = tmp_path / "lab.yaml"
    file.write_text(
        "machines:\n"
        "  - {count: 2, devices: 4, device: V100-SXM2, link: NVLink, cpus: 96, memory_gb: 768}\n"
        "  - {devices: 2, device: 3090}\n"
        "network: 100G\nscheme: hierarchical\n"
    )
    setting = Setting.parse(str(file))
    topology = topology_of(setting)
    assert (setting.name, setting.scheme.name) == (str(file), "hierarchical")
    assert Setting.parse(setting.name) == setting
    assert topology.devices == ("V100-SXM2",) * 8 + ("3090",) * 2
    assert topology.worker_machine == (0,) * 4 + (1,) * 4 + (2,) * 2
    assert not setting.homogeneous
    assert [machine.link.name for machine in setting.cluster.machines if machine.link] == [
        "NVLink-V100", "NVLink-V100", "NVLink-GA102",
    ]  # fmt: skip
    assert setting.cluster.machines[0].host.memory_bytes == 768e9
    assert topology.link == "100G"
    assert setting.cluster.link is not None
    assert setting.cluster.link.name == "NVLink-GA102"  # the slowest within a machine


def test_a_cluster_file_with_parameter_servers(tmp_path: Path) -> None:
    """Servers share the machines of the workers."""
    file = tmp_path / "lab.yaml"
    file.write_text("machines: [{count: 2, devices: 2, device: V100}]\nnetwork: 10G\nservers: 2\n")
    setting = Setting.parse(str(file))
    assert (setting.scheme.name, setting.num_servers) == ("ps", 2)
    assert topology_of(setting).server_machine == (0, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("machines: 3", "needs a list called 'machines'"),
        ("[]", "must have the fields"),
        ("", "is empty; give machines"),
        ("machines: [{device: V100, wheels: 4}]", "unknown field 'wheels'"),
        ("machines: [{devices: 4}]", "has no device"),
        ("machines: [{device: V100, devices: 0}]", "whole number of 1"),
        ("machines: [{device: V100, count: true}]", "whole number of 1"),
        ("machines: [{device: V100, count: 9999, devices: 9999}]\nnetwork: 1G", "over 10000"),
        ("machines: [{device: V100, count: 2}]", "no network"),
        ("machines: [{device: V100, cpus: -1}]", "above 0"),
        ("name: x\nmachines: [{device: V100}]", "unknown field 'name'"),
        ("scheme: ps\nmachines: [{device: V100}]", "ps needs one"),
        ("machines: [{device: [V100]}]", "must be a text"),
        ("machines: [{device: Abacus}]", "no device in the catalogue"),
        ("machines: &a [*a]", "anchor or alias"),
    ],
)
def test_odd_cluster_files_are_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(text)
    with pytest.raises(DripleError, match=words):
        Setting.parse(str(file))
    with pytest.raises(ConfigError, match="cannot be read"):
        Setting.parse(str(tmp_path / "none.yaml"))


def test_a_users_catalogue_takes_part_in_every_form_of_name(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        'format = 1\n[[devices]]\nname = "Z9"\ngeneration = "Hopper"\nnvlink = "Zip"\n'
        "nvlink_peers = 8\n"
        '[[links]]\nname = "Zip"\nkind = "Zip"\nbytes_per_s = 1e12\nwithin_machine = true\n'
        '[[links]]\nname = "ZNet"\nkind = "Ethernet"\nbytes_per_s = 5e10\nwithin_machine = false\n'
        '[[instances]]\nname = "z.8"\ndevice = "Z9"\nnum_devices = 8\ninterconnect = "Zip"\n'
        "network_gbps = 100\n"
    )
    for text, name in (
        ("z9", "1xZ9"),
        ("8xZ9", "8xZ9/NVLink"),
        ("2x8xz9/zip+znet", "2x8xZ9/Zip+ZNet"),
        ("z.8", "z.8"),
        ("Z9-R2/ho-zip", "Z9-R2/ho-Zip"),
    ):
        setting = parse_setting(text, [file])
        assert setting.name == name
        topology_of(setting)
        with pytest.raises(SettingError):
            Setting.parse(text)
    with pytest.raises(CatalogError, match="Z9 has no pcie_"):
        topology_of(parse_setting("Z9-R2/ho-PCIe", [file]))
