"""A training that was killed, wherever it was and whatever trained beside it, can be resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from driple.errors import ConfigError
from driple.locks import locked
from driple.training.runfiles import LOCK_FILE
from tests.training.test_train import ROOT, run


def kill_and_resume(folder: Path, stride: int, pairs: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.killed_anywhere", folder, str(stride), str(pairs)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_killed_at_some_points_and_resumed(tmp_path: Path) -> None:
    """Every 47th of all points, and a pair that trains in one folder at the same time."""
    result = kill_and_resume(tmp_path, 47, 1)
    assert result["points"] > 30
    assert result["wrong"] == []


@pytest.mark.slow
def test_killed_at_every_point_and_resumed(tmp_path: Path) -> None:
    """All points, and twenty pairs."""
    assert kill_and_resume(tmp_path, 1, 20)["wrong"] == []


def test_a_second_training_in_the_folder_is_refused(tmp_path: Path) -> None:
    """Before it touches anything."""
    with (
        locked(tmp_path / LOCK_FILE, error=ConfigError, held=""),
        pytest.raises(ConfigError, match=r"another training is at work in .*another folder"),
    ):
        run(tmp_path, resume=True)
    assert [file.name for file in tmp_path.iterdir()] == [LOCK_FILE]
    run(tmp_path, resume=True)
