"""The programs in scripts/ import shipped.py from beside them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that a test file is named after, imported anew."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    name = request.path.stem.removeprefix("test_")
    sys.modules.pop(name, None)
    module = import_module(name)
    monkeypatch.delitem(sys.modules, name)
    return module
