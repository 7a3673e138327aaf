"""Tables of Parquet files: as written, in part, and within a bound that no header decides."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest

from driple.dataset import tables
from driple.dataset.tables import check_columns, read_table, require_pyarrow, write_table
from driple.errors import DatasetError, MissingExtraError


def _table(rows: int = 3000) -> pyarrow.Table:
    """More rows than are read at a time, with lists and texts."""
    return pyarrow.table(
        {
            "name": [f"job {row}" for row in range(rows)],
            "sizes": [list(range(row % 5)) for row in range(rows)],
            "seconds": [row / 7 for row in range(rows)],
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "rows.parquet"
    write_table(_table(), place, {"sizes.list.element": "DELTA_BINARY_PACKED"})
    return place


def test_a_table_comes_back_in_one_piece(file: Path) -> None:
    table = read_table(file)
    assert table.to_pylist() == _table().to_pylist()
    assert [column.num_chunks for column in table.columns] == [1, 1, 1]


def test_columns_are_read_alone_and_an_empty_table_keeps_them(file: Path, tmp_path: Path) -> None:
    assert read_table(file, ["seconds"]).column_names == ["seconds"]
    empty = tmp_path / "empty.parquet"
    write_table(_table(0), empty, {})
    assert read_table(empty).column_names == ["name", "sizes", "seconds"]
    assert read_table(empty).num_rows == 0


def test_a_small_file_that_swells_is_refused_before_it_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One text for very many rows takes a few kilobytes on the disk."""
    monkeypatch.setattr(tables, "MOST_BYTES", 2**30)
    place = tmp_path / "bomb.parquet"
    text = pyarrow.array(["x" * 100_000])
    indices = pyarrow.array([0] * 1_000_000, pyarrow.int32())
    column = pyarrow.DictionaryArray.from_arrays(indices, text)
    write_table(pyarrow.table({"name": column}), place, {})
    assert place.stat().st_size < 200_000
    with pytest.raises(DatasetError, match="over 1 GiB unpacked"):
        read_table(place)


def test_what_is_no_table_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="is missing"):
        read_table(tmp_path / "none.parquet")
    place = tmp_path / "rows.parquet"
    place.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(DatasetError, match="git lfs pull"):
        read_table(place)
    place.write_bytes(b"PAR1 and then something else PAR1")
    with pytest.raises(DatasetError, match="cannot read") as refused:
        read_table(place)
    assert "\n" not in str(refused.value)


def test_columns_must_be_there_of_their_type_and_full(file: Path) -> None:
    table = read_table(file)
    check_columns(table, {"name": "string", "sizes": "list<int64>", "seconds": "double"}, file)
    for kinds, words in (
        ({"size": "int64"}, "column 'size' is missing"),
        ({"name": "int64"}, "column 'name' is of type string, must be int64"),
    ):
        with pytest.raises(DatasetError, match=words):
            check_columns(table, kinds, file)
    holes = pyarrow.table({"name": ["a", None]})
    with pytest.raises(DatasetError, match="empty values"):
        check_columns(holes, {"name": "string"}, file)


def test_a_missing_library_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="data sets need pyarrow"):
        require_pyarrow()
