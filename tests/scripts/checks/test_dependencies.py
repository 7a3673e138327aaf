"""The lowest versions are those of pyproject.toml, and all of them were tried."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from scripts.checks.dependencies import EXTRAS, main, pinned

ROOT = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_each_bound_is_taken_once() -> None:
    versions = pinned(PROJECT, EXTRAS)
    assert versions["numpy"] == "1.26"
    assert versions["mcp"] == "2"  # of a range
    assert "driple" not in versions


def test_each_dependency_has_a_lowest_version() -> None:
    """Without one, none could be tried."""
    wanted = [*PROJECT["dependencies"]]
    wanted += [line for name in EXTRAS for line in PROJECT["optional-dependencies"][name]]
    packages = {line for line in wanted if not line.startswith("driple[")}
    assert len(pinned(PROJECT, EXTRAS)) == len({line.split(">=")[0] for line in packages})


def test_another_kind_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["oldest"])
    assert "oldest is neither lowest nor newest" in capsys.readouterr().err
