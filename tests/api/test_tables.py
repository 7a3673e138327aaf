"""Rows as CSV and Parquet: the same numbers, typed, with units in the names."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from io import BytesIO, StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import driple
from driple.api.results import Cell, Result
from driple.api.tables import check_table, csv_text, parquet_bytes, write_table
from driple.codec import Json
from driple.errors import ConfigError, MissingExtraError
from tests.cli.test_main import driple as command
from tests.cli.test_main import refused

pytest.importorskip("pyarrow")
from pyarrow import parquet


class Rows(Result):
    """Rows by hand."""

    def __init__(self, rows: Sequence[dict[str, Cell]]) -> None:
        self._rows = [*rows]

    def to_dict(self) -> dict[str, Json]:
        return {}

    def rows(self) -> list[dict[str, Cell]]:
        return self._rows


def test_columns_have_one_type_and_unknown_is_null() -> None:
    rows = Rows([{"n": 1, "time_s": 2, "name": "a"}, {"n": None, "time_s": 2.5, "name": 3}])
    table = parquet.read_table(BytesIO(parquet_bytes(rows)))
    assert [str(kind) for kind in table.schema.types] == ["int64", "double", "string"]
    assert table.to_pylist() == [
        {"n": 1, "time_s": 2.0, "name": "a"}, {"n": None, "time_s": 2.5, "name": "3"},
    ]  # fmt: skip


def test_a_sweep_is_the_same_in_both(tmp_path: Path) -> None:
    result = driple.sweep("mobilenet_v2", "4xA100", batch_sizes=[8, 16])
    for name in ("points.csv", "points.PARQUET"):
        write_table(result, tmp_path / name)
    read = [*csv.DictReader(StringIO((tmp_path / "points.csv").read_text()))]
    table = parquet.read_table(tmp_path / "points.PARQUET").to_pylist()
    assert [float(row["iteration_time_s"]) for row in read] == [
        row["iteration_time_s"] for row in table
    ]
    assert [row["batch_size"] for row in table] == [8, 16]
    assert csv_text(result) == (tmp_path / "points.csv").read_text()
    units = ("_s", "_bytes", "_pct", "_bits_per_s", "batch_size", "workers", "machines")
    assert all(name.endswith(units) for name in table[0])


def test_other_names_and_a_missing_package_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"\.csv or \.parquet"):
        check_table(tmp_path / "rows.xlsx")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="tables in Parquet need pyarrow"):
        check_table(tmp_path / "rows.parquet")
    check_table(tmp_path / "rows.csv")


def test_the_commands_write_them(tmp_path: Path) -> None:
    file = tmp_path / "offers.parquet"
    command("plan", "mobilenet_v2", "--instance", "p3.2xlarge", "-o", file)
    assert {"cost_usd", "price_usd_per_hour", "training_time_s"} <= set(
        parquet.read_table(file).column_names
    )
    assert ".csv or .parquet" in refused("sweep", "mobilenet_v2", "-o", tmp_path / "points.txt")


_texts = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), whitelist_characters='\n,"'), max_size=8
)
_cells = st.one_of(st.none(), _texts, st.integers(), st.floats(allow_nan=False))


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c,d", 'e"']), _cells), min_size=1))
def test_every_cell_can_be_read_back(rows: list[dict[str, Cell]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    read = list(csv.reader(StringIO(csv_text(Rows(rows)), newline="")))
    if not names:
        assert read == [[]] * (1 + len(rows))
        return
    assert read[0] == names
    wanted = [["" if row.get(name) is None else str(row[name]) for name in names] for row in rows]
    assert [line or [""] for line in read[1:]] == wanted


def test_unknown_numbers_are_empty_cells() -> None:
    rows = Rows([{"name": "x", "cost": None}, {"name": "y", "cost": 0.5, "late": "true"}])
    assert csv_text(rows) == "name,cost,late\nx,,\ny,0.5,true\n"


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    write_table(Rows([{"a": 1}]), file)
    assert file.read_bytes() == b"a\n1\n"
    write_table(Rows([{"b": "ß"}]), file)
    assert file.read_text(encoding="utf-8") == "b\nß\n"
    with pytest.raises(ConfigError, match="missing"):
        write_table(Rows([{"a": 1}]), tmp_path / "missing" / "rows.csv")
