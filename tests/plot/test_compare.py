"""Every method on every setting."""

from __future__ import annotations

from pathlib import Path

from driple import predict
from driple.plot.compare import plot_compared
from driple.render.method_words import METHOD_WORDS
from tests.cli.test_main import ROOT
from tests.plot.looks import drawn, faults_of


def test_each_method_has_a_row_with_its_time_and_its_interval(tmp_path: Path) -> None:
    graph = ROOT / "datasets/examples/resnet20.pbtxt"
    result = predict(graph, ["CPU-P1w2/ho-200M", "CPU-P2w4/ho-200M"], method="all")
    bars = [
        (answer.setting.name, answer.compared.answers)
        for answer in result.answers
        if answer.compared is not None
    ]
    path = tmp_path / "p.png"
    figure = drawn(lambda: plot_compared(bars, METHOD_WORDS, path, title="resnet20"), path)
    (axis,) = figure.axes
    assert faults_of(figure) == []
    rows = [label.get_text() for label in axis.get_yticklabels()]
    answers = [answer for _, own in bars for answer in own]
    assert len(rows) == len(answers)
    for row, answer in zip(rows, answers, strict=True):
        assert row == f"{METHOD_WORDS[answer.method]}  {answer.step_s:.3g} s"
    low, high = axis.get_xlim()
    assert all(low < answer.step_s < high for answer in answers)
