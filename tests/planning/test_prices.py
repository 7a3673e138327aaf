"""Prices of a user's own file win; what is missing or zero is never a low price."""

import datetime
from collections.abc import Mapping
from pathlib import Path

import pytest

from driple.catalog import Price, shipped_catalog
from driple.errors import ConfigError
from driple.planning.prices import PriceBook, check_region, read_prices
from driple.remarks import remark
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


def rows(folder: Path, *lines: str) -> Mapping[str, tuple[Price, ...]]:
    """Prices of a table with all columns."""
    head = "name,per_hour,spot,region,date,source\n"
    return read_prices(written(folder, "rows.csv", head + "\n".join(lines) + "\n")).prices


def test_every_cell_of_a_table_is_read(tmp_path: Path) -> None:
    """Cells and names without the space around them; empty ones are as if they were not there."""
    prices = rows(
        tmp_path, " a , 1.5 ,TRUE,here,2026-01-02,by hand", "a,2,no, ,,", "b,3,1,,,", "c,4,0,,,"
    )
    assert prices["a"] == (
        Price(
            per_hour=1.5, spot=True, region="here", date=datetime.date(2026, 1, 2), source="by hand"
        ),
        Price(per_hour=2.0, spot=False, region=None, date=None, source="rows.csv"),
    )
    assert [prices[name][0].spot for name in ("b", "c")] == [True, False]
    assert [rows(tmp_path, f"a,1,{word},,,")["a"][0].spot for word in ("yes", "false", "Yes")] == [
        True, False, True,
    ]  # fmt: skip


def test_a_price_is_looked_up_by_region_and_kind(tmp_path: Path) -> None:
    """Of several prices the lowest; one of another region, or a spot price, is none."""
    own = read_prices(
        written(
            tmp_path, "a.csv",
            "name,per_hour,spot,region\nm,5,,here\nm,4,,there\nm,1,true,here\nm,6,,\n",
        )
    )  # fmt: skip

    def per_hour(*, spot: bool = False, region: str | None = None) -> float | None:
        price = PriceBook(files=(own,), spot=spot, region=region).price("m", None)
        return None if price is None else price.per_hour

    assert per_hour() == 4.0
    assert per_hour(region="here") == 5.0
    assert per_hour(region="there") == 4.0
    assert per_hour(spot=True) == 1.0
    assert per_hour(spot=True, region="there") is None
    assert per_hour(region="nowhere") is None
    assert PriceBook(files=(own,)).price("other", None) is None
    assert PriceBook().price("m", None) is None


def test_a_later_file_refuses_what_an_earlier_one_has(tmp_path: Path) -> None:
    """A price of 0 there is why there is none; a price of an even later file counts again."""
    own = read_prices(written(tmp_path, "a.csv", "name,per_hour\np3.2xlarge,1\n"))
    sky = read_prices(
        written(tmp_path, "vms.csv", HEAD + "p3.2xlarge,V100,1.0,8,61,,0.0,0.5,us-east-1,a\n")
    )
    instance = KNOWN["p3.2xlarge"]
    assert PriceBook(files=(own, sky)).price("p3.2xlarge", instance) is None
    back = PriceBook(files=(sky, own)).price("p3.2xlarge", instance)
    assert back is not None and back.per_hour == 1.0
    spot = PriceBook(files=(own, sky), spot=True).price("p3.2xlarge", instance)
    assert spot is not None and spot.per_hour == 0.5
    why = PriceBook(files=(own, sky)).why_none("p3.2xlarge", instance)
    assert why.code == "price_refused"
    assert why.values == {"file": "vms.csv", "reason": "a price of 0"}


def test_why_there_is_no_price() -> None:
    """Machines of one's own have none; of an instance, what was asked for is said."""
    instance = KNOWN["p3.2xlarge"]
    assert PriceBook().why_none("m", None) == remark("no_price_of_own", name="m")
    asked = PriceBook(date=datetime.date(2020, 1, 2), region="here", spot=True)
    assert asked.why_none("p3.2xlarge", instance) == remark(
        "price_not_known", is_spot=True, region="here", date="2020-01-02"
    )
    assert PriceBook().why_none("p3.2xlarge", instance) == remark(
        "price_not_known", is_spot=False, region=None, date=None
    )


@pytest.mark.parametrize(
    ("row", "reasons"),
    [
        ("V100,,,,,,,", ("no price", "no spot price")),
        ("V100,,,,,abc,nan,", ("the price 'abc'", "the spot price 'nan'")),
        ("V100,,,,,-1,0,", ("a price of -1", "a spot price of 0")),
        (
            ",,,,,1,1,",
            (
                "a price of the machine without its devices",
                "a spot price of the machine without its devices",
            ),
        ),
    ],
)
def test_why_a_cell_of_a_catalogue_is_no_price(
    tmp_path: Path, row: str, reasons: tuple[str, str]
) -> None:
    file = read_prices(written(tmp_path, "vms.csv", f"{HEAD}m,{row},\n"))
    assert dict(file.prices) == {}
    assert [file.refused["m", spot].values["reason"] for spot in (False, True)] == [*reasons]
    assert all(reason.values["file"] == "vms.csv" for reason in file.refused.values())


def test_the_lowest_of_several_zones_counts_in_any_order(tmp_path: Path) -> None:
    """By region, and with the name of the file; a row without a region is of none."""
    lines = ["m,V,1,1,1,,3,2,a,x\n", "m,V,1,1,1,,2,3,a,y\n", "m,V,1,1,1,,9,,,z\n"]
    for order in (lines, lines[::-1]):
        file = read_prices(written(tmp_path, "vms.csv", HEAD + "".join(order)))
        cheapest = {(price.region, price.spot): price for price in file.prices["m"]}
        assert {key: price.per_hour for key, price in cheapest.items()} == {
            ("a", False): 2.0, ("a", True): 2.0, (None, False): 9.0,
        }  # fmt: skip
        assert {price.source for price in cheapest.values()} == {"vms.csv"}
        assert dict(file.refused) == {}  # one zone has a spot price
        assert not file.is_own


def test_names_that_are_no_machines_are_left_out(tmp_path: Path) -> None:
    """And those of one machine come together; a catalogue keeps its own names."""
    text = "name,per_hour\na,1\nA,2\nb,3\n" + "".join(f"x{i}{'y' * 50},1\n" for i in range(7))
    own = read_prices(written(tmp_path, "a.csv", text))
    assert own.is_own and own.unknown == ()
    named = own.with_names(lambda name: None if name.startswith("x") else name.lower())
    assert {name: [one.per_hour for one in prices] for name, prices in named.prices.items()} == {
        "a": [1.0, 2.0], "b": [3.0],
    }  # fmt: skip
    assert len(named.unknown) == 7
    unused = named.unused(Path("a.csv"))
    assert unused.code == "prices_not_used"
    names = tuple(f"x{i}{'y' * 38}" for i in range(5))  # 40 letters of the first five
    assert unused.values == {"file": "a.csv", "names": names, "num_names": 7}
    sky = read_prices(written(tmp_path, "vms.csv", HEAD + "m,V,1,1,1,,3,2,a,x\n"))
    assert sky.with_names(lambda _: None) is sky


def test_a_region_must_be_one_of_some_price(tmp_path: Path) -> None:
    """Of the catalogue, or of a user's file."""
    own = read_prices(written(tmp_path, "a.csv", "name,per_hour,region\nm,1,mine\nm,2,\n"))
    instances = [KNOWN["p3.2xlarge"]]
    (region,) = {price.region for price in instances[0].prices if price.region is not None}
    for known in (None, "mine", region):
        check_region(known, [own], instances)
    with pytest.raises(ConfigError, match=f"'moon'; there are prices of mine, {region}; give"):
        check_region("moon", [own], instances)
    with pytest.raises(ConfigError, match="'mine'"):
        check_region("mine", [], instances)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[[prices]]\nname = 3\nper_hour = 1\n", "row 1 must be a text, got 3"),
        ("a.toml", '[[prices]]\nname = " "\nper_hour = 1\n', "must be a text"),
        ("a.toml", 'prices = [{name = "a", per_hour = 1}, 7]\n', "row 2 is not a table .*got 7"),
        ("a.toml", 'more = 1\n[[prices]]\nname = "a"\nper_hour = 1\n', "and nothing else"),
        ("a.toml", "[[prices]]\nper_hour = 1\n", "row 1 has no name"),
        ("a.csv", "name,per_hour\na,1\nb,x\n", "line 3 must be a number, got 'x'"),
        (
            "a.csv",
            "name,per_hour,odd\na,1,2\n",
            "line 2 has an unknown field 'odd'; known are name",
        ),
        ("a.csv", "", "of no table"),
        ("a.csv", "InstanceType,Price,Region\np3,1,a\n", "lacks AcceleratorName, SpotPrice of"),
        ("vms.csv", HEAD + "m,V,1,1,1,,3,2,a,x,more\n", "line 2 has more cells"),
    ],
)
def test_what_is_wrong_is_said_with_its_row(
    tmp_path: Path, name: str, text: str, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        read_prices(written(tmp_path, name, text))


def test_a_file_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its bytes, and by its lines: just as many as may be are read."""
    monkeypatch.setattr("driple.planning.prices._MOST_ROWS", 3)
    head = "name,per_hour\n"
    assert len(read_prices(written(tmp_path, "a.csv", head + "a,1\nb,1\n")).prices) == 2
    with pytest.raises(ConfigError, match="over 3 lines"):
        read_prices(written(tmp_path, "a.csv", head + "a,1\nb,1\nc,1\n"))
    monkeypatch.setattr("driple.planning.prices._MOST_BYTES", len(head) + 4)
    assert read_prices(written(tmp_path, "a.csv", head + "a,1\n")).prices
    with pytest.raises(ConfigError, match=f"over {len(head) + 4} bytes"):
        read_prices(written(tmp_path, "a.csv", head + "a,10\n"))


def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path: Path) -> None:
    file = tmp_path / "A.TOML"
    file.write_bytes('\ufeff[[prices]]\nname = "a"\nper_hour = 1\n'.encode())
    assert set(read_prices(file).prices) == {"a"}
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_prices(tmp_path / "b.csv")
