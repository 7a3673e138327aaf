"""Commands of the README are run again, and the errors on unseen families are put in."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest


def test_errors_are_ranges_over_the_settings(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Least to most over the settings, of the shipped inspectors and of trees."""
    found = {
        setting: {
            "shipped": {"smape_pct": 10.0 + i, "iteration_time_median_pct": 5.0 + i},
            "trees": {"smape_pct": 20.0 + i, "iteration_time_median_pct": 8.0 + i},
        }
        for i, setting in enumerate(("a", "b", "c"))
    }
    (tmp_path / "unseen-families.json").write_text(json.dumps(found))
    monkeypatch.setattr(program, "ACCURACY", tmp_path)
    text = program.unseen_families()
    for span in ("10 to 12 %", "5 to 7 %", "20 to 22 %", "8 to 10 %"):
        assert span in text


def test_the_shipped_errors_are_there(program: ModuleType) -> None:
    """The file that study accuracy writes."""
    assert " settings that we measured" in program.unseen_families()


def test_a_readme_is_rewritten(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each console block has what its command prints now; the rest stays."""
    readme = tmp_path / "README.md"
    readme.write_text("Head\n```console\n$ driple env\nold\n```\nTail\n")
    monkeypatch.setattr(program, "ROOT", tmp_path)
    asked = []

    def printed(arguments: str) -> str:
        asked.append(arguments.split(maxsplit=1)[0])
        return f"output of {arguments}"

    monkeypatch.setattr(program, "printed", printed)
    program.main()
    assert readme.read_text() == ("Head\n```console\n$ driple env\noutput of env\n```\nTail\n")
    assert asked == ["env", "predict"]
