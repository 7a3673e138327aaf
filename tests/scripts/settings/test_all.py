"""Stages run in order, are timed over all tries, and call programs that exist."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def ran(program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Command lines that were run; one that trains on simulated labels fails."""
    lines: list[list[str]] = []

    def run(command: list[str], **_: Any) -> None:
        lines.append(command[1:])
        if command[-1] == "simulated":
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(program.subprocess, "run", run)
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    monkeypatch.setattr(program, "RECORD", tmp_path / "stages.json")
    return lines


def test_stages_run_in_order_and_a_failed_one_ends_it(
    program: ModuleType, ran: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try begins there; the time of the failed one counts too."""
    monkeypatch.setattr(sys, "argv", ["all"])
    with pytest.raises(subprocess.CalledProcessError):
        program.main()
    assert [line[:2] for line in ran][1:] == [
        ["-m", "scripts.settings.simulate"],
        ["-m", "scripts.settings.checkpoints"],
        ["-m", "scripts.settings.checkpoints"],
    ]
    assert all(find_spec(line[1]) for line in ran[1:])
    assert ran[0][:4] == ["-m", "driple", "jobs", "build"]
    record = json.loads((tmp_path / "stages.json").read_bytes())
    assert [(name, one["done"]) for name, one in record.items()] == [
        ("graphs", True),
        ("simulate", True),
        ("measured", True),
        ("simulated", False),
    ]
    with pytest.raises(subprocess.CalledProcessError):
        program.main()
    assert ran[4:] == ran[3:4]


def test_an_unknown_stage_is_refused(
    program: ModuleType, ran: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything runs."""
    monkeypatch.setattr(sys, "argv", ["all", "--only", "graphs,paint"])
    with pytest.raises(SystemExit):
        program.main()
    assert ran == []
