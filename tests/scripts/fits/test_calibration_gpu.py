"""What the shipped calibration was fitted to."""

from __future__ import annotations

import json
from types import ModuleType

from driple.runs.tensorflow_runs import read_tensorflow_runs


def test_the_shipped_calibration_is_of_the_shipped_rows(program: ModuleType) -> None:
    """Made by this program from the tables as they are."""
    about = json.loads(program.TARGET.read_bytes())["about"]
    assert about["rows"] == len(read_tensorflow_runs(program.TABLES))
    assert {item.source for item in read_tensorflow_runs(program.TABLES)} <= set(about["sources"])


def test_memory_is_as_active_as_nvml_saw_it(program: ModuleType) -> None:
    """The shipped factor is within the bounds of its fit, and not at one of them."""
    shipped = json.loads(program.TARGET.read_bytes())
    assert 0.2 < shipped["memory_activity"] < 5.0
