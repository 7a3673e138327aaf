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
    commands = []
    for block in SHOWN:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            commands.append((command, output.strip()))
    return commands


def printed_by(*arguments: str, cwd: Path = ROOT) -> str:
    """What Python prints with this checkout's package; it must end well."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("command", "output"), runs(), ids=lambda text: text[:40])
def test_what_the_readme_shows_is_what_is_printed(command: str, output: str) -> None:
    """Run the command as it stands; the output is the same."""
    assert command.startswith("driple "), command
    stdout = printed_by("-m", "driple.cli.main", *command.split()[1:])
    printed = [line.rstrip() for line in stdout.strip().splitlines()]
    assert printed == [line.rstrip() for line in output.splitlines()]


def test_a_newcomer_reads_it_in_minutes() -> None:
    assert len(README.split()) <= 800


def test_the_model_of_the_readme_is_predicted_as_typed(tmp_path: Path) -> None:
    """Its file and its command, as they stand."""
    (model,) = re.findall(r"```python\n# train.py\n(.*?)```", README, re.DOTALL)
    (tmp_path / "train.py").write_text(model)
    (command,) = re.findall(r"^driple (predict train.py:build_model .*)$", README, re.MULTILINE)
    stdout = printed_by("-m", "driple.cli.main", *command.split(), cwd=tmp_path)
    assert "build_model on 8xH100" in stdout


def test_python_examples_run() -> None:
    """The Python of the page runs from the root of the checkout."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    assert blocks
    stdout = printed_by("-c", "\n".join(blocks))
    assert float(stdout.split()[0]) > 0


def test_set_up_commands_and_links_exist() -> None:
    """Scripts can be executed, and no link or picture is missing."""
    assert len(runs()) >= 1
    for script in ("scripts/quickstart", "scripts/setup_dev"):
        assert script in README
        assert os.access(ROOT / script, os.X_OK)
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target
