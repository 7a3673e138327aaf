"""Every extra that Driple names in a message or in `driple env` exists in pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest

from driple import extras
from driple.cli import env
from driple.errors import MissingExtraError

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = set(PROJECT["optional-dependencies"])

# install_hint('x') and extra="x"; the calls with a variable get theirs from one of the latter
_NAMED = re.compile(r"install_hint\(['\"]([\w,]+)['\"]\)|\bextra(?:: str)? ?= ?['\"](\w+)['\"]")


def test_hints_name_extras_that_exist() -> None:
    """An install hint with an unknown extra would install nothing and print only a warning."""
    named = {
        name
        for file in (ROOT / "driple").rglob("*.py")
        for match in _NAMED.finditer(file.read_text())
        for name in (match[1] or match[2]).split(",")
    }
    assert {"profiler", "calibration", "torch", "yaml"} <= named
    assert named <= EXTRAS


def test_env_lists_extras_that_exist() -> None:
    """`driple env` prints an install command from these names."""
    assert {extra.name for extra in env._EXTRAS} <= EXTRAS


@pytest.mark.parametrize("name", ["require_tensorflow", "require_numba", "require_torch"])
def test_checks_name_extras_that_exist(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check names the extra that installs its package."""
    monkeypatch.setattr(extras, "find_spec", lambda _module: None)
    with pytest.raises(MissingExtraError) as raised:
        getattr(extras, name)("this task")
    named = re.search(r"\[(\w+)\]", str(raised.value))
    assert named
    assert named[1] in EXTRAS


def test_developers_install_every_extra() -> None:
    """No test is skipped for a package that a developer's installation lacks."""
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", everything.split("[")[1])) == EXTRAS - {"all"}
    assert "-e '.[all]' --group dev" in (ROOT / "scripts/setup_dev").read_text()


def test_readme_installs_extras_that_exist() -> None:
    """So do the README and the pages for users."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    named = {
        name
        for page in pages
        for names in re.findall(r"pip install '\.\[([\w,]+)\]'", page.read_text())
        for name in names.split(",")
    }
    assert named
    assert named <= EXTRAS
