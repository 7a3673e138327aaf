"""Processor time of each folder of tests beside its budget in tests/data/time_budget.toml.

scripts/test --build/test_times/*.json--> sum of its runs by folder --> table, folders over budget

    scripts/test && python -m scripts.checks.test_times          # 1 if a folder is over its budget
    scripts/test --cov=driple && python -m scripts.checks.test_times --coverage
    python -m scripts.checks.test_times --write                  # budgets of the folders that ran

Processor time, that of started processes included, depends less on what else runs than time by the
clock does. A folder that is over its budget has tests to be made faster, merged or marked `slow`; a
new folder needs a budget of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["budget_of", "budget_text", "main", "over_budget"]

BY_COVERAGE = 1.6  # how many times as long a run takes that measures coverage
BY_BUDGET = 2  # budget over the time without coverage, as measured
LEAST_S = 10  # what a folder may take that takes next to nothing
_HEAD = f"""\
# The most processor time of each folder of tests without coverage, in seconds: {BY_BUDGET} times
# what it took when it was measured last, and {LEAST_S} at least.
# python -m scripts.checks.test_times compares, with --write it writes the folders that ran.
[processor_s]
"""

ROOT = Path(__file__).resolve().parents[2]
TIMES = ROOT / "build" / "test_times"
BUDGET = ROOT / "tests" / "data" / "time_budget.toml"


def over_budget(times: Mapping[str, float], budget: Mapping[str, float]) -> list[str]:
    """Folders over their budgets, or without one, one line each.

    Args:
        times: processor seconds by folder.
        budget: the most of them, by folder.
    """
    lines = []
    for name, seconds in sorted(times.items()):
        most = budget.get(name)
        if most is None:
            lines.append(f"{name}: {seconds:.0f} s of processor time, and no budget")
        elif seconds > most:
            lines.append(f"{name}: {seconds:.0f} s of processor time, {most:.0f} s allowed")
    return lines


def budget_of(seconds: float, *, coverage: bool = False) -> int:
    """Budget of a folder.

    Args:
        seconds: processor time that it took.
        coverage: whether coverage was measured.
    """
    plain_s = seconds / (BY_COVERAGE if coverage else 1.0)
    return max(LEAST_S, math.ceil(BY_BUDGET * plain_s))


def budget_text(budget: Mapping[str, float]) -> str:
    """The file of the budgets."""
    return _HEAD + "".join(f'"{name}" = {most}\n' for name, most in sorted(budget.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a folder is over its budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=Path, default=TIMES, metavar="FOLDER", help="with *.json")
    parser.add_argument(
        "--coverage", action="store_true", help=f"{BY_COVERAGE} times the budget: it was measured"
    )
    parser.add_argument("--write", action="store_true", help="new budgets of the folders that ran")
    given = parser.parse_args(arguments)
    files = sorted(given.times.glob("*.json"))
    if not files:
        parser.error(f"no times in {TIMES.relative_to(ROOT)}; run scripts/test first")
    times: Counter[str] = Counter()
    for file in files:
        times.update(json.loads(file.read_text(encoding="utf-8")))
    allowed: dict[str, float] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["processor_s"]
    if given.write:
        allowed |= {name: budget_of(s, coverage=given.coverage) for name, s in times.items()}
        BUDGET.write_text(budget_text(allowed), encoding="utf-8")
    scale = BY_COVERAGE if given.coverage else 1.0
    budget = {name: round(scale * seconds) for name, seconds in allowed.items()}
    print(f"{'folder':20}{'processor_s':>12}{'budget_s':>10}")
    for name, seconds in times.most_common():
        print(f"{name:20}{seconds:12.1f}{budget.get(name, '-'):>10}")
    print(f"{'all':20}{times.total():12.1f}")
    lines = over_budget(times, budget)
    for line in lines:
        print(line, file=sys.stderr)
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
