"""Dataclasses survive JSON, and JSON that does not fit is refused with the path of the field."""

from __future__ import annotations

import datetime
import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest

from driple.codec import MAX_DEPTH, Json, from_json, json_field, to_dict, to_json
from driple.errors import ConfigError, DatasetError


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    name: str
    seconds: float
    num_runs: int = 1


@dataclass(frozen=True, kw_only=True)
class Table:
    rows: tuple[Row, ...]
    by_name: Mapping[str, Row] = field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    steps: dict[int, float] = field(default_factory=dict)
    names: Sequence[str] = ()
    kind: Literal["ring", "servers"] = "ring"
    colour: Colour = Colour.RED
    date: datetime.date | None = None
    when: datetime.datetime = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)
    file: Path = Path("a/b")
    limit: int | str = 3
    of: str = field(default="x", metadata=json_field(name="from"))
    note: str | None = field(default=None, metadata=json_field(optional=True))
    later: int = field(default=0, metadata=json_field(may_lack=True))
    free: Json = None


@dataclass(frozen=True)
class Numbers:
    table: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Measured:
    host: str
    source: Literal["measured"] = "measured"


@dataclass(frozen=True)
class Simulated:
    seed: int
    source: Literal["simulated"] = "simulated"


@dataclass(frozen=True)
class Labels:
    about: Measured | Simulated


@dataclass(frozen=True)
class Open:
    name: str
    others: Mapping[str, Json] = field(default_factory=dict, metadata=json_field(rest=True))


@dataclass(frozen=True)
class Share:
    share: float

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigError(f"share must be in [0, 1], got {self.share}")


@dataclass(frozen=True)
class Chain:
    next: Chain | None


def through_json(value: object) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


ROW: dict[str, Any] = {"name": "a", "seconds": 1.5, "num_runs": 2}
TABLE = Table(
    rows=(Row(name="a", seconds=1.5, num_runs=2), Row(name="b", seconds=2)),
    by_name={"b": Row(name="b", seconds=0.0)},
    steps={1: 0.5, 20: 1.0},
    names=("x", "y"),
    kind="servers",
    colour=Colour.BLUE,
    date=datetime.date(2026, 11, 25),
    limit="all",
    of="y",
    note="seen",
    free={"any": [1, None, {"thing": True}]},
)


def test_a_dataclass_survives_json() -> None:
    stored = through_json(to_dict(TABLE))
    assert from_json(Table, stored, where="t.json") == TABLE
    assert stored["from"] == "y"
    assert stored["steps"] == {"1": 0.5, "20": 1.0}
    assert stored["colour"] == "blue"
    assert stored["date"] == "2026-11-25"
    assert list(stored)[:3] == ["rows", "by_name", "pair"]


def test_types_that_are_no_dataclass_are_converted_too() -> None:
    assert from_json(dict[str, Row], {"a": ROW}, where="t") == {"a": Row(**ROW)}
    assert to_json({"a": (Row(**ROW), np.float32(0.5), np.int64(3))}) == {"a": [ROW, 0.5, 3]}


def test_an_optional_field_may_be_missing_and_is_not_written_at_its_default() -> None:
    stored = to_dict(Table(rows=()))
    assert "note" not in stored
    assert stored.pop("later") == 0
    assert from_json(Table, stored, where="t.json").note is None


def test_other_fields_must_be_there_even_with_a_default() -> None:
    stored = to_dict(TABLE)
    del stored["pair"]
    with pytest.raises(ConfigError, match=r"^t\.json: pair is missing$"):
        from_json(Table, stored, where="t.json")


def test_a_rest_field_holds_the_keys_of_no_other_field() -> None:
    stored = {"name": "a", "made": "today", "others": 3, "list": [1]}
    read = from_json(Open, stored, where="o")
    assert read == Open("a", {"made": "today", "others": 3, "list": [1]})
    assert to_dict(read) == stored
    with pytest.raises(ConfigError, match=r"^o: list\[0\] is nan"):
        from_json(Open, {"name": "a", "list": [float("nan")]}, where="o")
    with pytest.raises(ConfigError, match=r"^result: name is given twice"):
        to_dict(Open("a", {"name": "b"}))


def test_arrays_of_numbers_survive_json() -> None:
    numbers = Numbers(np.array([[1.5, 2], [3, 4]]), np.array([1, 2], dtype=np.int32))
    read = from_json(Numbers, through_json(to_dict(numbers)), where="n")
    assert read.table.dtype == np.float64
    assert read.counts.dtype == np.int32
    np.testing.assert_array_equal(read.table, numbers.table)
    np.testing.assert_array_equal(read.counts, numbers.counts)
    assert from_json(Numbers, {"table": [], "counts": []}, where="n").table.shape == (0,)


@pytest.mark.parametrize(
    "table",
    [
        [[1], [1, 2]],
        ["1"],
        [None],
        1,
        {"a": 1},
        [True],
        [[True, 1.0]],
        [float("nan")],
        [10**400],
        "text",
    ],
)
def test_what_is_no_array_of_numbers_is_refused(table: object) -> None:
    with pytest.raises(ConfigError, match=r"^n: table must be a list of finite numbers"):
        from_json(Numbers, {"table": table, "counts": []}, where="n")


@pytest.mark.parametrize("counts", [[0.5], [2**40], [1.0]])
def test_numbers_that_do_not_fit_the_type_are_refused(counts: object) -> None:
    with pytest.raises(ConfigError, match=r"^n: counts must be a list of finite .* int32"):
        from_json(Numbers, {"table": [], "counts": counts}, where="n")


def test_a_literal_field_tells_unions_of_dataclasses_apart() -> None:
    for about in (Measured("h"), Simulated(3)):
        assert from_json(Labels, to_dict(Labels(about)), where="t") == Labels(about)
    with pytest.raises(ConfigError, match=r"^t: about\.host is missing$"):
        from_json(Labels, {"about": {"source": "measured"}}, where="t")
    with pytest.raises(ConfigError, match=r"^t: about must be Measured or Simulated, got"):
        from_json(Labels, {"about": {"source": "published"}}, where="t")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [ROW, {**ROW, "seconds": "1"}]}, "rows[1].seconds must be a finite number,"),
        ({"rows": [{**ROW, "num_runs": True}]}, "rows[0].num_runs must be a whole number,"),
        ({"rows": [{**ROW, "num_runs": 2.0}]}, "rows[0].num_runs must be a whole number, got 2.0"),
        ({"rows": [{**ROW, "speed": 1}]}, "rows[0].speed is unknown; known are name,"),
        ({"rows": [{"name": "a"}]}, "rows[0].seconds is missing"),
        ({"rows": {}}, "rows must be a list, got {}"),
        ({"rows": [3]}, "rows[0] must be an object, got 3"),
        ({"by_name": {"b": None}}, "by_name.b must be an object, got None"),
        ({"pair": [1]}, "pair must be a list of 2, got 1"),
        ({"pair": ["a", 1]}, "pair[0] must be a whole number, got 'a'"),
        ({"steps": {"one": 1}}, "steps.one must be a whole number, got 'one'"),
        ({"kind": "star"}, "kind must be one of ring, servers, got 'star'"),
        ({"colour": "green"}, "colour must be one of red, blue, got 'green'"),
        ({"date": "yesterday"}, "date must be a date such as 2026-11-25, got 'yesterday'"),
        ({"date": 20261125}, "date must be a date such as 2026-11-25, got 20261125"),
        ({"file": 1}, "file must be a path, got 1"),
        ({"limit": 1.5}, "limit must be int or str, got 1.5"),
        ({"of": "y"}, "of is unknown; known are rows, by_name, pair"),
        ({"free": [float("inf")]}, "free[0] is inf, which JSON cannot hold"),
        ({"rows": [{**ROW, "seconds": float("nan")}]}, "rows[0].seconds must be a finite number"),
        ({"rows": [{**ROW, "seconds": 10**400}]}, "rows[0].seconds must be a finite number,"),
        ({"names": ["a", 2]}, "names[1] must be text, got 2"),
    ],
)  # fmt: skip
def test_the_error_names_the_path_of_the_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError) as caught:
        from_json(
            Table, {**to_dict(TABLE), **change}, where="t.json", error=DatasetError, advice="fix it"
        )
    assert str(caught.value).startswith(f"t.json: {message}")
    assert str(caught.value).endswith("; fix it")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


def test_the_top_value_is_named_by_the_file_alone() -> None:
    with pytest.raises(ConfigError, match=r"^t\.json must be an object, got \[\]$"):
        from_json(Table, [], where="t.json")


def test_a_refusal_of_the_dataclass_itself_has_a_path_too() -> None:
    with pytest.raises(DatasetError, match=r"^t: a: share must be in \[0, 1\], got 2\.0"):
        from_json(dict[str, Share], {"a": {"share": 2}}, where="t", error=DatasetError)


def test_numbers_that_json_cannot_hold_are_not_written() -> None:
    with pytest.raises(ConfigError, match=r"^row: seconds is nan, which JSON cannot hold$"):
        to_dict(Row(name="a", seconds=float("nan")), where="row")
    with pytest.raises(ConfigError, match=r"^result: \[1\] is -inf"):
        to_json([1, float("-inf")])
    with pytest.raises(ConfigError, match=r"^result: \[0\] is nan"):
        to_json(np.array([np.nan]))


def test_depth_is_bounded_both_ways() -> None:
    deep: Any = None
    for _ in range(MAX_DEPTH + 5):
        deep = {"next": deep}
    with pytest.raises(ConfigError, match=f"is nested over {MAX_DEPTH} deep"):
        from_json(Chain, deep, where="t")
    with pytest.raises(ConfigError, match=f"is nested over {MAX_DEPTH} deep"):
        from_json(Json, deep, where="t")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"is nested over {MAX_DEPTH} deep"):
        to_json(deep)


def test_types_without_a_conversion_are_a_programmers_error() -> None:
    with pytest.raises(TypeError, match="codec does not convert"):
        from_json(set[int], [1], where="t")
    with pytest.raises(TypeError, match="codec does not convert set"):
        to_json({1})
