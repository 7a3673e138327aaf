"""Names of devices and links: as people write them, and what an unknown name is offered."""

import pytest

from driple.catalog import DEVICES, LINKS, device_named, find_device, link_named, shipped_hardware
from driple.cluster.setting import KNOWN_SETTINGS, Setting
from driple.errors import ConfigError, SettingError

ISSUE = (
    "V100", "V100-SXM2", "V100-SXM3", "2080 Ti", "Titan RTX", "K80", "P100", "P40", "T4",
    "RTX 6000", "RTX 8000", "RTX 4000", "GTX 1080 Ti", "GTX 1060", "3090", "A100", "A6000", "H100",
    "H200", "P4", "L4", "L40", "L40S", "A2", "A10", "A10G", "A30", "A40", "A800", "H100 PCIe",
    "H100 NVL", "H800", "GH200", "B200", "B300", "GB200", "RTX 2080", "RTX 5090", "RTX 6000 Ada",
    "RTX PRO 6000", "RTX A4000", "RTX A5000", "Titan V", "MI100", "MI210", "MI250X", "MI300X",
    "MI325X",
)  # fmt: skip


@pytest.mark.parametrize("name", ISSUE)
def test_devices_are_found_as_people_write_them(name: str) -> None:
    assert device_named(name).name in DEVICES
    assert device_named(name.lower()) == device_named(name)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("Tesla V100-SXM2-16GB", "V100-SXM2"),
        ("NVIDIA A100-SXM4-80GB", "A100-80G"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80G"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA GeForce RTX 2080 Ti", "2080Ti"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_names_that_torch_prints_are_aliases(printed: str, name: str) -> None:
    assert device_named(printed).name == name


def test_known_settings_name_known_hardware() -> None:
    for name in KNOWN_SETTINGS:
        setting = Setting.parse(name)
        device_named(setting.device)
        for link in setting.network.split("+"):  # none of a device alone
            if link and link != "NVLink":  # which one depends on the device
                assert link_named(link).bytes_per_s > 0


@pytest.mark.parametrize("name", ["V100", "2080Ti", "CPU", "CPU25"])
def test_a_bare_name_with_a_declared_default_is_that_setting(name: str) -> None:
    assert Setting.parse(name).name == DEVICES[name].default_setting


def test_ethernet_is_a_rate_in_bits() -> None:
    assert link_named("40G").bytes_per_s == 5e9
    assert link_named("200m").bytes_per_s == 25e6
    assert link_named("30G").kind == link_named("40G").kind == "Ethernet"


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError, match="2080Ti"):
        device_named("2080 Tie")
    with pytest.raises(SettingError, match="40G"):
        link_named("token ring")
    assert find_device("abacus") is None


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("B100", ("B200", "B300")),
        ("RTX 4090 D", ("4090",)),
        ("A100X", ("A100",)),
        ("V1000", ("V100", "V100S")),
        ("GTX 1070 Ti", ("GTX1070", "GTX1080Ti")),
        ("MI308X", ("MI300X",)),
        ("MI200", ("MI210", "MI250")),
        ("CPU50", ("CPU", "CPU25")),
    ],
)
def test_the_nearest_devices_are_of_the_same_kind(name: str, nearest: tuple[str, ...]) -> None:
    """Maker, generation and class first, spelling last."""
    names = shipped_hardware().nearest_devices(name)
    assert set(nearest) <= set(names)
    makers = {DEVICES[item].maker for item in names}
    assert makers == {DEVICES[nearest[0]].maker}


def test_a_name_without_any_likeness_is_offered_the_newest_data_centre_devices() -> None:
    for name in shipped_hardware().nearest_devices("TPU-v4"):
        assert DEVICES[name].datacentre
        assert DEVICES[name].generation == "Blackwell"


def test_an_unknown_instance_is_offered_names_like_it() -> None:
    from driple.catalog import shipped_catalog

    catalog = shipped_catalog()
    assert catalog.instance("p3.8xlarge").num_devices == 4
    with pytest.raises(ConfigError, match=r"did you mean p3\.8xlarge"):
        catalog.instance("p3.8xlarg")
    assert set(LINKS) == set(catalog.links)


@pytest.mark.parametrize("name", ["V100-SXM2-32GB", "Tesla V100-PCIE-32GB", "V100 32GB"])
def test_a_card_of_32_gb_is_none_of_16(name: str) -> None:
    """One name for both answered "does not fit" for jobs that ran."""
    assert device_named(name).memory_bytes == 32e9
