"""The README's commands are found in it, and a failing one is named; the run is of minutes."""

from __future__ import annotations

import json
import subprocess

import pytest

from scripts.checks.clean_install import ROOT
from scripts.checks.readme_commands import (
    NOT_RUN,
    OWN_COMMAND,
    RESULT,
    commands_of,
    script_of,
    times_of,
)

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_commands_come_in_the_order_in_which_they_are_typed() -> None:
    commands = commands_of(README)
    assert commands[0].startswith("scripts/quickstart")
    assert commands[1].startswith("pip install")
    assert commands[2].startswith("driple predict train.py:build_model")
    assert "driple predict datasets/examples/resnet50.pbtxt" in commands
    assert any(command.startswith("driple plan train.py:build_model ") for command in commands)


def test_each_command_of_the_readme_is_run_or_has_a_reason() -> None:
    """A question that joins the table is run; one that leaves it leaves NOT_RUN as well."""
    run = {command.split()[1] for command in commands_of(README) if command.startswith("driple ")}
    assert not run & set(NOT_RUN)
    assert {name for name in NOT_RUN if f"`driple {name}" not in README} == set()


def test_a_readme_without_a_model_is_refused() -> None:
    with pytest.raises(SystemExit, match="no block that installs"):
        commands_of("```bash\nls\n```\n")


def test_a_script_stops_at_the_first_failure_and_times_what_ran() -> None:
    commands = ["export A=5", "test $A = 5 && sleep 0.2", "false", "echo never"]
    done = subprocess.run(
        ["bash", "-c", script_of(commands)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "never" not in done.stdout
    times = times_of(done.stdout, commands)
    assert [each["command"] for each in times] == commands[:2]
    assert 0.1 <= float(str(times[1]["seconds"])) < 10


def test_the_stored_result_is_of_todays_commands() -> None:
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    ran = [each["command"] for each in result["commands"]]
    assert ran == [*commands_of(README), OWN_COMMAND]
    assert result["date"] and result["without_downloads_s"] > 0
