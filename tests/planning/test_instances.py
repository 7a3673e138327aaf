"""The catalogue of instances: the paper's Table I is in it, and users' own files win."""

import datetime
from pathlib import Path

import pytest

from driple.cluster.topology import topology_of
from driple.errors import ConfigError
from driple.planning.instances import choose_instances, instance_setting, read_instances

# Table I: GPUs, vCPUs, GPU memory, main memory, network in Gbit/s, price per hour.
TABLE_1 = {
    "p4d.24xlarge": (8, 96, 320, 1152, 400, 32.7726),
    "p3.2xlarge": (1, 8, 16, 61, 10, 3.06),
    "p3.8xlarge": (4, 32, 64, 244, 10, 12.24),
    "p3.16xlarge": (8, 64, 128, 488, 25, 24.48),
    "p3dn.24xlarge": (8, 96, 256, 768, 100, 31.218),
    "p2.xlarge": (1, 4, 12, 61, 10, 0.90),
    "p2.8xlarge": (8, 32, 96, 488, 10, 7.20),
    "p2.16xlarge": (16, 64, 192, 732, 25, 14.40),
}
THEN = datetime.date(2022, 12, 31)


@pytest.mark.parametrize("name", TABLE_1)
def test_table_1_is_in_the_catalogue(name: str) -> None:
    one = read_instances()[name]
    price = one.price(THEN)
    assert price is not None
    assert "Table I" in price.source
    numbers = (one.num_devices, one.vcpus, one.device_memory_gb, one.memory_gb, one.network_gbps)
    assert (*numbers, price.per_hour) == TABLE_1[name]


@pytest.mark.parametrize("name", read_instances())
def test_every_instance_can_be_simulated_and_its_prices_have_source_and_date(name: str) -> None:
    one = read_instances()[name]
    assert topology_of(instance_setting(one)).num_machines == 1
    if one.network_gbps is None:
        with pytest.raises(ConfigError, match=f"{one.name} has no network_gbps"):
            instance_setting(one, 2)
    else:
        assert topology_of(instance_setting(one, 2)).link_bytes_per_s == one.network_gbps * 1e9 / 8
    for price in one.prices:
        assert price.date is not None
        assert len(price.source) > 20


def test_the_newest_price_counts() -> None:
    """P4 became cheaper; there is no price before the first."""
    one = read_instances()["p4d.24xlarge"]
    newest = one.price()
    assert newest is not None
    assert newest.per_hour == pytest.approx(21.957642)
    assert one.price(datetime.date(2020, 1, 1)) is None


def test_users_own_files_win(tmp_path: Path) -> None:
    """A price of their own beats every date; new instances are added; what differs is enough."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        "instances:\n"
        "  - {name: p3.2xlarge, price_per_hour: 1.1}\n"
        "  - {name: under-my-desk, device: RTX 2080 Ti, devices: 4, interconnect: PCIe}\n"
    )
    known = read_instances([file])
    mine = known["p3.2xlarge"].price(THEN)
    assert mine is not None
    assert (mine.per_hour, known["p3.2xlarge"].vcpus) == (1.1, 8)
    assert instance_setting(known["under-my-desk"]).name == "2080Ti-R4/ho-PCIe"
    assert known["under-my-desk"].price() is None
    with pytest.raises(ConfigError, match="network_gbps"):
        instance_setting(known["under-my-desk"], 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("instances: [", "no YAML"),
        ("- p3", "a list called 'instances'"),
        ("instances: [{device: V100}]", "name of"),
        ("instances: [{name: a, devize: V100}]", "unknown field 'devize'"),
        ("instances: [{name: a}]", "has no device, num_devices, interconnect"),
        ("instances: [{name: p3.2xlarge, price_per_hour: -1}]", "above 0"),
        ("instances: [{name: p3.2xlarge, price_per_hour: yes}]", "above 0"),
        ("instances: [{name: p3.2xlarge, devices: 0}]", "devices of"),
        ("instances: [{name: p3.2xlarge, network_gbps: fast}]", "network_gbps of"),
        ("instances: [{name: p3.2xlarge, prices: [3]}]", "per_hour"),
        ("instances: [{name: p3.2xlarge, prices: [{per_hour: 3, date: soon}]}]", "2026-08-26"),
        ("{format: 9, instances: []}", "format 9"),
    ],
)
def test_bad_files_get_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_instances([file])
    assert said in str(error.value)
    assert "mine.yaml" in str(error.value)


def test_unknown_devices_and_missing_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("instances: [{name: a, device: Abacus, devices: 1, interconnect: PCIe}]")
    with pytest.raises(ConfigError, match="Abacus"):
        read_instances([file])
    with pytest.raises(ConfigError, match="cannot be read"):
        read_instances([tmp_path / "none.yaml"])


def test_names_and_families_choose() -> None:
    """`p3` is all of P3 and not P3dn; what is not there gets the names that are."""
    known = read_instances()
    names = [one.name for one in choose_instances(known, ["p3"])]
    assert names == ["p3.2xlarge", "p3.8xlarge", "p3.16xlarge"]
    assert choose_instances(known, []) == [*known.values()]
    with pytest.raises(ConfigError, match="p3dn"):
        choose_instances(known, ["p9"])
