"""What every worker does over a few iterations."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple import predict
from driple.plot.timeline import plot_timeline
from tests.cli.test_main import ROOT
from tests.plot.looks import drawn, faults_of, words_of


@pytest.mark.parametrize(
    ("setting", "columns", "more"),
    [("V100-P1w2/ho-10G", 2, ""), ("V100-P2w6/ho-10G", 4, "(first 4 of 6 workers)")],
)
def test_a_column_for_each_worker_and_words_for_those_left_out(
    tmp_path: Path, setting: str, columns: int, more: str
) -> None:
    graph = ROOT / "datasets/examples/resnet20.pbtxt"
    (answer,) = predict(graph, setting, method="simulator").answers
    simulation = answer.simulation
    assert simulation is not None
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_timeline(simulation, path, title="resnet20"), path)
    assert faults_of(figure) == []
    assert len(figure.axes) == 4 * columns
    assert more in " ".join(words_of(figure))
    assert [axis.get_xlabel() for axis in figure.axes[-columns:]] == ["time (s)"] * columns
