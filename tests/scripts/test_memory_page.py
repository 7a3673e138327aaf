"""The page on memory and its tables."""

from __future__ import annotations

import pytest

from driple.memory.calibration import shipped_memory_calibration
from scripts.fits.memory_check import checked_rows
from scripts.fits.memory_rows import MEMORY_FILE, read_memory_runs
from scripts.fits.memory_store import MEMORY_STEPS_FILE, MemoryStore
from scripts.pages.memory import (
    HOME,
    PUBLISHED,
    constant_table,
    family_table,
    files,
    shipped_checks,
    shown_table,
)
from scripts.studies.kit.tables import read_rows
from scripts.studies.kit.written import Table, csv_files, stale


def test_rows_of_some_sources_are_what_the_program_writes() -> None:
    """Those with few runs; and the constants, which no run changes."""
    known, some = shipped_memory_calibration(), ("litgpt", "torchtitan", "FlagPerf")
    runs = read_memory_runs(PUBLISHED / MEMORY_FILE)
    store = MemoryStore.open(PUBLISHED / MEMORY_STEPS_FILE)
    checked = checked_rows([run for run in runs if run.source in some], store, known)
    table = family_table(checked)
    rows = [dict(zip(table.head, cells, strict=True)) for cells in table.rows]
    assert rows == [row for row in read_rows(HOME / "families.csv") if row["source"] in some]
    assert {row["source"] for row in rows} == set(some)
    assert not stale(csv_files(HOME, {"constants": constant_table(known)}))


@pytest.mark.slow
def test_the_page_and_its_tables_are_what_the_program_writes() -> None:
    texts = files(shipped_checks(), shipped_memory_calibration())
    assert not stale(texts), "run python -m scripts.pages.memory"
    assert set(HOME.glob("*.csv")) == {file for file in texts if file.suffix == ".csv"}
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    for file in HOME.glob("*.csv"):
        assert f"]({file.name})" in readme


def test_the_page_shows_no_more_columns_than_it_needs() -> None:
    head = ["where", "number", "runs", "median_pct", "p90_pct", "signed_median_pct",
            "interval_runs", "inside_pct", "width"]  # fmt: skip
    shown = shown_table(Table(head, [["H100", "device", "9", "1", "6", "+1", "9", "99", "1.5"]]))
    assert shown.rows == [["H100", "device", "9", "1", "6", "99", "1.5"]]
