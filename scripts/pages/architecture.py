"""Draw the map of the package from its imports, and the table of its parts: docs/architecture.md.

    driple/*/**.py --imports--> layers --> docs/pictures/architecture.png, a table in the page

    python -m scripts.pages.architecture [--check]

An arrow goes from a package to one that imports it, where no longer way leads there too. `--check`
writes nothing and fails if the table is not up to date.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

from driple.errors import DripleError
from scripts.settings.shipped import DOCS, ROOT
from scripts.studies.kit.written import options_of, written

PACKAGE = ROOT / "driple"
PAGE, PICTURE = DOCS / "architecture.md", DOCS / "pictures" / "architecture.png"
BEGIN, END = (
    "<!-- parts, made by scripts.pages.architecture -->",
    "<!-- end of what is made -->",
)
_BOX_WIDTH, _BOX_HEIGHT, _LEVEL = 1.3, 0.42, 0.95
_SLOT, _STOP_WIDTH, _LINE = 1.6, 0.3, "#8a94a6"


@dataclass(frozen=True)
class Part:
    """One package of driple.

    Attributes:
        name: such as `graph`.
        purpose: first sentence of its docstring.
    """

    name: str
    purpose: str


@dataclass(frozen=True)
class _Stop:
    before: str
    after: str
    depth: int


def parts(package: Path) -> list[Part]:
    """The packages within a package, by name."""
    return [
        Part(name=file.parent.name, purpose=_first_sentence(file))
        for file in sorted(package.glob("*/__init__.py"))
    ]


def _first_sentence(file: Path) -> str:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    first, _, _ = text.partition("\n\n")
    sentence, dot, _ = " ".join(first.split()).partition(". ")
    head, colon, rest = (sentence + dot).strip().partition(": ")
    return rest[:1].upper() + rest[1:] if colon and head.isupper() else head + colon + rest


def import_graph(package: Path) -> nx.DiGraph[str]:
    """An edge from each package to one that imports it, without those that others imply.

    Raises:
        DripleError: packages import each other.
    """
    names = {file.parent.name for file in package.glob("*/__init__.py")}
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted(names))
    for name in sorted(names):
        for file in (package / name).rglob("*.py"):
            used = {target.split(".")[1] for target in _imported(file, package.name)}
            graph.add_edges_from((other, name) for other in used & names if other != name)
    if not nx.is_directed_acyclic_graph(graph):
        raise DripleError(f"packages of {package} import each other: {nx.find_cycle(graph)}")
    return nx.transitive_reduction(graph)


def _imported(file: Path, root: str) -> Iterator[str]:
    """Modules of the package that a file imports when it runs, by full name."""
    for node in _run_code(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == root:
                yield from (f"{root}.{alias.name}" for alias in node.names)
            elif node.module.startswith(f"{root}."):
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith(f"{root}."))


def _run_code(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of the code without what only a type checker reads."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield from _run_code(child)


def table(packages: Sequence[Part], graph: nx.DiGraph[str]) -> str:
    """A row for each package, from those that import nothing to the command line."""
    layer = {name: i for i, names in enumerate(nx.topological_generations(graph)) for name in names}
    rows = [
        f"| `{part.name}` | {part.purpose} | {_listed(graph.predecessors(part.name))} |"
        for part in sorted(packages, key=lambda part: (layer[part.name], part.name))
    ]
    return "\n".join(["| package | what it does | builds on |", "|---|---|---|", *rows])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def draw(graph: nx.DiGraph[str], file: Path) -> None:
    """A picture of the packages in layers, with a line for each import that counts."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.patches import Rectangle

    ways = _ways(graph)
    places = _places(graph, ways)
    left, right = (end([x for x, _ in places.values()]) for end in (min, max))
    deepest = min(y for _, y in places.values())
    figure, axes = plt.subplots(figsize=(right - left + _SLOT, _LEVEL - deepest), dpi=110)
    for (before, after), way in ways.items():
        (x0, y0), *between, (x1, y1) = (places[stop] for stop in _line(before, way, after))
        stops = [(x0, y0 - _BOX_HEIGHT / 2), *between, (x1, y1 + _BOX_HEIGHT / 2)]
        axes.plot(*zip(*stops, strict=True), color=_LINE, lw=1, zorder=1)
        axes.annotate("", stops[-1], stops[-2], arrowprops={"arrowstyle": "-|>", "color": _LINE,
                      "lw": 1, "shrinkA": 0, "shrinkB": 0}, zorder=1)  # fmt: skip
    for name in graph:
        x, y = places[name]
        corner = (x - _BOX_WIDTH / 2, y - _BOX_HEIGHT / 2)
        axes.add_patch(
            Rectangle(corner, _BOX_WIDTH, _BOX_HEIGHT, fc="#eef3fb", ec="#2f5d9b", zorder=2)
        )
        axes.text(x, y, name, ha="center", va="center", fontsize=11, zorder=3)
    axes.axis("off")
    figure.savefig(file, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def _line(before: str, way: Sequence[_Stop], after: str) -> list[str | _Stop]:
    return [before, *way, after]


def _ways(graph: nx.DiGraph[str]) -> dict[tuple[str, str], list[_Stop]]:
    """For each edge, a stop in every layer that it passes, so that lines go around boxes."""
    layer = {name: i for i, names in enumerate(nx.topological_generations(graph)) for name in names}
    return {
        (before, after): [
            _Stop(before, after, depth) for depth in range(layer[before] + 1, layer[after])
        ]
        for before, after in sorted(graph.edges)
    }


def _places(
    graph: nx.DiGraph[str], ways: Mapping[tuple[str, str], list[_Stop]]
) -> dict[str | _Stop, tuple[float, float]]:
    """Centres of boxes and stops; in a layer, each stands near what it comes from."""
    layers: list[list[str | _Stop]] = [list(names) for names in nx.topological_generations(graph)]
    above: dict[str | _Stop, list[str | _Stop]] = {name: [] for name in graph}
    for (before, after), way in ways.items():
        last: str | _Stop = before
        for stop in way:
            layers[stop.depth].append(stop)
            above[stop] = [last]
            last = stop
        above[after].append(last)
    places: dict[str | _Stop, tuple[float, float]] = {}
    for depth, names in enumerate(layers):

        def wish(name: str | _Stop) -> tuple[float, str]:
            given = [places[other][0] for other in above[name]]
            return (sum(given) / len(given) if given else 0.0, str(name))

        ordered = sorted(names, key=wish)
        widths = [_SLOT if isinstance(name, str) else _STOP_WIDTH for name in ordered]
        x = -sum(widths) / 2
        for name, width in zip(ordered, widths, strict=True):
            places[name] = (x + width / 2, -_LEVEL * depth)
            x += width
    return places


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table and the picture; 1 where `--check` finds the table old."""
    options = options_of(__doc__).parse_args(arguments)
    graph = import_graph(PACKAGE)
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page = f"{head}{BEGIN}\n{table(parts(PACKAGE), graph)}\n{END}{tail}"
    program = "python -m scripts.pages.architecture"
    status = written({PAGE: page}, check=options.check, program=program)
    if not options.check:
        draw(graph, PICTURE)
    return status


if __name__ == "__main__":
    sys.exit(main())
