"""Mutation tests: change one thing in a module at a time, and see whether its tests notice.

    module -> mutants (mutmut's operators) -> tests of each, in a process of its own -> results

Nothing on disk is changed: a mutant is compiled from memory in place of its module. Results are
kept, so a run that was stopped goes on; `--again` runs the survivors once more.

    python -m scripts.checks.mutation_test --modules plan,counters --sample 100 --seed 0
                                           --minutes 10

In `scripts/checks/mutation/`, `modules.toml` names the modules and their tests, and
`equivalent.toml` the mutants that change nothing, with the reasons. Mutants of
annotations, docstrings, decorators and texts are left out, and those that put None in place of a
value.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import hashlib
import importlib.abc
import importlib.machinery
import json
import os
import random
import signal
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal, cast

if TYPE_CHECKING:
    import libcst as cst

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "scripts" / "checks" / "mutation"
RESULTS = ROOT / "build" / "mutation" / "results.jsonl"

Outcome = Literal["killed", "timeout", "survived"]
# A mutant may take as many times what the tests take as they are, and at least so long.
_SLOWER, _LEAST_S = 5.0, 15.0
_KILLED, _SURVIVED, _PASSED_NONE = 1, 0, 5
_OPTIONS = ("-p", "no:cacheprovider", "-p", "no:randomly")
# Operators whose mutants mostly fail at once (a value or an argument becomes None), or change the
# words of a message: they would raise the share that is noticed, and tell nothing of formulas.
_LEFT_OUT = frozenset({"operator_string", "operator_assignment", "operator_arg_removal"})
_PACKAGES = frozenset({"driple", "scripts"})  # whose modules may import a module under test
# Subscripts of these at the top of a module name types, which nothing looks at while it runs.
_TYPES = frozenset({"npt.NDArray", "Callable", "Mapping", "Sequence", "dict", "list", "tuple"})


class MutationTestError(Exception):
    """Tests that fail without a mutant, or a module that is not listed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Module:
    """A module under test.

    Attributes:
        name: in `modules.toml`.
        file: relative to the repository.
        tests: files of pytest that must notice its mutants.
    """

    name: str
    file: str
    tests: tuple[str, ...]

    @property
    def import_name(self) -> str:
        """As Python imports it."""
        return self.file.removesuffix(".py").replace("/", ".")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutant:
    """One change.

    Attributes:
        before: the lines that differ, without indentation, as they are.
        after: the same lines, changed.
        line: number of the first.
        source: of the whole module.
    """

    before: str
    after: str
    line: int
    source: str

    @property
    def key(self) -> str:
        """Hash of the changed module, by which results are kept."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What happened to one mutant."""

    module: str
    key: str
    line: int
    before: str
    after: str
    outcome: Outcome
    seconds: float


def read_modules(file: Path) -> dict[str, Module]:
    """The modules of `modules.toml`, by name."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: Module(name=name, file=row["file"], tests=tuple(row["tests"]))
        for name, row in rows.items()
    }


def read_equivalents(file: Path) -> dict[tuple[str, str, str], str]:
    """Reasons of `equivalent.toml`, by module, lines before and lines after."""
    rows = tomllib.loads(file.read_text(encoding="utf-8")).get("equivalent", [])
    return {(row["module"], row["before"], row["after"]): row["reason"] for row in rows}


def mutants_of(source: str) -> list[Mutant]:
    """All mutants of a module that change what it does, each once, in the order of its lines."""
    import libcst as cst
    from mutmut.mutation.mutators import mutation_operators

    module = cst.parse_module(source)
    meaning = _meaning(source)
    mutants: dict[str, Mutant] = {}
    for node in _nodes(module):
        for kind, operator in mutation_operators:
            if operator.__name__ in _LEFT_OUT or not isinstance(node, kind):
                continue
            for changed in operator(node):
                code = cast("cst.Module", module.deep_replace(node, changed)).code
                if code not in mutants and _means_something_else(code, meaning):
                    mutants[code] = _mutant(source, code)
    return sorted(mutants.values(), key=lambda one: (one.line, one.after))


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """All nodes below this one that run: no decorators and no annotations."""
    import libcst as cst

    for child in node.children:
        if not isinstance(child, cst.Decorator | cst.Annotation):
            yield child
            yield from _nodes(child)


def _means_something_else(code: str, meaning: str) -> bool:
    try:
        return _meaning(code) != meaning
    except SyntaxError:
        return False


def _meaning(source: str) -> str:
    """The syntax tree without docstrings, annotations, names of types and `__all__`."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(value=None)
        if isinstance(node, ast.FunctionDef):
            node.returns = None
    tree.body = [one for one in tree.body if not (isinstance(one, ast.Assign) and _is_idle(one))]
    return ast.dump(tree)


def _is_idle(assignment: ast.Assign) -> bool:
    """Whether an assignment is of `__all__`, or of a name that ends as types' names do here."""
    name = ast.unparse(assignment.targets[0])
    is_type = (
        isinstance(assignment.value, ast.Subscript)
        and ast.unparse(assignment.value.value) in _TYPES
    )
    return name == "__all__" or is_type or name.endswith("Array")


def _mutant(source: str, code: str) -> Mutant:
    old, new = source.splitlines(), code.splitlines()
    blocks = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    begin, end = changed[0][1], changed[-1][2]
    new_begin, new_end = changed[0][3], changed[-1][4]
    return Mutant(
        before=" ".join(line.strip() for line in old[begin:end]),
        after=" ".join(line.strip() for line in new[new_begin:new_end]),
        line=begin + 1,
        source=code,
    )


class _MutantImporter(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module from a text in place of its file."""

    def __init__(self, name: str, path: Path, source: str) -> None:
        self.name, self.path, self.source = name, path, source

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the module, and of no other."""
        if fullname != self.name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self.path))

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        module.__file__ = str(self.path)
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)  # noqa: S102


def preload(module: Module) -> set[str]:
    """Import once what the tests of a module import, but for what depends on the module itself.

    Returns:
        Names of the modules that do, and of the module: each mutant's process imports them anew.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as listed:
        child = os.fork()
        if not child:
            _list_imports(module, Path(listed.name))
        os.waitpid(child, 0)
        names = listed.read().split()
    dependents = dependents_of(module.import_name, names)
    for name in names:
        if name not in dependents and not _is_test(name):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    return dependents


def _is_test(name: str) -> bool:
    first, last = name.partition(".")[0], name.rpartition(".")[2]
    return first in {"tests", "__main__"} or last.startswith(("test_", "conftest"))


def _list_imports(module: Module, into: Path) -> None:
    """Collect the tests, and write down what that imports; does not return."""
    try:
        import pytest

        _be_silent()
        pytest.main(["--collect-only", "-q", *_OPTIONS, *_paths(module)])
        into.write_text("\n".join(sys.modules), encoding="utf-8")
    finally:
        os._exit(0)


def dependents_of(name: str, loaded: Iterable[str]) -> set[str]:
    """The module and those of this repository that import it, in however many steps.

    A script that is kept while what it imports is imported anew would hold classes of which nothing
    else is an instance.
    """
    packages = {name.partition(".")[0], *_PACKAGES}
    readers: dict[str, set[str]] = {}
    for module in loaded:
        if module.partition(".")[0] not in packages:
            continue
        for read in _imports_of(module):
            readers.setdefault(read, set()).add(module)
    dependents, todo = {name}, [name]
    while todo:
        for reader in readers.get(todo.pop(), set()) - dependents:
            dependents.add(reader)
            todo.append(reader)
    return dependents


def _imports_of(name: str) -> set[str]:
    """What a module may import: its packages, and all names in its import statements."""
    parts = name.split(".")
    names = {".".join(parts[:count]) for count in range(1, len(parts))}
    base = ROOT.joinpath(*parts)
    file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    if not file.is_file():
        return names
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def run_tests(
    module: Module, source: str, limit_s: float, fresh: Iterable[str] = ()
) -> tuple[Outcome, float]:
    """Run the tests of a module with another source, in a process of its own.

    Args:
        module: whose tests run.
        source: of the module.
        limit_s: seconds after which it counts as an endless loop.
        fresh: modules that are imported anew, of `preload`.
    """
    started = time.monotonic()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)  # so that what the tests start ends with them
        _run_in_child(module, source, fresh)
    while time.monotonic() - started < limit_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == _PASSED_NONE:
                raise MutationTestError(f"no tests in {', '.join(module.tests)}")
            return "survived" if code == _SURVIVED else "killed", time.monotonic() - started
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timeout", time.monotonic() - started


def _be_silent() -> None:
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)


def _paths(module: Module) -> list[str]:
    return [str(ROOT / test) for test in module.tests]


def _run_in_child(module: Module, source: str, fresh: Iterable[str]) -> None:
    """Does not return."""
    code = _KILLED
    try:
        import pytest

        sys.meta_path.insert(0, _MutantImporter(module.import_name, ROOT / module.file, source))
        for name in fresh:
            sys.modules.pop(name, None)
            package, _, last = name.rpartition(".")
            if package in sys.modules:  # for `from package import name`
                vars(sys.modules[package]).pop(last, None)
        _be_silent()
        code = int(pytest.main(["-x", "-q", *_OPTIONS, *_paths(module)]))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def results_of(
    module: Module,
    mutants: Sequence[Mutant],
    known: Mapping[tuple[str, str], Result],
    *,
    until_s: float,
) -> Iterator[Result]:
    """Results of mutants of which none is known, until the time is over.

    Raises:
        MutationTestError: the tests fail without a mutant, or there are none.
    """
    todo = [one for one in mutants if (module.name, one.key) not in known]
    if not todo or time.monotonic() >= until_s:
        return
    fresh = preload(module)
    source = (ROOT / module.file).read_text(encoding="utf-8")
    outcome, usual_s = run_tests(module, source, 600.0, fresh)
    if outcome != "survived":
        raise MutationTestError(f"{module.name}: its tests fail as it is: {outcome}")
    limit_s = max(_LEAST_S, _SLOWER * usual_s)
    for mutant in todo:
        if time.monotonic() >= until_s:
            return
        outcome, seconds = run_tests(module, mutant.source, limit_s, fresh)
        yield Result(
            module=module.name,
            key=mutant.key,
            line=mutant.line,
            before=mutant.before,
            after=mutant.after,
            outcome=outcome,
            seconds=round(seconds, 2),
        )


def read_results(file: Path, *, again: bool = False) -> dict[tuple[str, str], Result]:
    """Results that are kept, by module and mutant; without survivors where they run again."""
    if not file.exists():
        return {}
    rows = [Result(**json.loads(line)) for line in file.read_text().splitlines()]
    results = {(one.module, one.key): one for one in rows}
    return {key: one for key, one in results.items() if not (again and one.outcome == "survived")}


def summary_of(
    module: Module,
    mutants: Sequence[Mutant],
    results: Mapping[tuple[str, str], Result],
    equivalents: Mapping[tuple[str, str, str], str],
) -> str:
    """One line: how many mutants there are, ran, were noticed, and change nothing."""
    ran = [results[key] for one in mutants if (key := (module.name, one.key)) in results]
    killed = [one for one in ran if one.outcome != "survived"]
    survived = [one for one in ran if one.outcome == "survived"]
    same = [one for one in survived if (one.module, one.before, one.after) in equivalents]
    counted = len(ran) - len(same)
    share = f"{100 * len(killed) / counted:.1f} %" if counted else "-"
    how = "whole" if len(ran) == len(mutants) else "sample"
    return (
        f"{module.name:14} {len(mutants):5} mutants {len(ran):5} ran ({how}) {len(killed):5} "
        f"killed {len(survived) - len(same):4} survived {len(same):4} equivalent  {share}"
    )


def survivors_of(
    module: Module,
    mutants: Iterable[Mutant],
    results: Mapping[tuple[str, str], Result],
    equivalents: Mapping[tuple[str, str, str], str],
) -> list[str]:
    """What was not noticed, and is not known to change nothing: a change a line."""
    return [
        f"{module.file}:{one.line}\n    - {one.before}\n    + {one.after}"
        for one in mutants
        if (result := results.get((module.name, one.key))) is not None
        and result.outcome == "survived"
        and (module.name, one.before, one.after) not in equivalents
    ]


def _sampled(mutants: Sequence[Mutant], count: int | None, seed: int) -> list[Mutant]:
    if count is None or count >= len(mutants):
        return list(mutants)
    chosen = random.Random(seed).sample(range(len(mutants)), count)  # noqa: S311  # no cryptography
    return [mutants[i] for i in sorted(chosen)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", help="names of modules.toml, joined by commas; all by default")
    parser.add_argument("--sample", type=int, help="most mutants of each module; all by default")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample")
    parser.add_argument("--minutes", type=float, default=60.0, help="end after so long")
    parser.add_argument("--again", action="store_true", help="run the survivors once more")
    parser.add_argument("--report", action="store_true", help="run nothing, report what is known")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of the results")
    return parser.parse_args()


def main() -> int:
    """Run the mutants that were asked for; 1 if one survived that is not known to be equivalent."""
    given = _arguments()
    listed = read_modules(FOLDER / "modules.toml")
    names = given.modules.split(",") if given.modules else list(listed)
    unknown = [name for name in names if name not in listed]
    if unknown:
        raise MutationTestError(f"no module {unknown[0]}; choose of {', '.join(listed)}")
    equivalents = read_equivalents(FOLDER / "equivalent.toml")
    results = read_results(given.results, again=given.again)
    given.results.parent.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(ROOT))
    until_s = time.monotonic() + 60 * given.minutes
    survivors = []
    for module in (listed[name] for name in names):
        mutants = mutants_of((ROOT / module.file).read_text(encoding="utf-8"))
        if not given.report:
            chosen = _sampled(mutants, given.sample, given.seed)
            with given.results.open("a", encoding="utf-8") as kept:
                for result in results_of(module, chosen, results, until_s=until_s):
                    results[result.module, result.key] = result
                    kept.write(json.dumps(asdict(result)) + "\n")
                    kept.flush()
        print(summary_of(module, mutants, results, equivalents), flush=True)
        survivors += survivors_of(module, mutants, results, equivalents)
    print("\n".join(survivors))
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
