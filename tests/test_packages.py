"""Every package of the source is installed: `pyproject.toml` names them one by one."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OF_DATA = {"driple.checkpoints"}  # lies in checkpoints/


def test_pyproject_names_all_packages() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    files = (ROOT / "driple").rglob("__init__.py")
    found = {".".join(file.parent.relative_to(ROOT).parts) for file in files}
    assert set(table["packages"]) - OF_DATA == found
