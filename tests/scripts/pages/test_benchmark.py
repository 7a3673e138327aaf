"""The benchmark's page: scores by hand, equal rows compared, and short."""

from __future__ import annotations

import pytest

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.predictions import Predictions, RowPrediction
from scripts.pages import benchmark
from scripts.pages.benchmark import PAGE, PUBLIC, files, page_table, read_entries, scored
from tests.docs.test_entry_pages import num_tables, num_words

MOST_WORDS = 900
ROWS = [
    MeasuredRun(id=name, job=name, family=name, setting="1xA100", source="here", step_s=1.0)
    for name in "abcd"
]
NAMED = {name: {"name": name} for name in ("simulator", *PUBLIC, "inspector")}


def entry(split: str, **seconds: float) -> Predictions:
    return Predictions({(split, name): RowPrediction(value) for name, value in seconds.items()})


def entries() -> dict[str, Predictions]:
    """The simulator is 10, 20, 30 and 40 % off; each public predictor does a part of the rows."""
    return {
        "simulator": entry("family", a=1.1, b=1.2, c=1.3, d=1.4),
        PUBLIC[0]: entry("", a=0.5, b=0.5, c=0.5),
        PUBLIC[1]: entry("", c=2.0, d=2.0),
        "inspector": entry("nothing", d=3.0),
    }


def test_each_entry_is_scored_on_all_rows_and_on_those_of_each_public_predictor() -> None:
    scores = {
        (line.on, line.score.predictor, line.score.split): line.score
        for line in scored(ROWS, entries())
    }
    assert scores["all", "simulator", "family"].median_pct == pytest.approx(25)
    assert scores[PUBLIC[0], "simulator", "family"].median_pct == pytest.approx(20)
    assert scores["both", "simulator", "family"].median_pct == pytest.approx(30)
    assert scores["all", PUBLIC[1], "device"].refused == 2
    assert scores["inspector", "inspector", "nothing"].median_pct == pytest.approx(200)
    assert ("all", "simulator", "device") not in scores


def test_a_cell_of_equal_rows_is_empty_where_a_predictor_does_not_do_them_all() -> None:
    table = page_table(scored(ROWS, entries()), NAMED)
    assert table.head[-3:] == [
        f"the 3 rows of {PUBLIC[0]}", f"the 2 rows of {PUBLIC[1]}", "the 1 rows of both",
    ]  # fmt: skip
    cells = {line[0]: line for line in table.rows}
    assert cells["simulator"][-3:] == ["20.0 / 28", "35.0 / 39", "30.0 / 30"]
    assert cells[PUBLIC[0]][-3:] == ["50.0 / 50", "-", "50.0 / 50"]
    assert cells["simulator"][1:4] == ["4", "25.0 / 37", "-"]
    assert "inspector" not in cells, "nothing is left out of it"


def test_the_page_is_short_and_its_table_lists_every_entry_of_the_splits() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert num_words(page) <= MOST_WORDS
    assert num_tables(page) == 1
    assert "{{" not in page
    for name, line in read_entries().items():
        assert (f"|{line['name']}|" in page) == (name != benchmark.INSPECTOR)


def test_files_are_up_to_date() -> None:
    for file, text in files().items():
        assert file.read_text(encoding="utf-8") == text, "run python -m scripts.pages.benchmark"
