"""What a plan is asked to look at: machines, prices and profiles that go together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driple.api.plan_places import (
    PlacesAsked,
    PricesAsked,
    book_of,
    measured_offers,
    places_of,
    profiles_of,
)
from driple.catalog import read_catalog, shipped_catalog
from driple.errors import ConfigError
from driple.planning.amount import AmountAsked
from driple.planning.prices import PriceBook
from tests.profiler.profiles import write_profile

KNOWN = shipped_catalog().instances


def names(asked: PlacesAsked, measured: set[str] | None = None, **more: Any) -> list[str]:
    values = {"known": KNOWN, "catalog": None, **more}
    places, _ = places_of(asked, values["known"], values["catalog"], measured or set(), [])
    return [place.name for place in places]


def test_every_number_of_every_instance_is_looked_at() -> None:
    asked = PlacesAsked(instances=["p3"], machines=[1, 2])
    assert names(asked) == [
        "p3.2xlarge", "2xp3.2xlarge", "p3.8xlarge", "2xp3.8xlarge", "p3.16xlarge", "2xp3.16xlarge",
    ]  # fmt: skip


def test_what_was_measured_is_not_simulated() -> None:
    asked = PlacesAsked(instances=["p3"])
    assert names(asked, {"p3.8xlarge"}) == ["p3.2xlarge", "p3.16xlarge"]


def test_devices_choose_among_instances() -> None:
    some = names(PlacesAsked(devices=["T4"]))
    assert some and all(KNOWN[name].device == "T4" for name in some)
    assert names(PlacesAsked(devices=["any"])) == names(PlacesAsked())
    assert set(some) < set(names(PlacesAsked()))


def test_settings_of_the_user_are_each_looked_at_once() -> None:
    asked = PlacesAsked(settings=["8xH100", "8xH100/NVLink", "1xV100"])
    assert names(asked) == ["8xH100/NVLink", "1xV100"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"settings": ["1xH100"], "instances": ["p3"]}, "--setting names all machines"),
        ({"settings": ["1xH100"], "devices": ["T4"]}, "--setting names all machines"),
        ({"settings": ["1xH100"], "machines": (2,)}, "--setting names all machines"),
        ({"devices": ["own"]}, "--catalog FILE.toml"),
    ],
)
def test_what_does_not_go_together_is_refused(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        PlacesAsked(**values)
    PlacesAsked(settings=["1xH100"], machines=(1,))


def test_own_instances_are_those_that_a_file_adds_or_changes(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[[instances]]\nname = "p3.2xlarge"\nprice_per_hour = 1.1\n'
        '[[instances]]\nname = "mine"\nprovider = "me"\ndevice = "T4"\n'
        'num_devices = 1\ninterconnect = "PCIe"\nsource = "the label"\n'
    )
    catalog = read_catalog([file])
    asked = PlacesAsked(devices=["own"], catalogs=[file])
    chosen = names(asked, known=catalog.instances, catalog=catalog)
    assert sorted(chosen) == ["mine", "p3.2xlarge"]
    both = PlacesAsked(devices=["own", "T4"], catalogs=[file])
    assert names(both, known=catalog.instances, catalog=catalog) == ["mine"]
    with pytest.raises(ConfigError, match=r"no file of --catalog has an \[\[instances\]\] row"):
        names(asked)


def written(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_prices_of_the_user_are_found_by_any_name_of_the_machines(tmp_path: Path) -> None:
    """`8xH100` is `8xH100/NVLink`; the last file wins; what nothing is called is kept aside."""
    first_file = written(tmp_path, "a.csv", "name,per_hour\n8xH100,7\nnothing,1\n")
    two = written(tmp_path, "b.csv", "name,per_hour\n8xH100,5\n")
    book = book_of(PricesAsked(files=[first_file, two]), KNOWN, None)
    price = book.price("8xH100/NVLink", None)
    assert price is not None and price.per_hour == 5.0
    assert book.files[0].unknown == ("nothing",)
    first = book_of(PricesAsked(files=[two, first_file]), KNOWN, None).price("8xH100/NVLink", None)
    assert first is not None and first.per_hour == 7.0


def test_a_region_that_no_price_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no price is of 'atlantis'"):
        book_of(PricesAsked(region="atlantis"), KNOWN, None)
    mine = written(tmp_path, "a.csv", "name,per_hour,region\n8xH100,7,atlantis\n")
    asked = PricesAsked(files=[mine], region="atlantis", spot=True)
    book = book_of(asked, KNOWN, None)
    assert (book.region, book.spot, book.date) == ("atlantis", True, None)


@pytest.mark.parametrize("pairs", [["a=b"], [("a",)], [("a", "b", "c")], [3], ["ab"]])
def test_profiles_are_pairs(pairs: list[Any]) -> None:
    with pytest.raises(ConfigError, match="pairs of a folder and the name of an instance"):
        profiles_of(pairs)


def test_a_profile_of_an_instance_is_an_offer(tmp_path: Path) -> None:
    folder = write_profile(tmp_path / "profile", {4: [0.5]})
    (pair,) = profiles_of([(str(folder), "p3.2xlarge")])
    assert pair == (folder, "p3.2xlarge")
    (offer,) = measured_offers([pair], KNOWN, PriceBook(), AmountAsked(samples=100))
    assert (offer.name, offer.provenance) == ("p3.2xlarge", "measured")
    assert offer.price is not None
    with pytest.raises(ConfigError, match="with an instance such as p3"):
        measured_offers([(folder, "p9")], KNOWN, PriceBook(), AmountAsked())
