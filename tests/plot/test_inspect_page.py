"""`inspect --html`: the work of a step, its memory, and a trace beside it."""

from __future__ import annotations

from pathlib import Path

import driple
from driple.plot.inspect_page import page_text
from tests.cli.test_main import driple as command
from tests.measure.kineto.traces import gpu_steps, write
from tests.plot.pages import check_page

GRAPH = "datasets/examples/resnet20.pbtxt"


def test_memory_and_trace_are_on_the_page(tmp_path: Path) -> None:
    trace = write(tmp_path / "t.json", gpu_steps(3), "NVIDIA A100-SXM4-80GB")
    text = page_text(driple.inspect("mobilenet_v2", memory=True, measured=trace))
    check_page(text)
    for words in ("on one A100-80G", "Memory over a step", "<svg", "Predicted beside measured",
                  "conv gradient", "waits for the host", "features"):  # fmt: skip
        assert words in text


def test_a_graph_without_modules_and_trace(tmp_path: Path) -> None:
    file = tmp_path / "job.html"
    command("inspect", GRAPH, "--setting", "1xV100", "--html", file)
    text = file.read_text()
    check_page(text)
    assert "By kind of op" in text
    assert "measured" not in text
