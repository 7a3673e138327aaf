"""Files of entries: every row is predicted or refused, and the same entry gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.predictions import RowPrediction, read_predictions
from scripts.entries import table
from scripts.entries.table import Entry, write_entry

ROWS = [MeasuredRun(id=name, setting="1xA100", step_s=1.0) for name in ("a", "b", "c")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(table, "ENTRIES", tmp_path / "entries")
    return tmp_path / "entries"


def test_an_entry_comes_back_with_its_reasons_counted(folder: Path) -> None:
    entry = Entry(name="x", seconds={"b": 1.2345678}, refused={"a": "no GPU", "c": "no GPU"})
    write_entry(entry, ROWS)
    first = (folder / "x.csv.gz").read_bytes()
    write_entry(entry, ROWS)
    assert (folder / "x.csv.gz").read_bytes() == first
    predictions = read_predictions(folder / "x.csv.gz")
    assert predictions.of("b", "family") == RowPrediction(1.2346)
    assert (folder / "x-refused.csv").read_text() == "reason,rows\nno GPU,2\n"


def test_an_entry_of_one_split_is_read_as_such(folder: Path) -> None:
    write_entry(Entry(name="x", seconds=dict.fromkeys("abc", 1.0), split="nothing"), ROWS)
    predictions = read_predictions(folder / "x.csv.gz")
    assert predictions.of("a", "nothing") == RowPrediction(1.0)
    assert predictions.of("a", "family") is None


def test_a_row_that_is_forgotten_is_an_error(folder: Path) -> None:
    with pytest.raises(ConfigError, match="neither predicts nor refuses row c"):
        write_entry(Entry(name="x", seconds={"a": 1.0}, refused={"b": "no"}), ROWS)
