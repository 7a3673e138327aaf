"""Graphs that a program writes are packed, the same bytes for the same graph."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = """
import sys
from pathlib import Path
(Path(sys.argv[1]) / "{name}.pb").write_bytes(b"{name}")
(Path(sys.argv[1]) / "saved").mkdir(exist_ok=True)
(Path(sys.argv[1]) / "saved/saved_model.pb").write_bytes(b"saved")
"""


def test_graphs_are_packed(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file for each graph, and one for the saved model."""
    monkeypatch.setattr(program, "FOLDER", tmp_path)
    for name in ("PS_TRAINING", "FUNCTIONS"):
        monkeypatch.setattr(program, name, PROGRAM.format(name=name))
    program.main()
    packed = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert {name: gzip.decompress(content) for name, content in packed.items()} == {
        "PS_TRAINING.pb.gz": b"PS_TRAINING",
        "FUNCTIONS.pb.gz": b"FUNCTIONS",
        "saved_model.pb.gz": b"saved",
    }
    program.main()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == packed


def test_the_shipped_graphs_are_those_of_the_program(program: ModuleType) -> None:
    """Each name that it writes is in tests/data/graphs."""
    text = program.PS_TRAINING + program.FUNCTIONS
    for name in ("ps_training", "loops_v1", "functions"):
        assert name in text
        assert (program.FOLDER / f"{name}.pb.gz").exists()
    assert (program.FOLDER / "saved_model.pb.gz").exists()
