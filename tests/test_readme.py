"""The README's commands are run, and what it shows is what they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SHOWN = re.findall(r"```console\n(.*?)```", README, re.DOTALL)


def runs() -> list[tuple[str, str]]:
    """(command, output as shown) of every `$ driple ...` in the README."""
    found = []
    for block in SHOWN:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output.strip()))
    return found


@pytest.mark.parametrize(("command", "output"), runs(), ids=lambda text: text[:40])
def test_what_the_readme_shows_is_what_is_printed(command: str, output: str) -> None:
    """Run the command as it stands; the output is the same."""
    assert command.startswith("driple "), command
    done = subprocess.run(
        [sys.executable, "-m", "driple.cli.main", *command.split()[1:]],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    printed = [line.rstrip() for line in done.stdout.strip().splitlines()]
    assert printed == [line.rstrip() for line in output.splitlines()]


def test_a_newcomer_reads_it_in_minutes() -> None:
    assert len(README.split()) <= 800


def test_the_model_of_the_readme_is_predicted_as_typed(tmp_path: Path) -> None:
    """Its file and its command, as they stand."""
    (model,) = re.findall(r"```python\n# train.py\n(.*?)```", README, re.DOTALL)
    (tmp_path / "train.py").write_text(model)
    (command,) = re.findall(r"^driple (predict train.py:build_model .*)$", README, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "driple.cli.main", *command.split()],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "build_model on 8xH100" in done.stdout


def test_python_examples_run() -> None:
    """The Python of the page runs from the root of the checkout."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) > 0


def test_set_up_commands_and_links_exist() -> None:
    """Scripts can be executed, and no link or picture is missing."""
    assert len(runs()) >= 1
    for script in ("scripts/quickstart", "scripts/setup_dev"):
        assert script in README
        assert os.access(ROOT / script, os.X_OK)
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
