"""Prices of a user's own file: TOML, CSV, or the catalogue that SkyPilot keeps on a machine.

    FILE --read_prices--> PriceFile (prices by name, and names that have no price that can be used)

A price that is missing, zero or of a machine without its devices is never taken for a low price.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from math import isfinite
from pathlib import Path

from driple.catalog import Instance, Price
from driple.catalog.fields import PRICE_FIELDS, check_field
from driple.errors import ConfigError
from driple.plaintoml import read_plain_toml
from driple.remarks import Remark, remark

__all__ = ["PriceBook", "PriceFile", "check_region", "read_prices"]

_MOST_BYTES = 2**26
_MOST_ROWS = 500_000
_MOST_SHOWN = 40
_MOST_NAMES = 5  # that a sentence lists
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SKYPILOT = ("InstanceType", "AcceleratorName", "Price", "SpotPrice", "Region")
_WORDS = {False: "price", True: "spot price"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceFile:
    """Prices of one file.

    Attributes:
        prices: of one machine, by name of instance or setting.
        refused: why a name has no price on demand (False) or spot price (True), by both.
        is_own: whether a user wrote the names; otherwise they are those of SkyPilot.
        unknown: names that no machine has, whose prices are left out.
    """

    prices: Mapping[str, tuple[Price, ...]]
    refused: Mapping[tuple[str, bool], Remark] = field(default_factory=dict)
    is_own: bool = False
    unknown: tuple[str, ...] = ()

    def with_names(self, full_name: Callable[[str], str | None]) -> PriceFile:
        """The same prices under the full names of machines: `8xH100` is `8xH100/NVLink`.

        A SkyPilot catalogue has its own names, of which most are no machines with devices.

        Args:
            full_name: of a name that a user wrote; None if nothing is called so.
        """
        if not self.is_own:
            return self
        by_name: dict[str, tuple[Price, ...]] = {}
        unknown = []
        for name, prices in self.prices.items():
            full = full_name(name)
            if full is None:
                unknown.append(name)
            else:
                by_name[full] = (*by_name.get(full, ()), *prices)
        return replace(self, prices=by_name, unknown=tuple(unknown))

    def unused(self, path: Path) -> Remark:
        """Which prices are left out."""
        return remark(
            "prices_not_used",
            file=str(path),
            names=tuple(name[:_MOST_SHOWN] for name in self.unknown[:_MOST_NAMES]),
            num_names=len(self.unknown),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceBook:
    """Where prices come from: the user's files, then the catalogue.

    Attributes:
        files: of the user, of which later ones take precedence.
        date: last day that counts; the newest price if None.
        region: of prices; any if None.
        spot: whether spot prices are asked for.
    """

    files: tuple[PriceFile, ...] = ()
    date: datetime.date | None = None
    region: str | None = None
    spot: bool = False

    def price(self, name: str, instance: Instance | None) -> Price | None:
        """The price of one machine; None if none is known that can be used.

        Args:
            name: of the setting of one machine.
            instance: of the catalogue; None for a setting of the user's own machines.
        """
        for file in reversed(self.files):
            own = [
                price
                for price in file.prices.get(name, ())
                if price.spot is self.spot and self.region in {None, price.region}
            ]
            if own:
                return min(own, key=lambda price: price.per_hour)
            if (name, self.spot) in file.refused:
                return None
        return None if instance is None else instance.price(self.date, self.region, spot=self.spot)

    def why_none(self, name: str, instance: Instance | None) -> Remark:
        """Why there is no price."""
        for file in reversed(self.files):
            if (name, self.spot) in file.refused:
                return file.refused[name, self.spot]
        if instance is None:
            return remark("no_price_of_own", name=name)
        date = None if self.date is None else self.date.isoformat()
        return remark("price_not_known", is_spot=self.spot, region=self.region, date=date)


def check_region(
    region: str | None, files: Iterable[PriceFile], instances: Iterable[Instance]
) -> None:
    """Refuse a region that no price has: a misspelt one would only leave all offers without price.

    Args:
        region: that is asked for; any if None.
        files: prices of the user.
        instances: of the catalogue, with their prices.

    Raises:
        ConfigError: no price has it.
    """
    if region is None:
        return
    named = {price.region for one in instances for price in one.prices}
    named |= {price.region for file in files for prices in file.prices.values() for price in prices}
    if region not in named:
        known = ", ".join(sorted(one for one in named if one is not None))
        raise ConfigError(
            f"--set region: no price is of {region!r:.80}; there are prices of {known}; give one "
            "of these, or prices of that region with --prices FILE"
        )


def read_prices(path: Path) -> PriceFile:
    """Prices of a user's file.

    A `.toml` file has rows `[[prices]]` with `name`, `per_hour`, and if need be `spot`, `region`,
    `date` and `source`. A CSV file has these as columns, or those of a SkyPilot catalogue
    (`vms.csv`: InstanceType, AcceleratorName, ..., Price, SpotPrice, Region).

    Raises:
        ConfigError: it cannot be read, or a row is wrong; with file, row and field.
    """
    try:
        with path.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--prices {path} cannot be read ({error})") from error
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"--prices {path} has over {_MOST_BYTES} bytes; keep the rows you need")
    if path.suffix.lower() == ".toml":
        return PriceFile(prices=_grouped(_toml_rows(text, path), path), is_own=True)
    return _csv_prices(text, path)


def _toml_rows(text: str, path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Rows of `[[prices]]`, each with its place."""
    try:
        content = read_plain_toml(text)
    except ValueError as error:
        raise ConfigError(f"--prices {path} is no TOML: {error}") from error
    rows = content.get("prices")
    if set(content) != {"prices"} or not isinstance(rows, list):
        raise ConfigError(
            f"--prices {path} must have rows [[prices]] with name and per_hour, and nothing else"
        )
    for number, row in enumerate(rows, 1):
        where = f"{path}, row {number}"
        if not isinstance(row, dict):
            raise ConfigError(f"--prices {where} is not a table of fields, got {row!r:.80}")
        yield where, row


def _grouped(
    rows: Iterable[tuple[str, Mapping[str, object]]], path: Path
) -> dict[str, tuple[Price, ...]]:
    """Prices by name; every price that a user writes must be one."""
    by_name: dict[str, list[Price]] = {}
    known = ("name", *PRICE_FIELDS)
    for where, row in rows:
        odd = [key for key in row if key not in known]
        missing = [key for key in ("name", "per_hour") if key not in row]
        if odd or missing:
            what = f"an unknown field {odd[0]!r}" if odd else f"no {missing[0]}"
            raise ConfigError(f"--prices {where} has {what}; known are {', '.join(known)}")
        name = row["name"]
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise ConfigError(f"name of --prices {where} must be a text, got {name!r:.80}")
        for key, value in row.items():
            if key != "name":
                check_field(PRICE_FIELDS[key], key, value, f"--prices {where} ({name[:80]})")
        by_name.setdefault(name.strip(), []).append(_price(row, path))
    if not by_name:
        raise ConfigError(f"--prices {path} has no price; add rows with name and per_hour")
    return {name: tuple(prices) for name, prices in by_name.items()}


def _price(row: Mapping[str, object], path: Path) -> Price:
    day, region = row.get("date"), row.get("region")
    source = row.get("source")
    return Price(
        per_hour=float(str(row["per_hour"])),
        date=day if isinstance(day, datetime.date) else None,
        region=region if isinstance(region, str) else None,
        source=source if isinstance(source, str) else path.name,
        spot=row.get("spot") is True,
    )


def _csv_prices(text: str, path: Path) -> PriceFile:
    reader = csv.DictReader(StringIO(text))
    try:
        names = tuple(reader.fieldnames or ())
        if {"InstanceType", "Price"} <= set(names):
            return _skypilot_prices(reader, names, path)
        if not {"name", "per_hour"} <= set(names):
            raise ConfigError(
                f"--prices {path} has the columns {', '.join(names)[:200] or 'of no table'}; it "
                "needs name and per_hour, or those of a SkyPilot catalogue (InstanceType, Price)"
            )
        return PriceFile(prices=_grouped(_csv_rows(reader, path), path), is_own=True)
    except csv.Error as error:
        raise ConfigError(f"--prices {path} is no CSV: {error}") from error


def _csv_rows(
    reader: csv.DictReader[str], path: Path
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Rows of the user's own columns, in the types of the fields; empty cells are left out."""
    for number, row in enumerate(reader, 2):
        _check_row(row, number, path)
        where = f"{path}, line {number}"
        cells: dict[str, object] = {}
        for key, cell in row.items():
            if cell is None or not cell.strip():
                continue
            cells[key] = _cell(key, cell.strip(), where)
        yield where, cells


def _cell(key: str, cell: str, where: str) -> object:
    """A cell in the type of its field."""
    if key == "per_hour":
        number = _number(cell)
        if number is None:
            raise ConfigError(f"per_hour of --prices {where} must be a number, got {cell[:40]!r}")
        return number
    if key == "spot":
        if cell.lower() not in _FLAGS:
            raise ConfigError(f"spot of --prices {where} must be true or false, got {cell[:40]!r}")
        return _FLAGS[cell.lower()]
    if key == "date":
        try:
            return datetime.date.fromisoformat(cell)
        except ValueError as error:
            raise ConfigError(
                f"date of --prices {where} must be a day such as 2026-08-26, got {cell[:40]!r}"
            ) from error
    return cell


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _check_row(row: Mapping[str | None, object], number: int, path: Path) -> None:
    if number > _MOST_ROWS:
        raise ConfigError(f"--prices {path} has over {_MOST_ROWS} lines; keep the rows you need")
    if None in row:
        raise ConfigError(f"--prices {path}, line {number} has more cells than the header")


def _skypilot_prices(reader: csv.DictReader[str], names: Sequence[str], path: Path) -> PriceFile:
    """Prices of a catalogue that SkyPilot fetched; of several zones of a region the lowest."""
    missing = [name for name in _SKYPILOT if name not in names]
    if missing:
        raise ConfigError(
            f"--prices {path} lacks {', '.join(missing)} of a SkyPilot catalogue's columns"
        )
    lowest: dict[tuple[str, bool, str], float] = {}
    zero: dict[tuple[str, bool], Remark] = {}
    for number, row in enumerate(reader, 2):
        _check_row(row, number, path)
        name = (row["InstanceType"] or "").strip()
        if not name:  # a device alone, which is rented with any machine
            continue
        for column, spot in (("Price", False), ("SpotPrice", True)):
            price, reason = _skypilot_cell(row, column)
            where = (name, spot, (row["Region"] or "").strip())
            if price is None:
                zero[name, spot] = remark("price_refused", file=path.name, reason=reason)
            else:
                lowest[where] = min(price, lowest.get(where, price))
    prices: dict[str, list[Price]] = {}
    for (name, spot, region), per_hour in lowest.items():
        prices.setdefault(name, []).append(
            Price(per_hour=per_hour, date=None, region=region or None, source=path.name, spot=spot)
        )
    with_price = {(name, spot) for name, spot, _ in lowest}
    return PriceFile(
        prices={name: tuple(rows) for name, rows in prices.items()},
        refused={key: reason for key, reason in zero.items() if key not in with_price},
    )


def _skypilot_cell(row: Mapping[str, str | None], column: str) -> tuple[float | None, str]:
    """A price, or why it is none."""
    text = (row[column] or "").strip()
    words = _WORDS[column == "SpotPrice"]
    if not (row["AcceleratorName"] or "").strip():
        return None, f"a {words} of the machine without its devices"
    number = _number(text) if text else None
    if number is None:
        return None, f"no {words}" if not text else f"the {words} {text[:_MOST_SHOWN]!r}"
    if number <= 0:
        return None, f"a {words} of {number:g}"
    return number, ""
