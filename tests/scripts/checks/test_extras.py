"""Questions are asked of extras that are there, in a clean environment."""

import os
import sys
from pathlib import Path

import pytest

from scripts.checks.extras import BASE, QUESTIONS, _inputs, _seconds, extras, main


def test_questions_are_of_extras_that_are_there() -> None:
    assert set(QUESTIONS) <= set(extras())
    assert extras()[0] == BASE


def test_an_unknown_extra_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["nonsense"])
    assert caught.value.code == 2
    assert "nonsense is no extra" in capsys.readouterr().err


@pytest.mark.parametrize("extra", ["web", "mcp", "onnx", "yaml", "torch", "hf"])
def test_each_question_is_answered(extra: str, tmp_path: Path) -> None:
    """Here, where all extras are installed; a question without an answer would end the program."""
    folder = Path(sys.executable).parent
    variables = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    _inputs(extra, tmp_path, variables)
    assert _seconds(QUESTIONS[extra].split(), tmp_path, variables) > 0
