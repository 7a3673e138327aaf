"""Which Pythons ran is what pyproject.toml declares."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from scripts.checks import pythons
from scripts.checks.pythons import RESULT, SMOKE_TESTS, main

ROOT = Path(__file__).resolve().parents[3]


def test_the_declared_pythons_are_those_that_ran() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    ran = json.loads(RESULT.read_text(encoding="utf-8"))
    assert declared == list(ran)
    for version, each in ran.items():
        assert each["date"] and each["version"].startswith(version)
        assert each["commands"] >= 6
        assert each.get("tests", {"passed": 101})["passed"] > 100  # none with --base


def test_the_smoke_tests_exist() -> None:
    assert [name for name in SMOKE_TESTS if not (ROOT / name).exists()] == []


def test_a_machine_without_the_python_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pythons, "interpreters", lambda _: {})
    assert main(["--pythons", "3.99"]) == 1
    assert "none of Python 3.99" in capsys.readouterr().err
