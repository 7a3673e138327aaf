"""The catalogue of instances: the paper's Table I is in it, and users' own files win."""

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from driple.catalog import read_catalog, shipped_catalog
from driple.cluster.setting import Setting
from driple.cluster.topology import topology_of
from driple.errors import ConfigError, SettingError
from driple.planning.places import (
    Candidate,
    Refused,
    bare_name,
    check_degrees_fit,
    chosen_instances,
    full_name,
    lacking_facts,
    least_needed,
    place_of_setting,
    places_of,
    schemes_for,
)
from driple.planning.variants import Variant

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
KNOWN = shipped_catalog().instances


@pytest.mark.parametrize("name", TABLE_1)
def test_table_1_is_in_the_catalogue(name: str) -> None:
    instance = KNOWN[name]
    price = instance.price(THEN)
    assert price is not None
    assert "Table I" in price.source
    numbers = (
        instance.num_devices,
        instance.vcpus,
        instance.device_memory_gb,
        instance.memory_gb,
        instance.network_gbps,
    )
    assert (*numbers, price.per_hour) == TABLE_1[name]


@pytest.mark.parametrize("name", KNOWN)
def test_every_instance_is_a_place_or_says_what_it_lacks(name: str) -> None:
    instance = KNOWN[name]
    places, refused = places_of([instance], [1, 2])
    assert len(places) + len(refused) == 2
    for place in places:
        assert topology_of(place.setting).num_machines == place.machines
    if instance.network_gbps is None:
        assert "its network_gbps" in refused[-1].reason
    for price in instance.prices:
        assert price.date is not None
        assert len(price.source) > 20


def test_the_newest_price_counts() -> None:
    """P4 became cheaper; there is no price before the first."""
    instance = KNOWN["p4d.24xlarge"]
    newest = instance.price()
    assert newest is not None
    assert newest.per_hour == pytest.approx(21.957642)
    assert instance.price(datetime.date(2020, 1, 1)) is None


def test_users_own_rows_win(tmp_path: Path) -> None:
    """A price of their own beats every date; new instances are added; what differs is enough."""
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[instances]]\nname = "p3.2xlarge"\nprice_per_hour = 1.1\n'
        '[[instances]]\nname = "under-my-desk"\nprovider = "me"\ndevice = "RTX 2080 Ti"\n'
        'num_devices = 4\ninterconnect = "PCIe"\nsource = "the label"\n'
        "prices = [{per_hour = 0.5, spot = true}]\n"
    )
    catalog = read_catalog([file])
    known = catalog.instances
    mine = known["p3.2xlarge"].price(THEN)
    assert mine is not None
    assert (mine.per_hour, known["p3.2xlarge"].vcpus) == (1.1, 8)
    (desk,), refused = places_of([known["under-my-desk"]], [1, 2], catalog)
    assert (desk.name, desk.num_devices, desk.setting.device) == ("under-my-desk", 4, "2080Ti")
    assert "network_gbps" in refused[0].reason
    assert known["under-my-desk"].price() is None
    spot = known["under-my-desk"].price(spot=True)
    assert spot is not None
    assert spot.per_hour == 0.5


def test_names_families_and_devices_choose() -> None:
    """`p3` is all of P3 and not P3dn; what is not there gets the names that are."""
    names = [one.name for one in chosen_instances(KNOWN, ["p3"], [])]
    assert names == ["p3.2xlarge", "p3.8xlarge", "p3.16xlarge"]
    several = [one.name for one in chosen_instances(KNOWN, ["p2.xlarge", "p3"], [])]
    assert several == ["p2.xlarge", *names]
    assert chosen_instances(KNOWN, [], []) == [*KNOWN.values()]
    assert {one.device for one in chosen_instances(KNOWN, [], ["h 100", "T4"])} == {
        "H100", "T4"}  # fmt: skip
    with pytest.raises(ConfigError, match="p3dn"):
        chosen_instances(KNOWN, ["p9"], [])
    with pytest.raises(ConfigError, match="of the instances p3 none has A100; leave out"):
        chosen_instances(KNOWN, ["p3"], ["A100"])
    with pytest.raises(ConfigError, match="no instance has 2080Ti"):
        chosen_instances(KNOWN, [], ["2080Ti"])
    with pytest.raises(SettingError, match="did you mean"):
        chosen_instances(KNOWN, [], ["H1000"])


def test_devices_of_an_instance_have_the_memory_that_their_provider_states() -> None:
    """A V100 of p3dn.24xlarge has 32 GiB, one of p3.16xlarge 16."""
    places, _ = places_of([KNOWN["p3.16xlarge"], KNOWN["p3dn.24xlarge"]], [1])
    assert [place.capacity_bytes for place in places] == [16 * 2**30, 32 * 2**30]


def test_codes_of_ecc_are_no_room_on_an_instance_either() -> None:
    """A T4 of g4dn.xlarge has 16 GB, of which nvidia-smi shows 15,360 MiB."""
    places, _ = places_of([KNOWN["g4dn.xlarge"]], [1])
    assert places[0].capacity_bytes == 15 * 2**30


def test_what_the_catalogue_does_not_know_is_named() -> None:
    assert lacking_facts(KNOWN["p5.48xlarge"], 2) is None
    instance, known = KNOWN["Standard_ND96isr_MI300X_v5"], shipped_catalog()
    assert lacking_facts(instance, 1) is None  # a step needs no window of counters
    device = known.devices["MI300X"]
    facts = {name: fact for name, fact in device.facts.items() if name != "multiprocessors"}
    poorer = replace(known, devices={**known.devices, "MI300X": replace(device, facts=facts)})
    lacking = lacking_facts(instance, 1, poorer)
    assert lacking is not None
    assert "multiprocessors of a MI300X" in lacking.reason
    assert "file of your own" in lacking.reason


def test_schemes_suit_machines_and_jobs() -> None:
    """One device needs none; shards within machines need several of several devices."""
    places, _ = places_of([KNOWN["p3.2xlarge"], KNOWN["p4d.24xlarge"]], [1, 2])
    single, pair, eight, sixteen = places
    assert schemes_for(single, ["fsdp"], is_model=True) == ["ddp"]
    assert schemes_for(pair, [], is_model=True) == ["ddp", "zero2", "fsdp"]
    assert schemes_for(eight, [], is_model=False) == ["ddp"]
    assert schemes_for(sixteen, [], is_model=True) == ["ddp", "zero2", "fsdp", "hsdp"]
    assert schemes_for(sixteen, ["fsdp", "fsdp"], is_model=True) == ["fsdp"]
    own = place_of_setting(Setting.parse("8xA100@fsdp"))
    assert schemes_for(own, [], is_model=True) == ["fsdp"]
    with pytest.raises(SettingError, match="parameter servers"):
        place_of_setting(Setting.parse("V100-P1w2/ho-PCIe"))


def test_degrees_are_asked_of_one_device_too() -> None:
    """It is refused later, with the reason; what it could run as instead was not asked for."""
    (single,), _ = places_of([KNOWN["p3.2xlarge"]], [1])
    assert schemes_for(single, ["tp3"], is_model=True) == ["tp3"]
    assert schemes_for(single, ["ep8", "tp2-pp2"], is_model=True) == ["ep8", "tp2-pp2"]
    assert schemes_for(single, ["tp2", "fsdp"], is_model=True) == ["ddp"]
    assert schemes_for(single, ["tp1"], is_model=True) == ["ddp"]


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("tp3", r"divide none of these machines \(1, 2, 8 or 16 devices\); a group of 2 or 4 does"),
        ("tp32", "a group of 16 does"),
        ("tp2-ep3", "ep3 does not divide"),
    ],
)
def test_degrees_that_fit_no_machines_are_refused_at_once(scheme: str, words: str) -> None:
    places, _ = places_of([KNOWN["p3.2xlarge"], KNOWN["p4d.24xlarge"]], [1, 2])
    with pytest.raises(SettingError, match=words):
        check_degrees_fit(places, ["fsdp", scheme])
    check_degrees_fit(places, ["fsdp", "any", "tp8-pp2"])  # 16 devices
    check_degrees_fit([], [scheme])
    check_degrees_fit(places[:1], ["ddp", "fsdp"])  # without degrees, as on any machines
    with pytest.raises(SettingError, match=r"must divide the 1 device of p3\.2xlarge"):
        check_degrees_fit(places[:1], ["pp2"])


def test_of_reasons_for_memory_the_least_need_is_kept() -> None:
    few = Refused(name="a", reason="needs 3", needed_bytes=3.0)
    many = Refused(name="a", reason="needs 5", needed_bytes=5.0)
    other = Refused(name="b", reason="no network")
    assert least_needed([many, few, other, other]) == [few, other]


def test_a_place_is_so_many_machines_at_the_price_of_each() -> None:
    """Two p3.8xlarge have 8 devices; machines of one's own have no instance, and one price."""
    (rented,), refused = places_of([KNOWN["p3.8xlarge"]], [2])
    assert refused == []
    assert (rented.name, rented.priced_name, rented.machines) == ("2xp3.8xlarge", "p3.8xlarge", 2)
    assert rented.num_devices == 8 and rented.instance is KNOWN["p3.8xlarge"]
    own = place_of_setting(Setting.parse("2x4xV100/NVLink+25G@fsdp"))
    assert (own.instance, own.machines, own.num_devices) == (None, 1, 8)
    assert own.capacity_bytes is None  # that of the catalogue
    assert own.name == own.setting.name == "2x4xV100/NVLink+25G@fsdp"
    assert own.priced_name == "2x4xV100/NVLink+25G"
    unknown = replace(rented, instance=replace(KNOWN["p3.8xlarge"], device_memory_gb=None))
    assert unknown.capacity_bytes is None


@pytest.mark.parametrize(
    ("name", "samples"), [("8xA100", 8 * 12), ("8xA100@fsdp", 8 * 12), ("8xA100@tp2", 4 * 12)]
)
def test_samples_of_an_update_are_those_of_all_replicas(name: str, samples: int) -> None:
    """4 samples in each of 3 passes; devices that split a model compute the same ones."""
    place = place_of_setting(Setting.parse(name))
    variant = Variant(batch_size=4, grad_accumulation=3)
    candidate = Candidate(place=place, setting=place.setting, variant=variant)
    assert candidate.samples_per_step == samples


def test_machines_are_named_in_full() -> None:
    """Prices do not depend on the scheme; what is no machine has no name."""
    assert full_name("p3.8xlarge", KNOWN, None) == "p3.8xlarge"
    assert full_name("8xH100@fsdp", {}, None) == bare_name(Setting.parse("8xH100"))
    assert full_name("no such machine", KNOWN, None) is None


def test_what_an_instance_lacks_is_named_with_its_number() -> None:
    """A network is needed by two machines, not by one."""
    instance = replace(KNOWN["p3.8xlarge"], network_gbps=None)
    assert lacking_facts(instance, 1) is None
    assert lacking_facts(instance, 2) == Refused(
        name="2xp3.8xlarge",
        reason="the catalogue does not state its network_gbps; add it in a file of your own",
    )
    places, refused = places_of([instance], [1, 2])
    assert [place.name for place in places] == ["p3.8xlarge"]
    assert [refusal.name for refusal in refused] == ["2xp3.8xlarge"]
    places, refused = places_of([instance, KNOWN["p2.xlarge"]], [2, 1, 2])
    assert [place.name for place in places] == [
        "p3.8xlarge", "2xp2.xlarge", "p2.xlarge", "2xp2.xlarge",
    ]  # fmt: skip
    assert [refusal.name for refusal in refused] == ["2xp3.8xlarge"] * 2
    odd = replace(KNOWN["p3.8xlarge"], interconnect="no such link")
    places, refused = places_of([odd], [1])
    assert places == [] and refused[0].name == "p3.8xlarge"
    assert "no such link" in refused[0].reason


def test_the_least_need_of_each_machine_is_kept() -> None:
    """In the order of the reasons; another reason of the same machines gives way to memory."""
    a3, a5, b4 = (
        Refused(name=name, reason=f"needs {need}", needed_bytes=need)
        for name, need in (("a", 3.0), ("a", 5.0), ("b", 4.0))
    )
    assert least_needed([a5, b4, a3]) == [b4, a3]
    assert least_needed([a3, b4, a5]) == [a3, b4]
    assert least_needed([replace(a3, reason="again"), a3]) == [replace(a3, reason="again")]
    assert least_needed([]) == []
