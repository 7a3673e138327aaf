"""The catalogue of instances: the paper's Table I is in it, and users' own files win."""

import datetime
from pathlib import Path

import pytest

from driple.catalog import read_catalog, shipped_catalog
from driple.cluster.topology import topology_of
from driple.errors import ConfigError
from driple.planning.instances import choose_instances, instance_setting

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
    one = shipped_catalog().instances[name]
    price = one.price(THEN)
    assert price is not None
    assert "Table I" in price.source
    numbers = (one.num_devices, one.vcpus, one.device_memory_gb, one.memory_gb, one.network_gbps)
    assert (*numbers, price.per_hour) == TABLE_1[name]


@pytest.mark.parametrize("name", shipped_catalog().instances)
def test_every_instance_can_be_simulated_and_its_prices_have_source_and_date(name: str) -> None:
    one = shipped_catalog().instances[name]
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
    one = shipped_catalog().instances["p4d.24xlarge"]
    newest = one.price()
    assert newest is not None
    assert newest.per_hour == pytest.approx(21.957642)
    assert one.price(datetime.date(2020, 1, 1)) is None


def test_users_own_rows_win(tmp_path: Path) -> None:
    """A price of their own beats every date; new instances are added; what differs is enough."""
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[instances]]\nname = "p3.2xlarge"\nprice_per_hour = 1.1\n'
        '[[instances]]\nname = "under-my-desk"\nprovider = "me"\ndevice = "RTX 2080 Ti"\n'
        'num_devices = 4\ninterconnect = "PCIe"\nsource = "the label"\n'
    )
    known = read_catalog([file]).instances
    mine = known["p3.2xlarge"].price(THEN)
    assert mine is not None
    assert (mine.per_hour, known["p3.2xlarge"].vcpus) == (1.1, 8)
    assert instance_setting(known["under-my-desk"]).name == "2080Ti-R4/ho-PCIe"
    assert known["under-my-desk"].price() is None
    with pytest.raises(ConfigError, match="network_gbps"):
        instance_setting(known["under-my-desk"], 2)


def test_names_and_families_choose() -> None:
    """`p3` is all of P3 and not P3dn; what is not there gets the names that are."""
    known = shipped_catalog().instances
    names = [one.name for one in choose_instances(known, ["p3"])]
    assert names == ["p3.2xlarge", "p3.8xlarge", "p3.16xlarge"]
    assert choose_instances(known, []) == [*known.values()]
    with pytest.raises(ConfigError, match="p3dn"):
        choose_instances(known, ["p9"])
