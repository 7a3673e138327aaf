"""Where the time of an iteration goes, of a profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple.plot.stalls import bars_of, plot_profile
from driple.profiler.stall_profile import read_profile
from tests.plot.looks import drawn, faults_of, words_of
from tests.profiler.profiles import write_profile


@pytest.mark.parametrize(
    ("measured", "bars"),
    [
        ({1, 2, 4, 3}, [(3, 1)]),
        ({1, 2, 5}, [(5, 1)]),
        ({1, 2, 3, 4, 5}, [(3, 1), (5, 1)]),
        ({2}, [(2, 2)]),
        ({1, 4}, [(4, 4)]),
    ],
)
def test_a_bar_adds_what_lies_between_measured_steps(
    measured: set[int], bars: list[tuple[int, int]]
) -> None:
    assert [(bar.step, bar.base) for bar in bars_of(measured) if bar.step != 1] == bars


def test_a_profile_is_drawn_with_its_stalls(tmp_path: Path) -> None:
    times = {1: [0.1, 0.1], 2: [0.15, 0.15], 3: [0.4, 0.4], 4: [0.2, 0.2]}
    profile = read_profile(write_profile(tmp_path / "p", times))
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_profile(profile, path), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    assert {"compute", "interconnect", "prep", "fetch"} <= set(words_of(figure))
    assert sum(bar.get_width() for bar in axis.patches) == pytest.approx(400)
