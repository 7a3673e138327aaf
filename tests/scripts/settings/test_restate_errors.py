"""Errors of today's calibration are stated in a data set that was made with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from driple.codec import to_dict

SHIPPED = (
    Path(__file__).parents[3] / "datasets/settings/simulated-cpu/CPU-P1w2_ho-400M/dataset.json"
)


@pytest.fixture
def folder(program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a shipped dataset.json."""
    monkeypatch.setattr(program, "ROOT", tmp_path)
    shutil.copy(SHIPPED, tmp_path / "dataset.json")
    return tmp_path


def test_an_old_error_is_replaced(program: ModuleType, folder: Path) -> None:
    """The shipped one comes back; nothing else changes."""
    before = json.loads(SHIPPED.read_bytes())
    old = {**before, "iteration_time_error": {"rows": 1}}
    (folder / "dataset.json").write_text(json.dumps(old))
    assert to_dict(program.restate(folder)) == before["iteration_time_error"]
    assert json.loads((folder / "dataset.json").read_bytes()) == before


def test_a_data_set_of_another_calibration_is_refused(program: ModuleType, folder: Path) -> None:
    """Its labels would be others."""
    about = json.loads(SHIPPED.read_bytes())
    about["calibration"] = {"fitted": "2020-01-01"}
    (folder / "dataset.json").write_text(json.dumps(about))
    with pytest.raises(SystemExit, match="made with a calibration of 2020-01-01"):
        program.restate(folder)
