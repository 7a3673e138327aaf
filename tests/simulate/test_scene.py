"""Machines of the paper's Table 6."""

import pytest

from driple.errors import SettingError
from driple.settings import KNOWN_SETTINGS, Setting
from driple.simulate.scene import scene_of


@pytest.mark.parametrize("name", KNOWN_SETTINGS)
def test_every_known_setting_has_a_scene(name: str) -> None:
    setting = Setting.parse(name)
    scene = scene_of(setting)
    assert len(scene.devices) == len(scene.worker_machine) == setting.num_workers
    assert len(scene.server_machine) == setting.num_servers
    assert scene.devices[0] == setting.device
    assert (len(set(scene.devices)) == 1) == setting.homogeneous


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
    scene = scene_of(Setting.parse(name))
    assert scene.num_machines == machines
    assert set(scene.worker_machine) | set(scene.server_machine) == set(range(machines))


def test_ten_workers_on_five_machines_are_two_on_each() -> None:
    scene = scene_of(Setting.parse("V100-P5w10/he-1G"))
    assert scene.worker_machine == (0, 0, 1, 1, 2, 2, 3, 3, 4, 4)
    assert scene.server_machine == (0, 1, 2, 3, 4)


def test_unlike_workers_that_nobody_described_are_refused() -> None:
    with pytest.raises(SettingError, match="not known"):
        scene_of(Setting.parse("H100-P3w3/he-10G"))


@pytest.mark.parametrize(
    ("name", "sharing"),
    [("V100-P2w2/ho-PCIe", 1), ("V100-P5w10/he-1G", 5), ("2080Ti-P1w2/ho-10G", 2)],
)
def test_links_are_shared_by_machines_with_workers(name: str, sharing: int) -> None:
    """As in the fit to published clusters; a server on a machine of its own does not count."""
    assert scene_of(Setting.parse(name)).num_sharing == sharing


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
    assert scene_of(Setting.parse(name)).link == link
