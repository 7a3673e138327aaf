"""Tests mirror the package: driple/A/b.py is tested by tests/A/test_b.py.

Modules that have no such file are listed in data/without_test.txt: the list may only shrink. Most
are reached by tests of the module that calls them.
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "driple"
LIST = TESTS / "data" / "without_test.txt"
_NO_TEST = {"__init__.py", "__main__.py"}


def place_of_tests(module: Path) -> Path:
    """Where the tests of a module stand, its path being relative to the package."""
    return TESTS / module.parent / f"test_{module.stem.lstrip('_')}.py"


def test_the_place_of_a_module_is_that_of_its_tests() -> None:
    assert place_of_tests(Path("graph/opgraph.py")) == TESTS / "graph" / "test_opgraph.py"
    assert place_of_tests(Path("_small.py")) == TESTS / "test_small.py"


def test_modules_without_a_test_file_are_those_of_the_list() -> None:
    modules = (file.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py"))
    missing = {
        module.as_posix()
        for module in modules
        if module.name not in _NO_TEST and not place_of_tests(module).exists()
    }
    listed = set(LIST.read_text(encoding="utf-8").split())

    assert sorted(missing - listed) == [], "give these a test file of their name"
    assert sorted(listed - missing) == [], f"they have one now: take them off {LIST.name}"
