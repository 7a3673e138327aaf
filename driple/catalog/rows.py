"""Rows of catalogue files: TOML text -> checked rows by table, each with its file and source.

    devices.toml, FILE.toml ... -> parse_file -> Row (values of known fields) -> merged by name

A file may hold any of the tables `generations`, `devices`, `links` and `instances`. Everything is
bounded, since users pass such files on to each other.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from driple.catalog.fields import (
    DEVICE_FACTS,
    EARLIER_TRAINING,
    GENERATION_FIELDS,
    HOST_RUNS,
    INSTANCE_FIELDS,
    LINK_FIELDS,
    PRICE_FIELDS,
    TUNED,
    TUNING_FACTS,
    Field,
    check_field,
)
from driple.checks import check_number
from driple.errors import ConfigError
from driple.plaintoml import read_plain_toml

__all__ = [
    "TABLES",
    "PriceRow",
    "Row",
    "merged",
    "parse_content",
    "parse_file",
    "read_content",
    "read_file",
]

FORMAT = 1
MAX_BYTES = 2**19
MAX_ROWS = 2000  # of one table
MAX_PRICES = 200  # of one instance
TABLES = ("generations", "devices", "links", "instances")
_OF_MACHINES = frozenset({"machine", "host", "collectives"})  # see `driple.catalog.machine_file`
_TEXTS, _SOURCES, _DATE = Field(kind="texts"), Field(kind="sources"), Field(kind="date")
_FIELDS: Mapping[str, Mapping[str, Field]] = {
    "generations": GENERATION_FIELDS,
    "devices": {
        "generation": Field(kind="text"),
        "aliases": _TEXTS,
        "unknown": _TEXTS,
        "source": _SOURCES,
        "date": _DATE,
        **DEVICE_FACTS,
        **TUNING_FACTS,
    },
    "links": LINK_FIELDS,
    "instances": INSTANCE_FIELDS,
}
# Fields with a form of their own, read by `_row`.
_EXTRA = {"instances": ("prices", "price_per_hour")}

Value = float | int | bool | str | datetime.date | tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceRow:
    """One price of an instance, as read; without a date it is the user's own."""

    per_hour: float
    date: datetime.date | None
    region: str | None
    source: str
    spot: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One row of a table.

    Attributes:
        name: what it describes.
        values: by field, checked; texts in lists are tuples, `source` is one text.
        prices: prices of an instance.
        file: its file, as errors name it.
        own: whether it comes from a file of the user's.
    """

    name: str
    values: Mapping[str, Value]
    prices: tuple[PriceRow, ...] = ()
    file: str
    own: bool

    def text(self, key: str) -> str:
        """The value of a text field, empty if the row lacks it."""
        return str(self.values.get(key, ""))

    def texts(self, key: str) -> tuple[str, ...]:
        """The value of a list of texts, empty if the row lacks it."""
        value = self.values.get(key, ())
        return value if isinstance(value, tuple) else (str(value),)

    def number(self, key: str) -> float | None:
        """The value of a number, None if the row lacks it."""
        value = self.values.get(key)
        return float(value) if isinstance(value, float | int) else None

    def required(self, key: str) -> float:
        """The value of a number that the row has.

        Raises:
            ConfigError: it does not have it.
        """
        value = self.number(key)
        if value is None:
            raise ConfigError(f"{self.file}: {self.name} has no {key}; add it")
        return value

    def date(self) -> datetime.date | None:
        """The day of the row, None if it does not say."""
        value = self.values.get("date")
        return value if isinstance(value, datetime.date) else None


@dataclass(frozen=True, slots=True)
class _Source:
    """Where rows come from: the file's name, its table of sources, whether it is the user's own."""

    file: str
    texts: Mapping[str, str] = field(hash=False)
    own: bool

    def of(self, value: object) -> str:
        """The text of a `source` field: keys of the file's sources, or words of its own."""
        parts = [str(part) for part in value] if isinstance(value, list) else [str(value)]
        return "; ".join(self.texts.get(part, part) for part in parts)


def read_file(path: Path) -> dict[str, list[Row]]:
    """The rows of a user's file, by table.

    Raises:
        ConfigError: it cannot be read, or a row is wrong.
    """
    return parse_content(read_content(path, "catalogue"), str(path), own=True)


def read_content(path: Path, kind: str) -> dict[str, object]:
    """The tables of a user's TOML file, bounded in size.

    Args:
        path: the file.
        kind: what it is, for errors.

    Raises:
        ConfigError: it cannot be read, is too large, or is no TOML.
    """
    try:
        with path.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{kind} {path} cannot be read ({error})") from error
    return _parse(text, str(path))


def parse_file(text: str, file: str, *, own: bool) -> dict[str, list[Row]]:
    """The rows of a catalogue file, by table.

    Args:
        text: content of the file.
        file: its name, as errors give it.
        own: whether it is the user's, whose rows need neither source nor date.

    Raises:
        ConfigError: no TOML, too large, or a row that is wrong; with file, row and field.
    """
    return parse_content(_parse(text, file), file, own=own)


def parse_content(content: Mapping[str, object], file: str, *, own: bool) -> dict[str, list[Row]]:
    """The rows of tables that were read, by table; arguments and errors as of `parse_file`."""
    if not _OF_MACHINES.isdisjoint(content):
        raise ConfigError(
            f"{file} is a file of driple measure --machine; give it to driple predict --machine "
            f"{file}"
        )
    odd = set(content) - {"format", "sources", *TABLES}
    if odd:
        raise ConfigError(
            f"{file} has an unknown table {sorted(odd)[0]!r}; known are {', '.join(TABLES)}"
        )
    if content.get("format", FORMAT) != FORMAT:
        raise ConfigError(f"{file} has format {content['format']!r}; this Driple reads {FORMAT}")
    texts = content.get("sources", {})
    if not isinstance(texts, dict) or not all(isinstance(word, str) for word in texts.values()):
        raise ConfigError(f"{file}: [sources] must be names with their texts")
    source = _Source(file, texts, own)
    return {table: _rows(content.get(table, []), table, source) for table in TABLES}


def _parse(text: str, file: str) -> dict[str, object]:
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{file} has over {MAX_BYTES} bytes; keep only the rows that you need")
    try:
        return read_plain_toml(text)
    except ValueError as error:
        raise ConfigError(f"{file} is no TOML: {error}") from error


def _rows(entries: object, table: str, source: _Source) -> list[Row]:
    if not isinstance(entries, list):
        raise ConfigError(f"{source.file}: {table} must be rows that begin with [[{table}]]")
    if len(entries) > MAX_ROWS:
        raise ConfigError(
            f"{source.file} has {len(entries)} rows of {table}, at most {MAX_ROWS} are read"
        )
    rows = [_row(entry, f"row {number} of {table}", table, source) for number, entry in
            enumerate(entries, 1)]  # fmt: skip
    names = [row.name for row in rows]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ConfigError(f"{source.file}: two rows of {table} are called '{twice[0]}'; keep one")
    return rows


def _row(entry: object, number: str, table: str, source: _Source) -> Row:
    if not isinstance(entry, dict):
        raise ConfigError(f"{source.file}: {number} is not a table of fields, got {entry!r:.80}")
    named = f"{source.file}, {number}"
    check_field(Field(kind="text"), "name", entry.get("name"), named)
    name = entry["name"]
    where = f"{source.file}, {number} ({name})"
    known = _FIELDS[table]
    values: dict[str, Value] = {}
    prices: tuple[PriceRow, ...] = ()
    for key, value in entry.items():
        if key in known:
            check_field(known[key], key, value, where)
            values[key] = source.of(value) if key == "source" else _plain(value)
        elif key in _EXTRA.get(table, ()):
            prices = _prices(entry, where, source)
        elif key != "name":
            raise ConfigError(
                f"{where} has an unknown field {key!r}; known are "
                f"{', '.join((*sorted(known), *_EXTRA.get(table, ())))}"
            )
    if not source.own:
        for key in ("source", "date"):
            if key not in values:
                raise ConfigError(f"{where} has no {key}")
    _check_unknown(values, where)
    _check_tuning(values, where)
    return Row(name=name, values=values, prices=prices, file=source.file, own=source.own)


def _check_unknown(values: Mapping[str, Value], where: str) -> None:
    """Refuse a field that is listed as unknown and stated, or that there is not."""
    for name in values.get("unknown", ()) or ():  # type: ignore[union-attr]
        if name not in DEVICE_FACTS:
            raise ConfigError(f"unknown of {where} lists {name!r}, which is no field of a device")
        if name in values:
            raise ConfigError(f"{where} states {name} and lists it as unknown; keep one")


def _check_tuning(values: Mapping[str, Value], where: str) -> None:
    """Refuse a tuned device that lacks a part of what a tuning writes, as a file cut short does.

    Earlier files do not tell how many runs waited for their host. Kernels that were measured one by
    one tell of no host and no run.
    """
    if values.keys().isdisjoint(TUNING_FACTS):
        return
    pipes = [f"tuned_{name}" for name in TUNED if name != "host"]
    of_runs = [name for name in TUNING_FACTS if name not in (*EARLIER_TRAINING, "tuned_kernels")]
    needed = pipes if "tuned_kernels" in values else of_runs
    lacking = [name for name in (*needed, "source", "date") if name not in values]
    if set(lacking) - {HOST_RUNS}:
        raise ConfigError(
            f"{where} is tuned and lacks {', '.join(lacking)}; a tuning writes them all: copy its "
            "file again, or write it anew with driple transfer --from gpu"
        )


def _plain(value: object) -> Value:
    """Lists of texts as tuples, all else as it is."""
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


def _prices(entry: Mapping[str, object], where: str, source: _Source) -> tuple[PriceRow, ...]:
    if "price_per_hour" in entry:
        own = entry["price_per_hour"]
        check_number(f"price_per_hour of {where}", own, above=0)
        return (PriceRow(per_hour=float(str(own)), date=None, region=None, source=where),)
    prices = entry["prices"]
    if not isinstance(prices, list) or len(prices) > MAX_PRICES:
        raise ConfigError(
            f"prices of {where} must be a list of at most {MAX_PRICES}, each with per_hour and date"
        )
    return tuple(_price(item, f"a price of {where}", source) for item in prices)


def _price(price: object, where: str, source: _Source) -> PriceRow:
    if not isinstance(price, dict) or "per_hour" not in price:
        raise ConfigError(f"{where} has no per_hour, got {price!r:.80}")
    odd = set(price) - set(PRICE_FIELDS)
    if odd:
        raise ConfigError(
            f"{where} has an unknown field {sorted(odd)[0]!r}; known are {', '.join(PRICE_FIELDS)}"
        )
    for key, value in price.items():
        check_field(PRICE_FIELDS[key], key, value, where)
    if not source.own:
        for key in ("date", "region", "source"):
            if key not in price:
                raise ConfigError(f"{where} has no {key}")
    return PriceRow(
        per_hour=float(price["per_hour"]),
        date=price.get("date"),
        region=price.get("region"),
        source=source.of(price["source"]) if "source" in price else source.file,
        spot=bool(price.get("spot", False)),
    )


def merged(before: Mapping[str, Row], rows: Iterable[Row]) -> dict[str, Row]:
    """Rows by name, where later rows replace the fields that they state.

    A fact that a later row states is no longer unknown; a list of prices replaces the earlier one.
    """
    rows_by_name = dict(before)
    for row in rows:
        old = rows_by_name.get(row.name)
        if old is None:
            rows_by_name[row.name] = row
            continue
        values = {**old.values, **row.values}
        if "unknown" not in row.values:
            values["unknown"] = tuple(
                name for name in old.texts("unknown") if name not in row.values
            )
        elif old.values:
            for name in row.texts("unknown"):
                values.pop(name, None)
        values["aliases"] = tuple(dict.fromkeys((*old.texts("aliases"), *row.texts("aliases"))))
        if "source" not in row.values:
            values["source"] = f"{old.text('source')}; {row.file}"
            values.pop("date", None)
        rows_by_name[row.name] = Row(
            name=row.name,
            values=values,
            prices=row.prices or old.prices,
            file=row.file,
            own=row.own,
        )
    return rows_by_name
