"""The page on memory and its tables."""

from __future__ import annotations

from driple.memory.calibration import shipped_memory_calibration
from scripts.pages.memory import HOME, files, shipped_checks, shown_table
from scripts.studies.kit.written import Table, stale


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
