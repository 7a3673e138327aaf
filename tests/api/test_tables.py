"""A result as CSV says what its rows say, whatever text stands in them."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.api.results import Cell, Result
from driple.api.tables import csv_text, write_csv
from driple.codec import Json
from driple.errors import ConfigError


class Rows(Result):
    """A result of some rows."""

    def __init__(self, *rows: dict[str, Cell]) -> None:
        self._rows = [*rows]

    def to_dict(self) -> dict[str, Json]:
        return {}

    def rows(self) -> list[dict[str, Cell]]:
        return self._rows


_texts = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), whitelist_characters='\n,"'), max_size=8
)
_cells = st.one_of(st.none(), _texts, st.integers(), st.floats(allow_nan=False))


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "c,d", 'e"']), _cells), min_size=1))
def test_every_cell_can_be_read_back(rows: list[dict[str, Cell]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    read = list(csv.reader(StringIO(csv_text(Rows(*rows)), newline="")))
    if not names:
        assert read == [[]] * (1 + len(rows))
        return
    assert read[0] == names
    wanted = [["" if row.get(name) is None else str(row[name]) for name in names] for row in rows]
    assert [line or [""] for line in read[1:]] == wanted


def test_unknown_numbers_are_empty_cells() -> None:
    rows = Rows({"name": "x", "cost": None}, {"name": "y", "cost": 0.5, "late": "true"})
    assert csv_text(rows) == "name,cost,late\nx,,\ny,0.5,true\n"


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    write_csv(Rows({"a": 1}), file)
    assert file.read_bytes() == b"a\n1\n"
    write_csv(Rows({"b": "ß"}), file)
    assert file.read_text(encoding="utf-8") == "b\nß\n"
    with pytest.raises(ConfigError, match="missing"):
        write_csv(Rows({"a": 1}), tmp_path / "missing" / "rows.csv")
