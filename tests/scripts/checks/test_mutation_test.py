"""Mutation tests of a small module: what is changed, what is noticed, what is kept."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location(
    "mutation_test_program", ROOT / "scripts" / "checks" / "mutation_test.py"
)
assert SPEC is not None
assert SPEC.loader is not None
program = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = program
SPEC.loader.exec_module(program)

SOURCE = '''"""A module."""

from __future__ import annotations

__all__ = ["half"]


def half(number: int | None, more: float = 0.0) -> float | None:
    """Half of a number."""
    if number is None:
        return None
    return number / 2 + more
'''


def changes(source: str) -> set[tuple[str, str]]:
    return {(one.before, one.after) for one in program.mutants_of(source)}


def test_what_runs_is_changed_and_what_is_only_read_is_not() -> None:
    """No mutants of annotations, docstrings or `__all__`, which change nothing."""
    changed = changes(SOURCE)
    assert ("return number / 2 + more", "return number * 2 + more") in changed
    assert ("return number / 2 + more", "return number / 3 + more") in changed
    assert ("return number / 2 + more", "return number / 2 - more") in changed
    assert ("if number is None:", "if number is not None:") in changed
    assert not any("__all__" in before or "& None" in after for before, after in changed)


def test_decorators_and_texts_are_left_out() -> None:
    source = "@decorated(1)\ndef words() -> str:\n    return 'none' * 2\n"
    assert changes(source) == {("return 'none' * 2", "return 'none' / 2"),
                               ("return 'none' * 2", "return 'none' * 3")}  # fmt: skip


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> program.Module:
    """A module with tests that look at one thing."""
    (tmp_path / "halves.py").write_text(SOURCE)
    (tmp_path / "test_halves.py").write_text(
        "from halves import half\n\n\ndef test_half():\n    assert half(3) == 1.5\n"
    )
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return program.Module(name="halves", file="halves.py", tests=("test_halves.py",))


def test_mutants_run_in_place_of_the_module_and_are_kept(
    module: program.Module, tmp_path: Path
) -> None:
    """What the tests look at is noticed; a second run has nothing left to do."""
    mutants = program.mutants_of(SOURCE)
    results = {}
    for result in program.results_of(module, mutants, {}, until_s=float("inf")):
        results[result.module, result.key] = result
    outcomes = {(one.before, one.after): one.outcome for one in results.values()}
    line = "return number / 2 + more"
    assert outcomes[line, "return number * 2 + more"] == "killed"
    assert outcomes[line, "return number / 2 - more"] == "survived"
    assert (tmp_path / "halves.py").read_text() == SOURCE
    assert list(program.results_of(module, mutants, results, until_s=float("inf"))) == []
    assert list(program.results_of(module, mutants, {}, until_s=0.0)) == []
    kept = tmp_path / "results.jsonl"
    rows = [json.dumps(dataclasses.asdict(one)) for one in results.values()]
    kept.write_text("\n".join(rows) + "\n")
    assert program.read_results(kept) == results
    again = program.read_results(kept, again=True)
    assert {one.outcome for one in again.values()} == {"killed"}
    same = {("halves", line, "return number / 2 - more"): "nobody adds more"}
    survivors = program.survivors_of(module, mutants, results, {})
    fewer = program.survivors_of(module, mutants, results, same)
    assert len(fewer) == len(survivors) - 1
    assert "1 equivalent" in program.summary_of(module, mutants, results, same)


def test_an_endless_mutant_is_stopped_and_tests_that_fail_anyway_are_named(
    module: program.Module, tmp_path: Path
) -> None:
    endless = SOURCE.replace("return number / 2 + more", "while True: pass")
    outcome, _ = program.run_tests(module, endless, 3.0)
    assert outcome == "timeout"
    (tmp_path / "test_halves.py").write_text("def test_half():\n    assert False\n")
    with pytest.raises(program.MutationTestError, match="halves: its tests fail as it is"):
        list(program.results_of(module, program.mutants_of(SOURCE), {}, until_s=float("inf")))


def test_all_modules_and_tests_that_are_listed_exist() -> None:
    """And each mutant that is said to change nothing is of a line that is there, with a reason."""
    modules = program.read_modules(program.FOLDER / "modules.toml")
    for listed_module in modules.values():
        for file in (listed_module.file, *listed_module.tests):
            assert (ROOT / file).is_file(), file
    equivalents = program.read_equivalents(program.FOLDER / "equivalent.toml")
    for name, before, _ in equivalents:
        lines = (ROOT / modules[name].file).read_text(encoding="utf-8").split("\n")
        assert before in {line.strip() for line in lines}, (name, before)
    assert all(len(reason) > 10 for reason in equivalents.values())


@pytest.mark.slow
def test_mutants_that_are_said_to_change_nothing_are_mutants() -> None:
    """All mutants of a module are found for that, which takes minutes."""
    modules = program.read_modules(program.FOLDER / "modules.toml")
    equivalents = program.read_equivalents(program.FOLDER / "equivalent.toml")
    for name in {module for module, _, _ in equivalents}:
        possible = changes((ROOT / modules[name].file).read_text(encoding="utf-8"))
        listed = {(before, after) for module, before, after in equivalents if module == name}
        assert listed <= possible, listed - possible


def test_a_mutant_is_seen_through_its_package_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`from package import module` finds the mutant, though the module was imported before."""
    package = tmp_path / "parcel"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("NUMBER = 1\n")
    (tmp_path / "test_parcel.py").write_text(
        "from parcel import one\n\n\ndef test_one():\n    assert one.NUMBER == 1\n"
    )
    monkeypatch.setattr(program, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("parcel.one")
    listed = program.Module(name="one", file="parcel/one.py", tests=("test_parcel.py",))
    fresh = program.preload(listed)
    assert fresh == {"parcel.one"}
    assert program.run_tests(listed, "NUMBER = 1\n", 60.0, fresh)[0] == "survived"
    assert program.run_tests(listed, "NUMBER = 2\n", 60.0, fresh)[0] == "killed"


def test_scripts_that_read_the_module_are_imported_anew_too() -> None:
    """One that was kept would hold classes of which nothing else is an instance."""
    loaded = ["driple.runs.tuning", "scripts.fits.host_factors", "driple.errors", "json"]
    dependents = program.dependents_of("driple.runs.tuning", loaded)
    assert dependents == {"driple.runs.tuning", "scripts.fits.host_factors"}
