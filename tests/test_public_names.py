"""One public class has one name in the package: a name that two classes share is two ideas.

module -> its public classes (ast, nested ones as well) -> names that several modules define
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "driple"


def shared_names(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Names of public classes that are defined more than once, with where they are."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{module}:{node.lineno}")
    return {name: where for name, where in places.items() if len(where) > 1}


def test_one_public_class_has_one_name() -> None:
    """No two modules of the package define a public class with the same name."""
    files = sorted(PACKAGE.rglob("*.py"))
    assert len(files) > 500
    assert not shared_names({str(file.relative_to(PACKAGE)): file.read_text() for file in files})


def test_a_shared_name_is_seen() -> None:
    """The law sees two classes of a name, nested ones as well, and leaves private ones alone."""
    sources = {
        "a.py": "class Part: ...\nclass _Row: ...",
        "b.py": "class Outer:\n    class Part: ...\nclass _Row: ...",
    }
    assert shared_names(sources) == {"Part": ["a.py:1", "b.py:2"]}
