"""The page "Your job": its files are written, its commands run, and what it shows is printed."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from driple.graph.torch.options import LIBRARIES
from driple.jobs.option_row import MODELS
from driple.jobs.options import JOB_OPTIONS
from tests.cli.test_main import EXAMPLE, ROOT, driple

PAGE = (ROOT / "docs/job.md").read_text(encoding="utf-8")
FILES = {"py": r"```python\n# (\S+\.py)\n(.*?)```", "yaml": r"```yaml\n# (\S+\.yaml)\n(.*?)```"}
COMMANDS = [
    line
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("driple ")
]
SHOWN = re.findall(r"```console\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the page says to save, and a graph file."""
    place = tmp_path_factory.mktemp("page")
    written = [
        found for pattern in FILES.values() for found in re.findall(pattern, PAGE, re.DOTALL)
    ]
    assert {name for name, _ in written} == {"train.py", "trl.yaml"}
    for name, text in written:
        (place / name).write_text(text)
    (place / "gpt").mkdir()
    (config,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (place / "gpt/config.json").write_text(config)
    shutil.copy(EXAMPLE, place / "graph.pbtxt")
    with contextlib.chdir(place):
        exec(compile(_python_with("torch.onnx.export("), "docs/job.md", "exec"), {})  # noqa: S102  # the page's own example
    return place


def _python_with(words: str) -> str:
    """The one block of Python on the page that holds some words."""
    (code,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if words in one]
    return code


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_page_run(line: str, folder: Path) -> None:
    done = driple(*line.split()[1:], cwd=folder)
    assert done.returncode == 0, done.stderr


def test_every_kind_of_job_has_a_command() -> None:
    kinds = ("train.py:", "hf:", "timm:", "graph.pbtxt", "lenet/mnist", "model.onnx")
    assert all(any(kind in line for line in COMMANDS) for kind in kinds)


@pytest.mark.parametrize(("line", "output"), SHOWN)
def test_what_the_page_shows_is_printed(line: str, output: str) -> None:
    done = driple(*line.split()[1:])
    assert done.stdout.startswith(output)


def test_the_page_names_every_option_of_models() -> None:
    """And the generations of PyTorch, with their versions."""
    page = " ".join(PAGE.split())
    of_models = [row for row in JOB_OPTIONS if row.suits & MODELS]
    assert not [row.flag for row in of_models if (row.set_name or row.typed) not in page]
    for name, versions in LIBRARIES.items():
        assert f"`{name}` ({versions}" in page


def test_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """A linear layer of 784 x 10 on 64 samples: 2 FLOPs each, forward and for the weights."""
    code = _python_with("import driple\n")
    exec(compile(code, "docs/job.md", "exec"), {})  # noqa: S102  # the page's own example
    assert float(capsys.readouterr().out) > 2 * 2 * 64 * 784 * 10


def test_the_keras_model_of_the_page_is_written_and_read(tmp_path: Path) -> None:
    """MobileNet-v2 has 3.5 million trained parameters in 158 tensors."""
    code = f"import os; os.chdir({str(tmp_path)!r})\n{_python_with('training_graph(model')}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    read = driple("inspect", str(tmp_path / "step.pb"))
    assert "3.5 M in 158 tensors" in read.stdout


def test_the_page_of_training_configs_has_todays_lists() -> None:
    from scripts.pages.training_configs import PAGE, page

    words = "out of date: python -m scripts.pages.training_configs"
    assert PAGE.read_text(encoding="utf-8") == page(), words
