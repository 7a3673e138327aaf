"""Parts of an iteration as stacked bars."""

from __future__ import annotations

from pathlib import Path

from driple.plot.closed_forms import PART_COLOURS, plot_parts
from tests.plot.looks import drawn, faults_of, words_of


def test_each_bar_ends_at_its_sum_and_names_the_parts_that_have_room(tmp_path: Path) -> None:
    parts = dict.fromkeys(PART_COLOURS, 0.0) | {"pull": 0.2, "compute": 0.5, "wait": 0.01}
    bars = [("a model of servers", parts), ("another", dict.fromkeys(PART_COLOURS, 0.1))]
    path = tmp_path / "p.svg"
    figure = drawn(lambda: plot_parts(bars, path, title="resnet50"), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    words = words_of(figure)
    assert {"0.71 s", "0.5 s", "0.2 s", *PART_COLOURS} <= set(words)
    assert "0.01 s" not in words
    assert max(bar.get_x() + bar.get_width() for bar in axis.patches) == 0.71
