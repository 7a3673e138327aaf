"""The catalogue: every entry has a source, and its numbers fit each other."""

import pytest

from driple.catalog import DEVICES, LINKS, Device, device_named, link_named, nearest_devices
from driple.errors import SettingError
from driple.settings import KNOWN_SETTINGS, Setting

ISSUE = (
    "V100", "V100-SXM2", "V100-SXM3", "2080 Ti", "Titan RTX", "K80", "P100", "P40", "T4",
    "RTX 6000", "RTX 8000", "RTX 4000", "GTX 1080 Ti", "GTX 1060", "3090", "A100", "A6000", "H100",
    "H200",
)  # fmt: skip


@pytest.mark.parametrize("name", ISSUE)
def test_devices_are_found_as_people_write_them(name: str) -> None:
    assert device_named(name).name in DEVICES
    assert device_named(name.lower()) == device_named(name)


GPUS = {name: device for name, device in DEVICES.items() if device.generation != "CPU"}


@pytest.mark.parametrize("device", GPUS.values(), ids=GPUS)
def test_numbers_are_of_a_gpu(device: Device) -> None:
    """Units: a slip of a thousand would show; balance of compute and memory as GPUs have it."""
    assert 1e12 <= device.fp32_flops <= device.half_flops <= 1e15
    assert 4 <= device.fp32_flops / device.bytes_per_s <= 60
    assert 5e9 < device.memory_bytes < 200e9
    assert 5 < device.multiprocessors < 200
    assert device.source
    if device.tensor_cores:
        assert device.half_flops >= 1.9 * device.fp32_flops


def test_known_settings_name_known_hardware() -> None:
    for name in KNOWN_SETTINGS:
        setting = Setting.parse(name)
        device_named(setting.device)
        if setting.network != "NVLink":  # which one depends on the device
            assert link_named(setting.network).bytes_per_s > 0


def test_ethernet_is_a_rate_in_bits() -> None:
    assert link_named("40G").bytes_per_s == 5e9
    assert link_named("200m").bytes_per_s == 25e6
    assert all(link.source for link in LINKS.values())


def test_unknown_names_are_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError, match="2080Ti"):
        device_named("2080")
    with pytest.raises(SettingError, match="40G"):
        link_named("token ring")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("B200", ("H200", "H100")),
        ("RTX 4090", ("3090",)),
        ("A10", ("A100",)),
        ("2080", ("2080Ti",)),
        ("V1000", ("V100",)),
        ("GTX 1080", ("GTX1080Ti",)),
        ("TPU-v4", ("H200", "H100")),
        ("CPU50", ("CPU", "CPU25")),
    ],
)
def test_the_nearest_devices_are_of_the_same_kind(name: str, nearest: tuple[str, ...]) -> None:
    """Generation and class first, spelling last."""
    found = nearest_devices(name)
    assert set(found[: len(nearest)]) == set(nearest)
    assert all(item.startswith("CPU") == name.startswith("CPU") for item in found)
