"""No variable that lives longer than a comprehension has a name that says nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"one", "found", "made", "item", "told"}
WORDS = re.compile(rf"\b({'|'.join(sorted(NAMES))})\b")


def short_lived(tree: ast.AST) -> set[ast.AST]:
    """Variables of comprehensions and parameters of lambdas, which may have such names."""
    names: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.comprehension):
            names |= set(ast.walk(node.target))
        elif isinstance(node, ast.Lambda):
            names |= set(ast.walk(node.args))
    return names


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each variable, field and parameter that is bound for longer."""
    spared = short_lived(tree)
    for node in ast.walk(tree):
        if node in spared:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            yield node.lineno, node.rest


def offences(source: str) -> list[str]:
    """Line and name of each variable whose name says nothing."""
    if not WORDS.search(source):
        return []
    return [f"{line}: {name}" for line, name in bound_names(ast.parse(source)) if name in NAMES]


@pytest.mark.parametrize("folder", ["driple", "scripts", "tests"])
def test_variables_are_named_for_what_they_hold(folder: str) -> None:
    """Call it by the field's term, such as `graph`, `answer` or `rows`."""
    listed = [
        f"{file.relative_to(ROOT)}:{offence}"
        for file in sorted((ROOT / folder).rglob("*.py"))
        for offence in offences(file.read_text(encoding="utf-8"))
    ]
    assert not listed, "\n".join(listed)


def test_the_check_finds_what_it_looks_for() -> None:
    """Assignments, loops, parameters, `with`, `except` and `match`, but no comprehension."""
    source = """
found = [one for one in x if (made := one)]
for i, (item, j) in x: pass
def f(told, *, one: int = 0): sorted(x, key=lambda item: item.a)
with x as found: pass
try: pass
except E as made: pass
match x:
    case [*told]: pass
    case {"a": one, **item}: pass
class A:
    made: int
"""
    bound = [offence.partition(": ") for offence in offences(source)]
    assert sorted((int(line), name) for line, _, name in bound) == [
        (2, "found"), (2, "made"), (3, "item"), (4, "one"), (4, "told"), (5, "found"), (7, "made"),
        (9, "told"), (10, "item"), (10, "one"), (12, "made"),
    ]  # fmt: skip
