"""Prices of a user's own file win; what is missing or zero is never a low price."""

import datetime
from pathlib import Path

import pytest

from driple.catalog import shipped_catalog
from driple.errors import ConfigError
from driple.planning.prices import PriceBook, read_prices
from driple.render.remarks import sentence

KNOWN = shipped_catalog().instances
HEAD = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,"
    "Region,AvailabilityZone\n"
)


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_a_users_price_wins_in_every_form(tmp_path: Path) -> None:
    toml = written(
        tmp_path, "a.toml", '[[prices]]\nname = "p3.2xlarge"\nper_hour = 0.9\nspot = true\n'
        '[[prices]]\nname = "8xH100"\nper_hour = 7\ndate = 2026-01-02\nregion = "here"\n',
    )  # fmt: skip
    table = written(tmp_path, "b.csv", "name,per_hour,spot,date\np3.2xlarge,1.5,,2026-01-02\n")
    book = PriceBook(files=(read_prices(toml), read_prices(table)))
    own = book.price("p3.2xlarge", KNOWN["p3.2xlarge"])
    assert own is not None
    assert (own.per_hour, own.date, own.source) == (1.5, datetime.date(2026, 1, 2), "b.csv")
    mine = book.price("8xH100", None)
    assert mine is not None
    assert (mine.per_hour, mine.region) == (7.0, "here")
    spot = PriceBook(files=book.files, spot=True).price("p3.2xlarge", KNOWN["p3.2xlarge"])
    assert spot is not None
    assert spot.per_hour == 0.9
    other = book.price("p3.8xlarge", KNOWN["p3.8xlarge"])
    assert other is not None
    assert other.per_hour == 12.24
    assert "give one with --prices FILE" in sentence(book.why_none("9xH100", None))


def test_of_several_files_the_last_that_has_a_price_wins(tmp_path: Path) -> None:
    """In either order of the same two files; a file without the machine leaves it to the others."""
    files = [
        read_prices(written(tmp_path, f"{cents}.csv", f"name,per_hour\np3.2xlarge,0.{cents}\n"))
        for cents in (10, 20)
    ]
    other = read_prices(written(tmp_path, "other.csv", "name,per_hour\np3.8xlarge,1\n"))
    for order in (files, files[::-1]):
        book = PriceBook(files=(*order, other))
        price = book.price("p3.2xlarge", KNOWN["p3.2xlarge"])
        assert price is not None
        assert price == order[-1].prices["p3.2xlarge"][0]


def test_a_catalogue_of_skypilot_is_read(tmp_path: Path) -> None:
    """The lowest zone of a region counts; a price of 0, none, or without devices is no price."""
    file = written(
        tmp_path, "vms.csv",
        HEAD + "p3.8xlarge,V100,4.0,32,244,,12.0,3.1,us-east-1,a\n"
        "p3.8xlarge,V100,4.0,32,244,,12.0,2.9,us-east-1,b\n"
        "p3.8xlarge,V100,4.0,32,244,,15.0,2.0,eu-west-1,b\n"
        "p3.2xlarge,V100,1.0,8,61,,0.0,,us-east-1,a\n"
        "a2-highgpu-1g,,,12,85,,0.73948,0.36,us-central1,a\n"
        ",A100,1,,,,2.9,1.1,us-central1,a\n",
    )  # fmt: skip
    price_file = read_prices(file)
    assert set(price_file.prices) == {"p3.8xlarge"}
    spot = PriceBook(files=(price_file,), spot=True, region="us-east-1")
    price = spot.price("p3.8xlarge", KNOWN["p3.8xlarge"])
    assert price is not None
    assert (price.per_hour, price.spot, price.region) == (2.9, True, "us-east-1")
    anywhere = PriceBook(files=(price_file,), spot=True).price("p3.8xlarge", KNOWN["p3.8xlarge"])
    assert anywhere is not None
    assert anywhere.per_hour == 2.0
    book = PriceBook(files=(price_file,))
    for name, reason in (
        ("p3.2xlarge", "a price of 0"),
        ("a2-highgpu-1g", "of the machine without its devices"),
    ):
        assert book.price(name, KNOWN[name]) is None
        assert reason in sentence(book.why_none(name, KNOWN[name]))
    assert "no spot price" in sentence(spot.why_none("p3.2xlarge", KNOWN["p3.2xlarge"]))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", '[[prices]]\nname = "p3.2xlarge"\nper_hour = 0\n', "above 0"),
        ("a.toml", '[[prices]]\nname = "p3.2xlarge"\n', "no per_hour"),
        ("a.toml", '[[prices]]\nname = "x"\nper_hour = 1\ncolour = 2\n', "unknown field 'colour'"),
        ("a.toml", "prices = 3\n", "rows"),
        ("a.toml", "]", "no TOML"),
        ("a.csv", "name,per_hour\np3.2xlarge,0\n", "p3.2xlarge"),
        ("a.csv", "name,per_hour\np3.2xlarge,cheap\n", "must be a number"),
        ("a.csv", "name,per_hour\np3.2xlarge,nan\n", "must be a number"),
        ("a.csv", "name,per_hour,date\np3.2xlarge,1,May\n", "2026-08-26"),
        ("a.csv", "name,per_hour,spot\np3.2xlarge,1,perhaps\n", "true or false"),
        ("a.csv", "name,per_hour\np3.2xlarge,1,2,3\n", "more cells"),
        ("a.csv", "name,per_hour\n", "no price"),
        ("a.csv", "a,b\n1,2\n", "needs name and per_hour"),
        ("a.csv", "InstanceType,Price\np3,1\n", "lacks AcceleratorName"),
    ],
)
def test_a_wrong_file_names_the_place(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_prices(written(tmp_path, name, text))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_prices(tmp_path / "none.csv")
