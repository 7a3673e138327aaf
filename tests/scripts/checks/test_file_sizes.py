"""Limits of files, of the checkout and of the wheel."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/checks/file_sizes.py"
MB = 10**6


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_this_checkout_is_within_its_limits(script: dict[str, Any]) -> None:
    """Below 80 MB without history, no file over 20 MB."""
    sizes = script["tracked_bytes"](SCRIPT.parents[2])
    if not sizes:
        pytest.skip("no git checkout")
    assert script["too_large"](sizes) == []


def test_what_is_too_large_is_named(script: dict[str, Any], tmp_path: Path) -> None:
    """A file, the sum, a wheel; just at a limit nothing is said."""
    too_large = script["too_large"]
    assert too_large({f"{i}": 20 * MB for i in range(4)}) == []
    assert too_large({"a": 20 * MB + 1}) == ["a: 20.0 MB, at most 20 MB"]
    assert too_large({f"{i}": 17 * MB for i in range(5)}) == [
        "the checkout: 85.0 MB, at most 80 MB"
    ]
    wheel = tmp_path / "driple.whl"
    with wheel.open("wb") as file:
        file.truncate(31 * MB)
    assert too_large({}, wheel) == [f"{wheel}: 31.0 MB, at most 30 MB"]


def test_only_tracked_files_count(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An untracked file may be of any size; the exit status says what was found."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "small").write_bytes(b"x")
    subprocess.run(["git", "add", "small"], cwd=tmp_path, check=True)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(21 * MB)
    monkeypatch.chdir(tmp_path)
    assert script["tracked_bytes"](tmp_path) == {"small": 1}
    assert script["main"]([]) == 0
    subprocess.run(["git", "add", "large"], cwd=tmp_path, check=True)
    assert script["main"]([]) == 1
