"""The program that a test file is of, by the name of the file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent


@pytest.fixture
def program(request: pytest.FixtureRequest) -> ModuleType:
    """The program that a test file is named after: fits/test_hosts.py gives scripts.fits.hosts."""
    folders = request.path.parent.relative_to(TESTS).parts
    return import_module(".".join(["scripts", *folders, request.path.stem.removeprefix("test_")]))
