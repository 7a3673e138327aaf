"""Hints in error messages: commands that work where Driple is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from driple import errors
from driple.errors import install_hint, upgrade_hint


def test_hints_fit_a_checkout_and_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can install `driple[plot]` from an index into a checkout."""
    monkeypatch.setattr(errors, "_CHECKOUT", tmp_path)
    monkeypatch.setattr(errors, "_is_from_folder", lambda: True)
    assert install_hint("plot").startswith("pip install '.[plot]'")
    monkeypatch.setattr(errors, "_is_from_folder", lambda: False)
    assert install_hint("plot") == "pip install 'driple[plot]'"
    assert upgrade_hint() == "pip install -U driple"
    (tmp_path / "pyproject.toml").touch()
    assert install_hint("plot").startswith("pip install -e '.[plot]'")
    assert "pip install" not in upgrade_hint()


def test_one_function_makes_every_hint() -> None:
    root = Path(errors.__file__).parent
    named = [
        file.name
        for file in root.rglob("*.py")
        if "pip install 'driple[" in file.read_text() or "pip install -U" in file.read_text()
    ]
    assert named == ["errors.py"]
