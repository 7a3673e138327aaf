"""The kit of the studies: tables, places of a page, stored results."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.errors import ConfigError
from scripts.studies.kit.page import MOST_WORDS, OLD_NUMBERS, fill, num_words, write_page
from scripts.studies.kit.results import add_result, mean_and_std, pick, read_results
from scripts.studies.kit.stored import read_stored, shown_parts, write_stored
from scripts.studies.kit.tables import cells, markdown, read_rows, write_rows
from scripts.studies.kit.written import written


def test_a_table_has_a_head_a_rule_and_rows() -> None:
    """Right-aligned but for the first column, if asked for."""
    assert markdown(["a", "b"], [["1", "2"]]) == ["| a | b |", "|---|---|", "| 1 | 2 |"]
    assert markdown(["a", "b"], [], right=True)[1] == "|---|---:|"
    assert cells("| 1 | 2 |") == ["1", "2"]


def test_rows_are_kept_in_a_csv_file(tmp_path: Path) -> None:
    """Text with a comma too."""
    rows = [{"name": "x, y", "value": "1.5"}, {"name": "z", "value": ""}]
    write_rows(tmp_path / "rows.csv", rows)
    assert read_rows(tmp_path / "rows.csv") == rows


def test_places_of_a_page_are_filled() -> None:
    """By text or the lines of a table; the mark of old numbers is always there."""
    page = fill(
        "# T\n{{old_numbers}}\n{{n}} of\n{{rows}}\n", {"n": "2", "rows": ["| a |", "|---|"]}
    )
    assert page == f"# T\n{OLD_NUMBERS}\n2 of\n| a |\n|---|\n"


@pytest.mark.parametrize(
    ("template", "parts", "why"),
    [
        ("{{n}}", {}, "has a place n"),
        ("text", {"n": "2"}, "has a part n"),
        ("word " * (MOST_WORDS + 1), {}, f"{MOST_WORDS + 1} words"),
    ],
)
def test_a_wrong_page_is_refused(template: str, parts: dict[str, str], why: str) -> None:
    """A place without a part, a part without a place, a long page."""
    with pytest.raises(ConfigError, match=why):
        fill(template, parts)


def test_tables_do_not_count_as_words(tmp_path: Path) -> None:
    """A page may have long tables."""
    (tmp_path / "page.in.md").write_text("three short words\n{{rows}}\n")
    write_page(tmp_path, {"rows": ["| a |"] * 2000})
    assert num_words((tmp_path / "page.md").read_text()) == 3


def test_results_are_appended_and_picked(tmp_path: Path) -> None:
    """A line each; mean and deviation over seeds, 0 of a single one."""
    file = tmp_path / "new" / "results.jsonl"
    assert read_results(file) == []
    for seed, error in enumerate((1.0, 3.0)):
        add_result(file, {"way": "a", "seed": seed, "error": error})
    rows = read_results(file)
    assert mean_and_std(pick(rows, way="a"), "error") == pytest.approx((2.0, 2**0.5))
    assert mean_and_std(pick(rows, way="a", seed=1), "error") == (3.0, 0.0)
    assert pick(rows, way="b") == []


def test_stored_tables_come_back_and_only_shown_ones_are_parts(tmp_path: Path) -> None:
    """The others are data alone."""
    lines = markdown(["a", "b"], [["1", ""]])
    write_stored(tmp_path / "tables.json", {"shown": lines, "other": lines}, {"n": "5"})
    assert read_stored(tmp_path / "tables.json") == {"shown": lines, "other": lines, "n": "5"}
    (tmp_path / "page.in.md").write_text("{{shown}}")
    assert shown_parts(tmp_path) == {"shown": lines}


def test_files_are_written_or_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check writes nothing and fails for a file that is missing or was changed."""
    files = {tmp_path / "new" / "a.csv": "x\n", tmp_path / "b.md": "text\n"}
    assert written(files, check=True, program="make it") == 1
    assert not (tmp_path / "new").exists()
    assert written(files, check=False, program="make it") == 0
    assert written(files, check=True, program="make it") == 0
    (tmp_path / "b.md").write_text("changed\n")
    capsys.readouterr()
    assert written(files, check=True, program="make it") == 1
    assert capsys.readouterr().err == f"{tmp_path / 'b.md'} is not up to date: run make it\n"
