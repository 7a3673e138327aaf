"""Files of the user's own: what they add, what they replace, and one line for every fault."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from driple.catalog import Catalog, read_catalog, shipped_catalog
from driple.catalog.fields import SIMULATION_FACTS, TUNED
from driple.catalog.rows import MAX_BYTES
from driple.errors import CatalogError, ConfigError
from tests.work import num_calls

ONE_ROW = """
[[devices]]
name = "X1"
generation = "Blackwell"
fp32_flops = 100e12
fp16_flops = 400e12
bytes_per_s = 2e12
"""


def read(tmp_path: Path, *texts: str) -> Catalog:
    paths = []
    for number, text in enumerate(texts):
        paths.append(tmp_path / f"mine{number}.toml")
        paths[-1].write_text(text)
    return read_catalog(paths)


def test_one_row_adds_a_device(tmp_path: Path) -> None:
    """What it states is there; what it does not state is asked for by name, and never guessed."""
    device = read(tmp_path, ONE_ROW).device("x 1")
    assert (device.half_flops, device.architecture.order, device.bf16_flops) == (400e12, 7, 0.0)
    assert device.source.endswith("mine0.toml")
    with pytest.raises(CatalogError) as refused:
        _ = device.memory_bytes
    message = str(refused.value)
    assert "X1 has no memory_bytes" in message
    assert "mine0.toml does not state them" in message
    assert "[[devices]] name = 'X1', memory_bytes = ..., " in message
    assert "X1" not in shipped_catalog().devices


def test_one_error_names_all_that_a_simulation_lacks(tmp_path: Path) -> None:
    """A row with what the error asks for is complete; a link of the host stands for PCIe."""
    device = read(tmp_path, ONE_ROW).device("X1")
    with pytest.raises(CatalogError) as refused:
        _ = device.multiprocessors
    for name in device.missing(SIMULATION_FACTS):
        assert f"{name} = ..." in str(refused.value)
    linked = read(tmp_path, f'{ONE_ROW}host_link = "NVLink-C2C"\n').device("X1")
    with pytest.raises(CatalogError, match="X1 has no multiprocessors") as fewer:
        _ = linked.multiprocessors
    assert "pcie_" not in str(fewer.value)


@pytest.mark.parametrize(
    "name",
    ["tensor_cores", "datacentre", "pcie_peers", "memory_bytes", "cache_bytes", "multiprocessors",
     "counter_window_s", "pcie_generation", "pcie_lanes", "nvlink_peers"],
)  # fmt: skip
def test_no_fact_has_a_default(tmp_path: Path, name: str) -> None:
    device = read(tmp_path, ONE_ROW).device("X1")
    with pytest.raises(CatalogError, match=f"X1 has no {name}[ ,]"):
        getattr(device, name)


def test_pcie_is_no_silent_default(tmp_path: Path) -> None:
    catalog = read(tmp_path, ONE_ROW)
    with pytest.raises(CatalogError, match="X1 has no pcie_lanes"):
        catalog.host_link(catalog.device("X1"))


def test_a_link_of_its_own_to_the_host_needs_no_pcie(tmp_path: Path) -> None:
    catalog = read(tmp_path, ONE_ROW + 'host_link = "NVLink-C2C"')
    assert catalog.host_link(catalog.device("X1")).bytes_per_s == 450e9
    missing = catalog.missing_for_simulation(catalog.device("X1"))
    assert missing == ("tensor_cores", "memory_bytes", "multiprocessors")


def test_a_row_of_a_known_device_replaces_what_it_states(tmp_path: Path) -> None:
    """Later files take precedence; a fact that was unknown is then known."""
    first = '[[devices]]\nname = "GB300"\nmultiprocessors = 160\naliases = ["ours"]\n'
    second = '[[devices]]\nname = "GB300"\nmultiprocessors = 152\n'
    catalog = read(tmp_path, first, second)
    device = catalog.device("ours")
    assert device.multiprocessors == 152
    assert device.memory_bytes == 288e9
    assert "multiprocessors" not in device.unknown
    assert "cache_bytes" in device.unknown
    assert device.source.endswith("mine1.toml")
    assert catalog.device("NVIDIA GB300") == device


def test_a_file_may_take_a_fact_away(tmp_path: Path) -> None:
    catalog = read(tmp_path, '[[devices]]\nname = "T4"\nunknown = ["cache_bytes"]\n')
    with pytest.raises(CatalogError, match=r"T4 has no cache_bytes .*no source"):
        _ = catalog.device("T4").cache_bytes


def test_generations_links_instances_and_prices_are_added(tmp_path: Path) -> None:
    text = """
    format = 1
    [sources]
    quote = "quote of our supplier"
    [[generations]]
    name = "Rubin"
    maker = "NVIDIA"
    order = 8
    [[devices]]
    name = "R200"
    generation = "Rubin"
    nvlink = "NVLink-R200"
    [[links]]
    name = "NVLink-R200"
    kind = "NVLink"
    bytes_per_s = 1800e9
    within_machine = true
    [[instances]]
    name = "ours"
    device = "r200"
    num_devices = 8
    interconnect = "NVLink"
    price_per_hour = 12.5
    [[instances]]
    name = "p3.8xlarge"
    prices = [{per_hour = 9.0, date = 2026-11-01, region = "eu-west-1", source = "quote"}]
    """
    catalog = read(tmp_path, text)
    link = catalog.nvlink(catalog.device("R200"))
    assert link is not None
    assert link.bytes_per_s == 1800e9
    ours = catalog.instance("ours").price()
    assert ours is not None
    assert (ours.per_hour, ours.date) == (12.5, None)
    price = catalog.instance("p3.8xlarge").price()
    assert price is not None
    assert (price.per_hour, price.region, price.source) == (
        9.0,
        "eu-west-1",
        "quote of our supplier",
    )
    assert catalog.instance("p3.8xlarge").num_devices == 4
    assert not link.through_host
    generation = list(catalog.generations.values())[-1]
    assert (generation.name, generation.tensor_sides) == ("Rubin", 1)


def test_the_name_of_a_new_device_wins_over_an_alias(tmp_path: Path) -> None:
    catalog = read(tmp_path, ONE_ROW.replace("X1", "A100-PCIE-40GB"))
    assert catalog.device("a100 pcie 40gb").fp32_flops == 100e12


def test_an_alias_that_is_the_name_of_another_is_refused(tmp_path: Path) -> None:
    """It would never be found."""
    with pytest.raises(ConfigError, match="'a 100' is the name of A100; take it off"):
        read(tmp_path, ONE_ROW + 'aliases = ["a 100"]')


DEVICE = '[[devices]]\nname = "X"\n'
INSTANCE = '[[instances]]\nname = "i"\ndevice = "T4"\nnum_devices = 1\ninterconnect = "PCIe"\n'
LINK = '[[links]]\nname = "l"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("devices = [", "mine0.toml is no TOML"),
        ("x = 1", "unknown table 'x'; known are generations, devices, links, instances"),
        ("format = 9", "format 9; this Driple reads 1"),
        ("devices = 3", r"devices must be rows that begin with \[\[devices\]\]"),
        ("devices = [3]", "row 1 of devices is not a table"),
        ("sources = 3", r"\[sources\] must be names"),
        ("[[devices]]\nfp32_flops = 1.0", "name of .*row 1 of devices must be a text, got None"),
        (DEVICE, "device X has no generation"),
        (DEVICE + "fp64 = 1.0", r"row 1 of devices \(X\) has an unknown field 'fp64'; known are"),
        (DEVICE + 'fp32_flops = "fast"', "fp32_flops of .*row 1.*above 0.*got 'fast'"),
        (DEVICE + "fp32_flops = 0", "fp32_flops of .*above 0"),
        (DEVICE + "fp32_flops = inf", "fp32_flops of"),
        (DEVICE + "fp32_flops = nan", "fp32_flops of"),
        (DEVICE + "memory_bytes = 96", "memory_bytes of .*at least 1e.07.*got 96"),
        (DEVICE + "multiprocessors = 1.5", "multiprocessors of .*whole number"),
        (DEVICE + "pcie_generation = 0", "pcie_generation of .*from 1 to 9"),
        (DEVICE + "tensor_cores = 1", "tensor_cores of .*true or false, got 1"),
        (DEVICE + 'aliases = "a"', "aliases of .*list of texts"),
        (DEVICE + "aliases = [1]", "aliases of .*must be a text, got 1"),
        (DEVICE + 'aliases = ["", "b"]', "aliases of .*must be a text"),
        (DEVICE + 'date = "soon"', "date of .*a day such as 2026-08-26"),
        (DEVICE + "date = 2026-01-01T00:00:00", "date of .*a day such as"),
        (DEVICE + 'unknown = ["speed"]', "unknown of .*'speed', which is no field"),
        (DEVICE + 'memory_bytes = 1e9\nunknown = ["memory_bytes"]', "states memory_bytes and"),
        (DEVICE + 'generation = "Rubin"', "generation of .*'Rubin', which is not in the catalogue"),
        (DEVICE + 'generation = "Ada"\nnvlink = "n"', "nvlink of .*'n', which is no link"),
        (DEVICE + DEVICE, "two rows of devices are called 'X'"),
        ('[[devices]]\nname = "a-100"\ngeneration = "Ada"', "'a-100' and 'A100' are one name"),
        ('[[generations]]\nname = "G"', "generation G has no maker, order"),
        ('[[generations]]\nname = "G"\nmaker = "m"\norder = 1\nother_names = "("', "no regular"),
        (LINK, "link l has no kind, bytes_per_s, within_machine"),
        (LINK + 'kind = "K"\nbytes_per_s = -1', "bytes_per_s of .*above 0 .*got -1"),
        ('[[instances]]\nname = "i"', "instance i has no device, num_devices, interconnect"),
        (INSTANCE.replace("T4", "Abacus"), "device of .*'Abacus', which is not in the catalogue"),
        (INSTANCE.replace("PCIe", "NVLink"), "interconnect of .*T4 does not have"),
        (INSTANCE.replace("PCIe", "rope"), "interconnect of .*'rope', which is no link"),
        (INSTANCE.replace("= 1\n", "= 0\n"), "num_devices of .*from 1 to 4096"),
        (INSTANCE + "price_per_hour = 0", "price_per_hour of .*above 0"),
        (INSTANCE + "prices = 3", "prices of .*must be a list"),
        (INSTANCE + "prices = [3]", r"a price of .*\(i\) has no per_hour"),
        (INSTANCE + 'prices = [{per_hour = 1, spot = 2}]', "spot of a price of .*true or false"),
        (INSTANCE + 'prices = [{per_hour = 1, date = "x"}]', "date of a price of .*a day such as"),
        ("a = " + "9" * 5000, "is no TOML"),
        ("a = " + "[" * 100_000, "is no TOML"),
        ("a." * 100_000 + "a = 1", "over 100 dots in line 1"),
        ("#" * (MAX_BYTES + 1), "has over"),
        ("[[devices]]\n" * 2001, "2001 rows of devices, at most 2000"),
    ],
)  # fmt: skip
def test_every_fault_gets_one_line(tmp_path: Path, text: str, words: str) -> None:
    """File, row, field and value, with little work."""

    def refused() -> None:
        with pytest.raises(ConfigError, match=words) as error:
            read(tmp_path, text)
        message = str(error.value)
        assert "mine0.toml" in message
        assert "\n" not in message
        assert len(message) < 1200

    assert num_calls(refused) < 200_000


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml cannot be read"):
        read_catalog([tmp_path / "none.toml"])


def test_no_file_of_a_user_changes_the_shipped_catalogue(tmp_path: Path) -> None:
    before = shipped_catalog()
    changed = read(tmp_path, '[[devices]]\nname = "H100"\nmemory_bytes = 1e9\n')
    assert changed.device("H100").memory_bytes == 1e9
    assert shipped_catalog() is before
    assert before.device("H100").memory_bytes == 80e9


def test_a_tuned_device_has_all_that_a_tuning_writes(tmp_path: Path) -> None:
    """A file cut at the end of any of its lines loses facts, and names every one that it lost."""
    lines = [
        *(f"tuned_{name} = 1.5" for name in TUNED),
        "tuned_host_runs = 3",
        "tuned_runs = 6",
        "tuned_median_pct = 3",
        "tuned_p90_pct = 9",
        'source = "tuned to 6 runs of mine.csv"',
        "date = 2026-01-31",
    ]
    names = [line.partition(" ")[0] for line in lines]
    file = tmp_path / "device.toml"
    for kept in range(len(lines) + 1):
        file.write_text("\n".join(["format = 1", "[[devices]]", 'name = "V100"', *lines[:kept]]))
        if kept in (0, len(lines)):
            assert read_catalog([file]).find_device("V100") is not None
            continue
        words = f"(V100) is tuned and lacks {', '.join(names[kept:])}; a tuning writes them all"
        with pytest.raises(ConfigError, match=re.escape(words)):
            read_catalog([file])
    earlier = [line for line in lines if not line.startswith("tuned_host_runs")]
    earlier += ["tuned_host_training = 1.6", "tuned_host_training_runs = 2"]
    file.write_text("\n".join(["format = 1", "[[devices]]", 'name = "V100"', *earlier]))
    assert read_catalog([file]).find_device("V100") is not None
