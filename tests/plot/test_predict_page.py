"""`predict --html`: every answer, its step, and what each number rests on."""

from __future__ import annotations

from pathlib import Path

from driple.api.predicting import predict
from driple.plot.predict_page import page_text
from tests.cli.test_main import driple as command
from tests.cli.test_main import refused
from tests.plot.pages import check_page


def test_gpus_and_processors_side_by_side() -> None:
    """Processors have no timeline, and their inspector has twelve numbers."""
    result = predict("datasets/examples/resnet20.pbtxt", ["1xV100", "CPU-P1w2"])
    text = page_text(result)
    check_page(text)
    assert text.count("<svg") == 1
    assert text.count("Where each number comes from") == 2
    for words in ("1xV100", "CPU-P1w2/ho-200M", "90 % interval", "net_tx: burst amount"):
        assert words in text
    assert page_text(result) == text


def test_the_command_writes_it_and_refuses_other_names(tmp_path: Path) -> None:
    file = tmp_path / "answer.html"
    done = command("predict", "mobilenet_v2", "--setting", "8xH100", "--html", file)
    assert f"wrote {file}" in done.stderr
    check_page(file.read_text())
    assert "ends in .html" in refused("predict", "mobilenet_v2", "--html", tmp_path / "a.pdf")
    assert not (tmp_path / "a.pdf").exists()
