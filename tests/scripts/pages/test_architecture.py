"""The map of the package: layers by imports, and a page that is up to date."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from driple.errors import DripleError
from scripts.pages.architecture import draw, import_graph, main, parts, table


def package(folder: Path, **sources: str) -> Path:
    """A package `driple` whose packages have one file each."""
    root = folder / "driple"
    for name, source in sources.items():
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").write_text(f'"""READ: what {name} is for. More."""')
        (root / name / "code.py").write_text(source)
    return root


def test_the_page_is_up_to_date() -> None:
    assert main(["--check"]) == 0


def test_an_edge_is_an_import_that_no_longer_way_implies(tmp_path: Path) -> None:
    """Imports within functions count; those of a type checker alone do not."""
    root = package(
        tmp_path,
        low="import json",
        middle="def f():\n    from driple.low.code import x",
        high="from driple.low.code import x\nfrom driple import middle",
        typed="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import driple.high.code",
    )
    graph = import_graph(root)
    assert set(graph.edges) == {("low", "middle"), ("middle", "high")}
    rows = table(parts(root), graph).splitlines()
    assert rows[2] == "| `low` | What low is for. |  |"
    assert rows[-1] == "| `high` | What high is for. | `middle` |"


def test_packages_that_import_each_other_are_refused(tmp_path: Path) -> None:
    root = package(tmp_path, a="import driple.b.code", b="import driple.a.code")
    with pytest.raises(DripleError, match="import each other"):
        import_graph(root)


def test_a_picture_is_drawn(tmp_path: Path) -> None:
    """An edge over several layers, too."""
    draw(
        nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d"), ("a", "e"), ("e", "d")]), tmp_path / "a.png"
    )
    assert (tmp_path / "a.png").stat().st_size > 5_000
