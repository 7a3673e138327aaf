"""Machines of the paper's Table 6."""

from dataclasses import replace
from pathlib import Path

import pytest

from driple.cluster.setting import KNOWN_SETTINGS, Setting, parse_setting
from driple.cluster.topology import topology_of
from driple.errors import SettingError


@pytest.mark.parametrize("name", KNOWN_SETTINGS)
def test_every_known_setting_has_a_topology(name: str) -> None:
    setting = Setting.parse(name)
    topology = topology_of(setting)
    assert len(topology.devices) == len(topology.worker_machine) == setting.num_workers
    assert len(topology.server_machine) == setting.num_servers
    assert topology.devices[0] == setting.device
    assert (len(set(topology.devices)) == 1) == setting.homogeneous


@pytest.mark.parametrize(
    ("name", "machines"),
    [
        ("V100-P2w2/ho-PCIe", 1),
        ("2080Ti-P2w2/he-40G", 2),
        ("TitanRTX-P4w4/he-40G", 2),
        ("V100-P5w5/he-1G", 5),
        ("2080Ti-P5w10/he-1G", 5),
        ("CPU-P1w3/ho-200M", 4),
    ],
)
def test_number_of_machines(name: str, machines: int) -> None:
    topology = topology_of(Setting.parse(name))
    assert topology.num_machines == machines
    assert set(topology.worker_machine) | set(topology.server_machine) == set(range(machines))


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("V100-P1w2/ho-PCIe", {0: 2}),
        ("V100-P5w5/he-1G", {0: 1, 1: 1}),
        ("V100-P5w10/he-1G", {0: 2, 2: 2}),
        ("2080Ti-P2w2/he-40G", {0: 1}),
        ("CPU-P1w3/ho-200M", {0: 3}),
        ("A100-R8/ho-NVLink", {0: 8}),
    ],
)
def test_own_workers_are_told_apart_by_the_servers_beside_them(
    name: str, kinds: dict[int, int]
) -> None:
    assert topology_of(Setting.parse(name)).labelled_workers() == kinds


def test_ten_workers_on_five_machines_are_two_on_each() -> None:
    topology = topology_of(Setting.parse("V100-P5w10/he-1G"))
    assert topology.worker_machine == (0, 0, 1, 1, 2, 2, 3, 3, 4, 4)
    assert topology.server_machine == (0, 1, 2, 3, 4)


def test_unlike_workers_that_nobody_described_are_refused() -> None:
    with pytest.raises(SettingError, match="not known"):
        topology_of(Setting.parse("H100-P3w3/he-10G"))


@pytest.mark.parametrize(
    ("name", "sharing"),
    [("V100-P2w2/ho-PCIe", 1), ("V100-P5w10/he-1G", 5), ("2080Ti-P1w2/ho-10G", 2)],
)
def test_links_are_shared_by_machines_with_workers(name: str, sharing: int) -> None:
    """As in the fit to published clusters; a server on a machine of its own does not count."""
    assert topology_of(Setting.parse(name)).num_sharing == sharing


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("2080Ti-R4/ho-PCIe", "PCIe3-host"),
        ("2080Ti-P1w2/ho-PCIe", "PCIe3"),
        ("V100-R4/ho-PCIe", "PCIe3"),
        ("A100-R8/ho-PCIe", "PCIe4"),
    ],
)
def test_rings_of_devices_without_peer_access_go_through_the_host(name: str, link: str) -> None:
    assert topology_of(Setting.parse(name)).link == link


@pytest.mark.parametrize(
    ("device", "link"),
    [
        ("P100-SXM2", "NVLink-P100"),
        ("V100", "NVLink-V100"),
        ("V100-SXM3", "NVLink-V100"),
        ("2080Ti", "NVLink-Turing"),
        ("RTX8000", "NVLink-Turing"),
        ("A100-80G", "NVLink-A100"),
        ("3090", "NVLink-GA102"),
        ("A6000", "NVLink-GA102"),
        ("H200", "NVLink-H100"),
    ],
)
def test_nvlink_is_that_of_the_device(device: str, link: str) -> None:
    assert topology_of(Setting.parse(f"{device}-R4/ho-NVLink")).link == link
    assert topology_of(Setting.parse(f"{device}-R4/ho-{link}")).link == link


@pytest.mark.parametrize(
    "name",
    ["T4-R4/ho-NVLink", "P100-R4/ho-NVLink", "TitanV-R2/ho-NVLink", "RTX4000-R2/ho-NVLink",
     "CPU-P1w2/ho-NVLink", "3090-R2/ho-NVLink-A100"],
)  # fmt: skip
def test_devices_without_nvlink_are_refused(name: str) -> None:
    with pytest.raises(SettingError, match="has no NVLink"):
        topology_of(Setting.parse(name))


def test_bridges_of_ga102_have_112_gb_per_s_both_ways() -> None:
    assert topology_of(Setting.parse("A6000-R2/ho-NVLink")).link_bytes_per_s == 112.5e9 / 2


def test_infiniband_joins_machines_as_ethernet_does() -> None:
    for ring in ("V100-R4", "V100-P2w2", "V100-P3w5"):
        infiniband = topology_of(Setting.parse(f"{ring}/ho-InfiniBand-HDR"))
        ethernet = topology_of(Setting.parse(f"{ring}/ho-100G"))
        assert infiniband.worker_machine == ethernet.worker_machine
        assert infiniband.server_machine == ethernet.server_machine


@pytest.mark.parametrize("servers", [1, 2, 3, 4, 5, 8])
def test_more_servers_of_workers_alike_do_not_move_to_the_workers_machines(servers: int) -> None:
    """Else two servers would be faster than three; Table 6 shares machines of unlike workers."""
    topology = topology_of(Setting.parse(f"V100-P{servers}w2/ho-10G"))
    assert topology.worker_machine == (0, 1)
    assert topology.server_machine == tuple(range(2, 2 + servers))


@pytest.mark.parametrize(("count", "links"), [(2, 1), (4, 3), (8, 7)])
def test_a_device_of_a_mesh_sends_over_a_link_to_each_other(count: int, links: int) -> None:
    """An MI300X has 448 GB/s over seven links; NVLink's switches give two devices all of it."""
    within = topology_of(Setting.parse(f"{count}xMI300X")).within
    assert within is not None and within.bytes_per_s == pytest.approx(links * 64e9)
    nvlink = topology_of(Setting.parse(f"{count}xH100")).within
    assert nvlink is not None and nvlink.bytes_per_s == 450e9


def test_machines_of_unlike_meshes_exchange_at_the_slower(tmp_path: Path) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "machines:\n- {devices: 8, device: MI300X}\n- {devices: 2, device: MI300X}\nnetwork: 400G\n"
    )
    within = topology_of(parse_setting(str(file))).within
    assert within is not None and within.bytes_per_s == pytest.approx(64e9)


def test_kinds_of_workers_are_told_once_and_each_has_its_kinds_value() -> None:
    """Equal devices of two catalogues are one kind, though they are two objects."""
    unlike = topology_of(Setting.parse("V100-P5w5/he-1G"))
    names = [device.name for device in unlike.kinds]
    assert names == list(dict.fromkeys(unlike.devices)) and len(names) > 1
    values = {device: device.name for device in unlike.kinds}
    assert unlike.of_each(values) == unlike.devices
    alike = topology_of(Setting.parse("4x8xA100/NVLink+100G"))
    copied = replace(alike, workers=(*alike.workers[:-1], replace(alike.workers[0])))
    assert copied.workers[-1] is not copied.workers[0]
    assert copied.kinds == alike.kinds and len(alike.kinds) == 1
    assert copied.labelled_workers() == {0: 32}
    assert alike.of_each({alike.kinds[0]: 7}) == (7,) * 32
