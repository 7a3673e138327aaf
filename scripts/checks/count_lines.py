"""Count the lines of code of package and scripts, without blanks, comments and docstrings.

    python -m scripts.checks.count_lines [FOLDER ...]

Prints the lines of each folder, how many public definitions of the package have a docstring, and
how long its median function is.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

__all__ = ["FileCount", "count", "main"]

ROOT = Path(__file__).resolve().parents[2]
_DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_NO_CODE = frozenset({
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileCount:
    """What one source holds.

    Attributes:
        lines: of code, without blanks, comments and docstrings.
        functions: lines of code of each function, nested ones in their outer too.
        public: public modules, classes, functions and methods.
        documented: those of them with a docstring.
    """

    lines: int
    functions: tuple[int, ...]
    public: int
    documented: int


def count(source: str) -> FileCount:
    """The counts of a Python source.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = ast.parse(source)
    code = _code_lines(source) - {
        line for node in ast.walk(tree) for line in _docstring_lines(node)
    }
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTION)]
    public = list(_public(tree))
    return FileCount(
        lines=len(code),
        functions=tuple(
            sum(node.lineno <= line <= (node.end_lineno or 0) for line in code)
            for node in functions
        ),
        public=len(public),
        documented=sum(ast.get_docstring(node) is not None for node in public),
    )


def _code_lines(source: str) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _docstring_lines(node: ast.AST) -> range:
    if not isinstance(node, _DOCUMENTED) or ast.get_docstring(node, clean=False) is None:
        return range(0)
    text = node.body[0]
    return range(text.lineno, (text.end_lineno or text.lineno) + 1)


def _public(
    node: _DOCUMENTED,
) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """A module or class with its public classes, functions and methods."""
    yield node
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | _FUNCTION) and not inner.name.startswith("_"):
            if isinstance(inner, ast.ClassDef):
                yield from _public(inner)
            else:
                yield inner


def main(argv: list[str] | None = None) -> int:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "folders", nargs="*", type=Path, default=[ROOT / "driple", ROOT / "scripts"]
    )
    given = parser.parse_args(argv)
    total = 0
    for folder in given.folders:
        counts = [count(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.py"))]
        lines = sum(one.lines for one in counts)
        functions = [length for one in counts for length in one.functions]
        public, documented = (
            sum(getattr(one, name) for one in counts) for name in ("public", "documented")
        )
        print(
            f"{folder.name}: {lines:,} lines of code in {len(counts):,} files; {documented:,} of "
            f"{public:,} public definitions have a docstring; the median of {len(functions):,} "
            f"functions has {median(functions or [0]):g} lines"
        )
        total += lines
    print(f"together: {total:,} lines of code")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
