"""Each module of the package is reached by a command or the API, and so is each definition.

entry points  ->  modules that they import (ast, at any depth)  ->  modules that none imports
entry points  ->  definitions that reached ones use (by name)  ->  definitions that none uses

Entry points are `driple.cli.main` and the documented names of `driple`, `driple.api`,
`driple.profiler`, `driple.tensorflow` and `driple.integrations`. A string that is a module's name
counts as an import, as in `import_module` and `python -m`; a method counts as used where any
reached code has an attribute or a string of its name, or where it may be called by a base class of
another package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.reached import Package

PACKAGE = Path(__file__).resolve().parents[1] / "driple"
FRONTS = (
    "",
    ".api",
    ".profiler",
    ".tensorflow",
    ".integrations.hugging_face",
    ".integrations.lightning",
)

# Definitions that others call, with who does.
CALLED_BY_USERS = {
    "jobs.readers.added_reader": "CONTRIBUTING: a kind of job",
    "profiler.iteration_timer.active_timer": "driple.profiler.batches finds it in sys.modules",
    "schemes.registry.added_scheme": "CONTRIBUTING: a scheme",
    "api.results.Result.to_frame": "docs/python.md",
    "api.results.Result._repr_html_": "notebooks",
    "render.emit.slurm.SUBMIT_FILTER": "docs/schedulers.md",
    "render.terminal._WatchedStream.writelines": "io.TextIOBase",
}
# Used by programs of scripts/ or tests alone, and still in the package. This list may only shrink.
LEFT = frozenset(
    (Path(__file__).parent / "data" / "not_reached.txt").read_text(encoding="utf-8").split()
)


def _sources() -> dict[str, str]:
    return {
        str(file.relative_to(PACKAGE.parent)): file.read_text(encoding="utf-8")
        for file in sorted(PACKAGE.rglob("*.py"))
    }


def _package(sources: Mapping[str, str], called: Mapping[str, str] | None = None) -> Package:
    """The package from its entry points."""
    package = Package(sources)
    package.use_module("driple.cli.main")
    package.use_name("driple.cli.main", "run")
    package.use_module("driple.__main__")
    for front in FRONTS:
        for name in _public(package, f"driple{front}"):
            package.use_name(f"driple{front}", name)
    for name in called or {}:
        package.use_path(f"driple.{name}")
    package.follow()
    return package


def _public(package: Package, module: str) -> Iterator[str]:
    """Names in `__all__` of a module, if the package has it."""
    if module not in package.modules:
        return
    package.use_module(module)
    for node in package.modules[module].tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            yield from ast.literal_eval(node.value)


def test_every_module_is_reached_by_a_command_or_the_api() -> None:
    assert _package(_sources()).modules_not_reached() == []


def test_every_definition_is_reached_but_for_a_list_that_shrinks() -> None:
    """What is left is named; a name that left the package, or is used now, leaves the list."""
    package = _package(_sources(), CALLED_BY_USERS)
    left = {name.removeprefix("driple.") for name in package.definitions_not_reached()}
    assert left == LEFT


def test_what_users_call_is_there_and_nothing_of_the_package_calls_it() -> None:
    left = _package(_sources()).definitions_not_reached()
    assert {f"driple.{name}" for name in CALLED_BY_USERS} <= set(left)


def test_a_module_and_a_definition_without_a_user_are_seen() -> None:
    """Lazy imports, names of modules in strings, and methods by attribute count as uses."""
    package = _package({
        "driple/__init__.py": "",
        "driple/__main__.py": "from driple.cli.main import run",
        "driple/cli/__init__.py": "",
        "driple/cli/main.py": (
            "def run():\n    from driple.a import f\n    f()\n    g('driple.worker')\n"
            "def alone():\n    import driple.b"
        ),
        "driple/a.py": "class A:\n    def used(self): ...\n    def unused(self): ...\n"
        "def f():\n    return A().used() + _LIMIT\n_LIMIT = 1\n_OLD = 2",
        "driple/b.py": "",
        "driple/worker.py": "",
    })  # fmt: skip
    assert package.modules_not_reached() == ["driple.b"]
    assert package.definitions_not_reached() == [
        "driple.a.A.unused", "driple.a._OLD", "driple.cli.main.alone"
    ]  # fmt: skip
