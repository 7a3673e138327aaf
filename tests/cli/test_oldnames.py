"""Each row of the table of old names: the new command exists, the old one names it and exits 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

from driple.cli.main import _exists
from driple.cli.oldnames import OLD_NAMES, OldName, new_name
from tests.cli.test_main import ROOT, driple, refused

# What the command line of the first version had; every one has a row, or is still there.
FIRST_COMMANDS = (
    *("predict", "train", "transfer", "evaluate", "measure", "simulate", "whatif", "compare"),
    *("env", "graph show", "dataset info", "dataset show", "dataset import", "dataset build"),
    *("zoo list", "zoo build", "model zeng", "model zhang", "throughput platform"),
    *("throughput profile", "throughput import", "throughput predict", "stalls cost"),
    *("stalls fit", "stalls predict", "stalls run", "stalls show", "stalls data"),
)
READY = [row for row in OLD_NAMES if _exists(row.command, row.flags)]


@pytest.mark.parametrize("row", READY, ids=lambda row: f"{row.old} {row.flag or ''}")
def test_an_old_name_prints_the_new_one(row: OldName) -> None:
    flag = [] if row.flag is None else [row.flag]
    line = refused(*row.old.split(), *flag, "x")
    assert line == f"driple: {row.sentence}"
    assert f"driple {' '.join(row.command)}" in line


@pytest.mark.parametrize("words", FIRST_COMMANDS)
def test_no_command_of_the_first_version_is_lost(words: str) -> None:
    """It is there, or a row names what replaced it; never both, never neither."""
    replaced = new_name(words.split(), _exists) is not None
    assert replaced != _exists(tuple(words.split()), ())


def test_an_option_of_a_script_is_no_old_option() -> None:
    """What follows `--` belongs to the user's script."""
    assert new_name(["measure", "--", "--out", "x"], _exists) is None
    assert new_name(["measure", "--out=x"], _exists) is not None
    assert new_name(["predict", "zoo"], _exists) is None


def test_first_screen_version_and_completion() -> None:
    """No arguments: what to type first. Completion and version need no command."""
    screen = driple()
    assert screen.returncode == 0
    assert "driple predict graph.pbtxt --setting" in screen.stdout
    assert driple("--version").stdout.startswith("driple ")
    help_ = driple("--help").stdout
    assert "--install-completion" in help_
    assert help_.index("Record a run") < help_.index("Look up")


def test_python_m_driple_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "driple", "--version"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == driple("--version").stdout
