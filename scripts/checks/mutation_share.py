"""Share of mutants that the tests of whole packages notice: a random sample, with its interval.

    packages -> modules with their tests -> all mutants -> sample -> killed share, Wilson interval

    python -m scripts.checks.mutation_share --sample 400 --minutes 25 --processes 2

A module's tests are those of its mirrored file, such as tests/planning/test_offers.py for
driple/planning/offers.py, and those that `mutation/modules.toml` names for it. A mutant of a module
without any counts as survived. Mutants that `mutation/equivalent.toml` lists are left out of the
share. Each mutant has the same chance to be in the sample, whatever its module; modules run in a
random order, and `--minutes` may end a run early: the same command then goes on where it stopped.
`mutation/share.json` has the result with its date. To find all mutants takes two of the minutes,
which `--minutes` does not count.
"""

from __future__ import annotations

import argparse
import datetime
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any

from scripts.checks.mutation_test import (
    FOLDER,
    ROOT,
    Module,
    Mutant,
    MutationTestError,
    Result,
    mutants_of,
    read_equivalents,
    read_modules,
    read_results,
    results_of,
)

RESULTS = ROOT / "build" / "mutation" / "share.jsonl"
OUT = FOLDER / "share.json"
PACKAGES = ("answers", "planning", "memory", "schemes", "simulate")
LEAST_PCT = 90.0
_Z = 1.959964  # quantile 0.975 of the normal distribution: a 95 % interval
_NO_TESTS = {"__init__.py", "__main__.py"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampled:
    """Mutants of one module that are in the sample.

    Attributes:
        module: with its tests; none for a module without tests.
        mutants: in the order of its lines.
    """

    module: Module
    mutants: tuple[Mutant, ...]


def wilson(killed: int, ran: int) -> tuple[float, float]:
    """Ends of the 95 % interval of a share by Wilson's score.

    Args:
        killed: of those that ran.
        ran: 1 or more.
    """
    share, square = killed / ran, _Z**2
    middle = (share + square / (2 * ran)) / (1 + square / ran)
    half = _Z / (1 + square / ran) * sqrt(share * (1 - share) / ran + square / (4 * ran**2))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def modules_of(packages: Sequence[str], listed: Mapping[str, Module], root: Path) -> list[Module]:
    """All modules of some packages, in order, each with its tests.

    Args:
        packages: names of folders of `driple`.
        listed: modules of modules.toml, whose names and tests count.
        root: of the repository.

    Raises:
        MutationTestError: no such package.
    """
    by_file = {module.file: module for module in listed.values()}
    modules = []
    for package in packages:
        files = sorted((root / "driple" / package).rglob("*.py"))
        if not files:
            raise MutationTestError(f"driple has no package {package}")
        for path in files:
            if path.name in _NO_TESTS:
                continue
            file = path.relative_to(root).as_posix()
            inner = path.relative_to(root / "driple")
            own = root / "tests" / inner.parent / f"test_{path.stem.lstrip('_')}.py"
            mirrored = (own.relative_to(root).as_posix(),) if own.is_file() else ()
            name = inner.with_suffix("").as_posix().replace("/", ".")
            module = by_file.get(file, Module(name=name, file=file, tests=()))
            tests = tuple(dict.fromkeys([*module.tests, *mirrored]))  # quick ones first
            modules.append(replace(module, tests=tests))
    return modules


def all_mutants(modules: Sequence[Module], processes: int) -> list[tuple[Module, Sequence[Mutant]]]:
    """The mutants of each module; those of five packages take minutes of one core.

    Args:
        modules: of which.
        processes: how many modules are read at a time.
    """
    sources = [(ROOT / module.file).read_text(encoding="utf-8") for module in modules]
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return list(zip(modules, pool.map(mutants_of, sources, chunksize=1), strict=True))


def sample_of(
    mutants: Sequence[tuple[Module, Sequence[Mutant]]], count: int, seed: int
) -> list[Sampled]:
    """Mutants drawn from all of all modules without putting back; modules in a random order.

    Args:
        mutants: of each module.
        count: how many to draw.
        seed: of the draw.
    """
    everyone = [(i, mutant) for i, (_, own) in enumerate(mutants) for mutant in own]
    draw = random.Random(seed)  # noqa: S311  # no cryptography
    chosen: dict[int, list[Mutant]] = {}
    for at in sorted(draw.sample(range(len(everyone)), min(count, len(everyone)))):
        chosen.setdefault(everyone[at][0], []).append(everyone[at][1])
    order = list(chosen)
    draw.shuffle(order)
    return [Sampled(module=mutants[i][0], mutants=tuple(chosen[i])) for i in order]


def summary_of(
    sampled: Sequence[Sampled],
    results: Mapping[tuple[str, str], Result],
    equivalents: Mapping[tuple[str, str, str], str],
) -> dict[str, Any]:
    """Counts, the killed share and its interval, by package, and the survivors.

    Args:
        sampled: mutants that were drawn.
        results: of those that ran.
        equivalents: reasons of mutants that change nothing.
    """
    counts: dict[str, dict[str, int]] = {}
    survivors = []
    for each in sampled:
        package = Path(each.module.file).parts[1]
        of_package = counts.setdefault(package, {"killed": 0, "survived": 0, "equivalent": 0})
        for mutant in each.mutants:
            result = results.get((each.module.name, mutant.key))
            if result is None and each.module.tests:
                continue
            if result is not None and result.outcome != "survived":
                of_package["killed"] += 1
            elif (each.module.name, mutant.before, mutant.after) in equivalents:
                of_package["equivalent"] += 1
            else:
                of_package["survived"] += 1
                survivors.append({
                    "file": each.module.file,
                    "line": mutant.line,
                    "before": mutant.before,
                    "after": mutant.after,
                    "has_tests": bool(each.module.tests),
                })  # fmt: skip
    total = {name: sum(own[name] for own in counts.values()) for name in
             ("killed", "survived", "equivalent")}  # fmt: skip
    return {
        **_shares(total),
        "packages": {name: _shares(counts[name]) for name in sorted(counts)},
        "survivors": sorted(survivors, key=lambda row: (row["file"], row["line"], row["after"])),
    }


def _shares(counts: Mapping[str, int]) -> dict[str, Any]:
    """Counts with the killed share and its interval, percent; None where none ran."""
    ran = counts["killed"] + counts["survived"]
    ends = wilson(counts["killed"], ran) if ran else None
    return {
        **counts,
        "killed_pct": round(100 * counts["killed"] / ran, 1) if ran else None,
        "interval_pct": None if ends is None else [round(100 * end, 1) for end in ends],
    }


def run(
    sampled: Sequence[Sampled],
    file: Path,
    *,
    minutes: float,
    processes: int,
    again: bool = False,
) -> list[str]:
    """Run all mutants of which no result is kept, and keep each.

    Args:
        sampled: mutants that were drawn.
        file: of the results.
        minutes: no mutant begins after so long.
        processes: how many modules run at a time.
        again: whether survivors run once more.

    Returns:
        Why modules could not be tested.
    """
    known = read_results(file, again=again)
    file.parent.mkdir(parents=True, exist_ok=True)
    until_s = time.monotonic() + 60 * minutes
    context = multiprocessing.get_context("fork")
    taken, failures = context.Value("i", 0), context.SimpleQueue()
    some = [each for each in sampled if each.module.tests]

    def run_module(each: Sampled) -> None:
        try:
            for result in results_of(each.module, each.mutants, known, until_s=until_s):
                with taken.get_lock(), file.open("a", encoding="utf-8") as kept:
                    kept.write(json.dumps(asdict(result)) + "\n")
        except MutationTestError as error:
            failures.put(str(error))

    def work() -> None:
        while True:
            with taken.get_lock():
                number, taken.value = taken.value, taken.value + 1
            if number >= len(some) or time.monotonic() >= until_s:
                return
            # A process each: what tests of one module import may spoil those of another.
            alone = context.Process(target=run_module, args=(some[number],))
            alone.start()
            alone.join()

    workers = [context.Process(target=work) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    reasons = []
    while not failures.empty():
        reasons.append(failures.get())
    return reasons


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", default=",".join(PACKAGES), help="joined by commas")
    parser.add_argument("--sample", type=int, default=400, help="mutants of all modules together")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample")
    parser.add_argument("--minutes", type=float, default=25.0, help="end after so long")
    parser.add_argument("--processes", type=int, default=2, help="modules at a time")
    parser.add_argument("--again", action="store_true", help="run the survivors once more")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of kept results")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the dated result")
    return parser.parse_args()


def main() -> int:
    """Run the sample; 1 if the killed share is below 90 % or a part has not run."""
    given = _arguments()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(ROOT))
    packages = given.packages.split(",")
    modules = modules_of(packages, read_modules(FOLDER / "modules.toml"), ROOT)
    mutants = all_mutants(modules, given.processes)
    sampled = sample_of(mutants, given.sample, given.seed)
    failures = run(
        sampled, given.results, minutes=given.minutes, processes=given.processes, again=given.again
    )
    equivalents = read_equivalents(FOLDER / "equivalent.toml")
    summary = summary_of(sampled, read_results(given.results), equivalents)
    drawn = sum(len(each.mutants) for each in sampled)
    ran = summary["killed"] + summary["survived"] + summary["equivalent"]
    outcome = {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "modules": len(modules),
        "modules_without_tests": [module.file for module in modules if not module.tests],
        "mutants": sum(len(own) for _, own in mutants),
        "sample": drawn,
        "seed": given.seed,
        "not_run": drawn - ran,
        "not_testable": failures,
        **summary,
    }
    given.out.write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")
    for name in ("date", "mutants", "sample", "not_run", "killed_pct", "interval_pct"):
        print(f"{name:14} {outcome[name]}")
    for name, counts in summary["packages"].items():
        print(f"{name:14} {counts}")
    for row in summary["survivors"]:
        print(f"{row['file']}:{row['line']}\n    - {row['before']}\n    + {row['after']}")
    for reason in failures:
        print(reason, file=sys.stderr)
    is_enough = summary["killed_pct"] is not None and summary["killed_pct"] >= LEAST_PCT
    return 0 if is_enough and not outcome["not_run"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
