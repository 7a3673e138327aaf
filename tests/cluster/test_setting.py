"""Names of cluster settings."""

import pytest

from driple.catalog import DEVICES, LINKS
from driple.cluster.setting import KNOWN_SETTINGS, Setting
from driple.errors import SettingError


@pytest.mark.parametrize("name", KNOWN_SETTINGS)
def test_every_known_name_is_its_own_inverse(name: str) -> None:
    """Parsing a full name and asking for the name gives it back."""
    assert Setting.parse(name).name == name
    assert Setting.parse(name.lower()) == Setting.parse(name.upper()) == Setting.parse(name)


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("V100", "V100-P1w2/ho-PCIe"),
        ("2080ti", "2080Ti-P1w2/ho-PCIe"),
        ("cpu", "CPU-P1w2/ho-200M"),
        ("V100-P5w10", "V100-P5w10/he-1G"),
        ("2080Ti-P1w3", "2080Ti-P1w3/ho-PCIe"),
    ],
)
def test_short_names_resolve_to_the_default_or_the_only_match(short: str, full: str) -> None:
    """A short name is a prefix that ends at a `-` or `/`."""
    assert Setting.parse(short).name == full


def test_ambiguous_short_name_lists_what_it_may_be() -> None:
    """Two settings that begin so and no default: both are named."""
    with pytest.raises(SettingError, match="2080Ti-P2w2/he-PCIe, 2080Ti-P2w2/he-40G"):
        Setting.parse("2080Ti-P2w2")


def test_unknown_name_offers_the_nearest() -> None:
    """A typing error gets the name that was meant."""
    with pytest.raises(SettingError, match="V100-P1w2/ho-PCIe"):
        Setting.parse("V10-P1w2/ho-PCIe-x")


@pytest.mark.parametrize("topology", ["P1w2", "R8"])
def test_every_name_of_the_catalogue_makes_a_setting(topology: str) -> None:
    """Dashes in it or not; and no two settings share a file name."""
    names = [
        f"{device}-{topology}/{kind}-{network}"
        for device in DEVICES
        for network in (*LINKS, "NVLink", "30G")
        for kind in ("ho", "he")
    ]
    settings = [Setting.parse(name) for name in names]
    assert [setting.name for setting in settings] == names
    assert [Setting.parse(name.lower()) for name in names] == settings
    assert len({setting.file_name for setting in settings}) == len(names)
    assert all(setting.num_workers == int(topology[-1]) for setting in settings)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("V100SXM2-R4/ho-nvlink", "V100-SXM2-R4/ho-NVLink"),
        ("rtx3090-R2/ho-pcie3-HOST", "3090-R2/ho-PCIe3-host"),
        ("a100-80gb-P1w2/ho-InfiniBandHDR", "A100-80G-P1w2/ho-InfiniBand-HDR"),
    ],
)
def test_names_take_the_spelling_of_the_catalogue(written: str, name: str) -> None:
    assert Setting.parse(written).name == name


@pytest.mark.parametrize("name", ["X-R2-R4/ho-PCIe", "V100-P1w2-R4/ho-PCIe", "V100-R4/ho-PCIe-x"])
def test_other_names_hold_no_dashes(name: str) -> None:
    """Else a slip of the keyboard would become a device."""
    with pytest.raises(SettingError, match="no setting is called"):
        Setting.parse(name)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("B100", "B200-P1w2"),
        ("B100-P2w2", "B200-P1w2"),
        ("MI308X-R8", "MI300X-P1w2"),
        ("4090 D", "4090-P1"),
        ("4090-P1", "4090-R1/ho-PCIe"),
        ("MI300X-R8", "MI300X-R8/ho-PCIe"),
    ],
)
def test_an_unknown_gpu_is_offered_gpus(name: str, nearest: str) -> None:
    """Never CPU settings, however similar their names are."""
    with pytest.raises(SettingError, match=f"did you mean .*{nearest}") as caught:
        Setting.parse(name)
    assert "CPU" not in str(caught.value)


def test_an_unknown_cpu_is_offered_cpus() -> None:
    with pytest.raises(SettingError, match="CPU-P1w2/ho-200M") as caught:
        Setting.parse("CPU40-P1w2")
    assert "100" not in str(caught.value)


@pytest.mark.parametrize("rate", ["0G", "0.0m"])
def test_a_network_without_a_rate_is_refused(rate: str) -> None:
    with pytest.raises(SettingError, match="rate 0; give one such as"):
        Setting.parse(f"2080Ti-R4/ho-{rate}")


@pytest.mark.parametrize("name", ["", "P1w2", "CPU-P0w2/ho-1G", "CPU-P1w0/ho-1G", "CPU-R0/ho-1G"])
def test_names_of_no_possible_cluster_are_refused(name: str) -> None:
    """No worker, no parameter server or no device is no setting."""
    with pytest.raises(SettingError):
        Setting.parse(name)


def test_parts_of_a_setting() -> None:
    """Topology, kind and rate come out of the name."""
    setting = Setting.parse("CPU-P2w4/he-200M")
    assert (setting.num_servers, setting.num_workers, setting.homogeneous) == (2, 4, False)
    assert setting.bits_per_s == 200e6
    assert setting.file_name == "CPU-P2w4_he-200M"
    ring = Setting.parse("V100-R4/ho-PCIe")
    assert (ring.num_servers, ring.num_workers, ring.bits_per_s) == (0, 4, None)


@pytest.mark.parametrize(
    ("name", "on_cpu"), [("CPU", True), ("cpu25-P1w2/he-200M", True), ("V100", False)]
)
def test_shares_of_cores_are_told_from_gpus(name: str, on_cpu: bool) -> None:
    """`CPU25` is a quarter of a core."""
    assert Setting.parse(name).on_cpu is on_cpu
