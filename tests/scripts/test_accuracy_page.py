"""The generated part of the page on accuracy, and its pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.calibration.benchmark.coverage import Coverage
from driple.plot.scatter import plot_scatter
from scripts.write_accuracy_page import BEGIN, END, PAGE, coverage_table, part_of_page, with_part


def test_the_page_holds_what_the_command_writes() -> None:
    part, _ = part_of_page()
    page = PAGE.read_text(encoding="utf-8")
    assert with_part(page, part) == page, "run scripts/write_accuracy_page.py"


def test_a_table_by_hand() -> None:
    one = Coverage(
        by="kind", group="ring", held_out="model", task="train", runs=7, coverage_pct=90.4,
        below_p90_pct=88.0, width=1.5,
    )  # fmt: skip
    last = coverage_table([one], "kind").splitlines()[-1]
    assert last == "| all-reduce | train | model family | 7 | 90 % | 88 % | 1.50 |"
    assert with_part(f"a {BEGIN} old {END} z", "new") == f"a {BEGIN}\n\nnew\n\n{END} z"
    with pytest.raises(SystemExit, match="lacks the line"):
        with_part("a page", "new")


def test_a_scatter_plot_is_a_small_picture(tmp_path: Path) -> None:
    file = tmp_path / "scatter.svg"
    points = [(0.1, 0.05, "resnet"), (-0.5, 0.2, "vit"), (1.5, 0.4, "gnmt")]
    plot_scatter(points, file, title="three runs")
    first = file.read_bytes()
    assert b"<svg" in first
    assert len(first) < 300_000
