"""The graphs that the simulator is fitted with: which are built, and that they are shipped."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from driple.dataset.graph_store import GraphStore
from driple.runs.tensorflow_runs import MODELS


def test_all_graphs_are_shipped(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that would be built is in datasets/graphs: two batch sizes and precisions."""
    asked: dict[str, set[str]] = {}

    def build(jobs: list[Any], setting: Any, folder: Path, **_: object) -> None:
        assert setting == program.SETTING
        asked[folder.name] = {job.name for job in jobs}

    monkeypatch.setattr(program, "build_graphs", build)
    monkeypatch.setattr(sys, "argv", ["calibration_graphs"])
    program.main()
    assert len(asked["calibration"]) == 4 * len(MODELS)
    for name, wanted in asked.items():
        store = GraphStore.open(program.DATA / "graphs" / name)
        assert wanted <= set(store.places)
