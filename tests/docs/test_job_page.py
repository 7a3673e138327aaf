"""The page "Your job": its files are written, its commands run, and what it shows is printed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

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
    return place


@pytest.mark.parametrize("line", COMMANDS)
def test_the_commands_of_the_page_run(line: str, folder: Path) -> None:
    done = driple(*line.split()[1:], cwd=folder)
    assert done.returncode == 0, done.stderr


def test_every_kind_of_job_has_a_command() -> None:
    kinds = ("train.py:", "hf:", "timm:", "graph.pbtxt", "lenet/mnist")
    assert all(any(kind in line for line in COMMANDS) for kind in kinds)


@pytest.mark.parametrize(("line", "output"), SHOWN)
def test_what_the_page_shows_is_printed(line: str, output: str) -> None:
    done = driple(*line.split()[1:])
    assert done.stdout.startswith(output)


def test_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """A linear layer of 784 x 10 on 64 samples: 2 FLOPs each, forward and for the weights."""
    (code,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
               if "import driple\n" in one]  # fmt: skip
    exec(compile(code, "docs/job.md", "exec"), {})  # noqa: S102  # the page's own example
    assert float(capsys.readouterr().out) > 2 * 2 * 64 * 784 * 10
