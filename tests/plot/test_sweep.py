"""Closed forms of many clusters."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from driple import sweep
from driple.analytic.whatif import GridOptions
from driple.plot.sweep import apart, plot_whatif
from tests.cli.test_main import ROOT
from tests.plot.looks import drawn, faults_of, words_of


@given(st.lists(st.floats(-100, 100), max_size=12), st.floats(0.5, 20))
def test_labels_are_a_gap_apart_and_keep_their_order(heights: list[float], gap: float) -> None:
    moved = apart(heights, gap)
    by_place = sorted(moved)
    assert all(b - a > gap - 1e-6 for a, b in pairwise(by_place))
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    assert order == sorted(range(len(heights)), key=lambda i: moved[i])
    if all(b - a > gap for a, b in pairwise(sorted(heights))):
        assert moved == heights


def test_each_rate_has_a_named_line_and_points_say_what_holds_them_back(tmp_path: Path) -> None:
    grid = GridOptions(workers=(1, 2, 4, 8), bandwidths_bits_per_s=(1e9, 10e9))
    result = sweep(ROOT / "datasets/examples/resnet20.pbtxt", "V100-P1w2/ho-10G", grid=grid)
    cells = result.grid
    assert cells is not None
    path = tmp_path / "p.png"
    figure = drawn(
        lambda: plot_whatif(
            cells.rates, cells.counts, cells.servers, cells.compressions, cells.parts,
            cells.bottlenecks, path, title="resnet20",
        ),
        path,
    )  # fmt: skip
    assert faults_of(figure) == []
    words = words_of(figure)
    assert "held back by" in words
    assert {"1G, 1 ps", "10G, 1 ps"} <= set(words)
