"""The killed share of whole packages: which modules and mutants count, and how sure it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.checks import mutation_share, mutation_test
from scripts.checks.mutation_share import Sampled, modules_of, run, sample_of, summary_of, wilson
from scripts.checks.mutation_test import Module, Mutant, MutationTestError, Result

ROOT = Path(__file__).resolve().parents[3]


def mutants(name: str, count: int) -> list[Mutant]:
    return [
        Mutant(before=f"{name}{i}", after=f"not {name}{i}", line=i, source=f"{name} {i}")
        for i in range(count)
    ]


def module(name: str, tests: Sequence[str] = ("tests/test_x.py",)) -> Module:
    return Module(name=name, file=f"driple/{name.replace('.', '/')}.py", tests=tuple(tests))


@pytest.mark.parametrize(
    ("killed", "ran", "ends"),
    # Newcombe, Statistics in Medicine 17 (1998), table I: 81/263, 15/148, 0/20, 1/29.
    [(81, 263, (0.2553, 0.3662)), (15, 148, (0.0624, 0.1605)), (0, 20, (0.0, 0.1611)),
     (1, 29, (0.0061, 0.1718))],
)  # fmt: skip
def test_intervals_of_shares_are_those_of_a_published_table(
    killed: int, ran: int, ends: tuple[float, float]
) -> None:
    assert wilson(killed, ran) == pytest.approx(ends, abs=5e-5)


@given(st.integers(1, 2000), st.floats(0, 1))
def test_an_interval_holds_its_share_and_narrows_with_more_runs(ran: int, share: float) -> None:
    killed = round(share * ran)
    low, high = wilson(killed, ran)
    assert 0 <= low <= killed / ran + 1e-12 and killed / ran - 1e-12 <= high <= 1
    more_low, more_high = wilson(4 * killed, 4 * ran)
    assert more_high - more_low < high - low
    other_low, other_high = wilson(ran - killed, ran)
    assert (1 - other_high, 1 - other_low) == pytest.approx((low, high))


def test_a_module_has_its_mirrored_tests_and_those_that_are_listed(tmp_path: Path) -> None:
    for file in ("driple/a/__init__.py", "driple/a/b.py", "driple/a/c.py", "driple/a/in/d.py",
                 "driple/e/f.py", "tests/a/test_b.py", "tests/a/in/test_d.py"):  # fmt: skip
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    listed = {"bee": Module(name="bee", file="driple/a/b.py", tests=("tests/other.py",))}
    modules = modules_of(["a"], listed, tmp_path)
    assert [(each.name, each.file, each.tests) for each in modules] == [
        ("bee", "driple/a/b.py", ("tests/other.py", "tests/a/test_b.py")),
        ("a.c", "driple/a/c.py", ()),
        ("a.in.d", "driple/a/in/d.py", ("tests/a/in/test_d.py",)),
    ]
    with pytest.raises(MutationTestError, match="no package z"):
        modules_of(["z"], listed, tmp_path)


def test_all_packages_have_modules_and_most_have_tests() -> None:
    listed = mutation_test.read_modules(mutation_test.FOLDER / "modules.toml")
    modules = modules_of(mutation_share.PACKAGES, listed, ROOT)
    assert {Path(each.file).parts[1] for each in modules} == set(mutation_share.PACKAGES)
    assert all((ROOT / test).is_file() for each in modules for test in each.tests)
    assert sum(bool(each.tests) for each in modules) > len(modules) / 2


def test_mutants_of_modules_are_found_in_processes() -> None:
    small = [
        Module(name=name, file=f"driple/{name.replace('.', '/')}.py", tests=())
        for name in ("memory.last_that", "schemes.layouts")
    ]
    mutants = mutation_share.all_mutants(small, 2)
    for (own, some), each in zip(mutants, small, strict=True):
        assert own is each
        source = (ROOT / each.file).read_text(encoding="utf-8")
        assert list(some) == mutation_test.mutants_of(source)


def test_a_sample_draws_each_mutant_as_often() -> None:
    """Of 3 and 9 mutants, 4 at a time: each third of the draws, whatever its module."""
    population = [(module("a.b"), mutants("b", 3)), (module("a.c"), mutants("c", 9))]
    counts: dict[str, int] = {}
    orders = set()
    for seed in range(600):
        drawn = sample_of(population, 4, seed)
        orders.add(tuple(each.module.name for each in drawn))
        names = [mutant.before for each in drawn for mutant in each.mutants]
        assert len(names) == len(set(names)) == 4
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    assert len(counts) == 12
    assert all(150 < count < 250 for count in counts.values())
    assert {("a.b", "a.c"), ("a.c", "a.b")} <= orders
    assert sample_of(population, 4, 7) == sample_of(population, 4, 7)
    assert sum(len(each.mutants) for each in sample_of(population, 99, 0)) == 12


def test_a_summary_counts_what_ran_and_what_has_no_tests() -> None:
    own, bare = mutants("b", 4), mutants("c", 2)
    sampled = [
        Sampled(module=module("a.b"), mutants=tuple(own)),
        Sampled(module=module("z.c", ()), mutants=tuple(bare)),
    ]
    outcomes = dict(zip(own, ("killed", "timeout", "survived"), strict=False))
    results = {
        ("a.b", each.key): Result(
            module="a.b", key=each.key, line=each.line, before=each.before, after=each.after,
            outcome=outcome, seconds=1.0,  # type: ignore[arg-type]
        )
        for each, outcome in outcomes.items()
    }  # fmt: skip
    summary = summary_of(sampled, results, {})
    assert (summary["killed"], summary["survived"], summary["equivalent"]) == (2, 3, 0)
    assert summary["killed_pct"] == 40.0
    assert summary["packages"]["a"]["killed_pct"] == pytest.approx(66.7)
    assert summary["packages"]["z"]["killed_pct"] == 0.0
    assert [row["has_tests"] for row in summary["survivors"]] == [True, False, False]
    same = {("a.b", "b2", "not b2"): "changes nothing", ("z.c", "c0", "not c0"): "nor this"}
    fewer = summary_of(sampled, results, same)
    assert (fewer["killed"], fewer["survived"], fewer["equivalent"]) == (2, 1, 2)
    nothing = summary_of(sampled[:1], {}, {})
    assert nothing["killed_pct"] is None and nothing["interval_pct"] is None


def test_modules_run_in_processes_and_results_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run has nothing left to do; a module whose tests fail anyway is named."""
    monkeypatch.setattr(mutation_test, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sampled = []
    for name, asserted in (("twice", 6), ("thrice", 9), ("broken", 0)):
        source = f"def {name}(x):\n    return x * {3 if name == 'thrice' else 2}\n"
        (tmp_path / f"{name}.py").write_text(source)
        (tmp_path / f"test_{name}.py").write_text(
            f"from {name} import {name}\n\n\ndef test_it():\n    assert {name}(3) == {asserted}\n"
        )
        own = Module(name=name, file=f"{name}.py", tests=(f"test_{name}.py",))
        sampled.append(Sampled(module=own, mutants=tuple(mutation_test.mutants_of(source))))
    kept = tmp_path / "build" / "kept.jsonl"
    (failure,) = run(sampled, kept, minutes=10, processes=2)
    assert failure.startswith("broken: its tests fail as it is")
    rows = [json.loads(line) for line in kept.read_text().splitlines()]
    assert {row["module"] for row in rows} == {"twice", "thrice"}
    assert {row["outcome"] for row in rows} == {"killed"}
    assert len(rows) == sum(len(each.mutants) for each in sampled[:2]) > 2
    assert run(sampled[:2], kept, minutes=10, processes=2) == []
    assert len(kept.read_text().splitlines()) == len(rows)
