"""Docstrings and comments are plain English, without the words of a list."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "driple"
# Packages that keep to the list today; a package joins when its prose does.
CHECKED = (
    "analytic", "async_sgd", "comm", "evaluation", "inspector", "measure", "planning", "profiler",
    "simulate", "trace", "training",
)  # fmt: skip
# Files that are still to be rewritten.
LATER = {"simulate/kernels.py", "simulate/optable.py", "simulate/prepared_job.py"}
WORDS = re.compile(
    r"\b(told|tells?|said|says|besides|nought|whoever|so many|so-manieth|hardly|lent|nobody|"
    r"other way about|again and again)\b",
    re.IGNORECASE,
)
OPENING = re.compile(r"(Of|That|As|Whose|By which) ")
NAMES = {"said", "told", "scene", "arena", "ballast", "Sureness", "relaw"}


def prose_of(source: str) -> list[tuple[int, str]]:
    """(line, text) of every docstring and comment."""
    texts = [
        (getattr(node, "lineno", 1), text)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node)) is not None
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return texts + [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def offences(source: str) -> list[str]:
    """Each banned word or opening, and each banned identifier, with its line."""
    offences_seen = []
    for line, text in prose_of(source):
        offences_seen += [f"{line}: {match[0]!r}" for match in WORDS.finditer(text)]
        if OPENING.match(text):
            offences_seen.append(f"{line}: begins with {text.split()[0]!r}")
    for node in ast.walk(ast.parse(source)):
        name = getattr(node, "id", None) or getattr(node, "arg", None) or getattr(node, "name", "")
        if isinstance(name, str) and name in NAMES:
            offences_seen.append(f"{getattr(node, 'lineno', 1)}: identifier {name}")
    return offences_seen


@pytest.mark.parametrize("name", CHECKED)
def test_prose_of_a_package_is_plain(name: str) -> None:
    """One list of offences for each package, by file and line."""
    listed = [
        f"{file.relative_to(PACKAGE.parent)}:{offence}"
        for file in sorted((PACKAGE / name).rglob("*.py"))
        if file.relative_to(PACKAGE).as_posix() not in LATER
        for offence in offences(file.read_text(encoding="utf-8"))
    ]
    assert not listed, "\n".join(listed)


def test_the_check_finds_what_it_looks_for() -> None:
    """A docstring, a comment, an opening and an identifier."""
    source = (
        '"""Of a launch."""\nsaid = 1  # numbers tell little\n\ndef f():\n    """It is told."""\n'
    )
    assert len(offences(source)) == 4
