"""Processor time of each folder of tests beside its budget in tests/data/time_budget.toml.

scripts/test --build/test_times/*.json--> sum of its runs by folder --> table, folders over budget

    scripts/test && python -m scripts.checks.test_times          # 1 if a folder is over its budget
    python -m scripts.checks.test_times --write                  # times of the folders that ran

Budgets are ratios: a machine that is slow, busy or measures coverage takes longer for all folders,
by about as much as the median folder over its time in the file. A folder is over its budget when it
takes twice as long as that. It then has tests to be made faster, merged or marked `slow`; a new
folder needs a time of its own in the file. Processor time is that of started processes too.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

__all__ = ["budget_text", "budgets_of", "main", "over_budget"]

BY_BUDGET = 2  # budget over what the folder would take here
ALLOWED_S = 20.0  # beside it: what runs once in a process falls to one folder or another
_HEAD = """\
# Processor time of each folder of tests when it was measured last, in seconds: ratios count.
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


def budgets_of(times: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """The most processor time of each folder that ran and has a time in the file, in seconds.

    Args:
        times: processor seconds by folder.
        before: those in the file.
    """
    both = [name for name in times if name in before]
    if not both:
        return {}
    pace = median(times[name] / before[name] for name in both)
    return {name: BY_BUDGET * pace * before[name] + ALLOWED_S for name in both}


def budget_text(times: Mapping[str, float]) -> str:
    """The file of the times."""
    return _HEAD + "".join(f'"{name}" = {seconds:.1f}\n' for name, seconds in sorted(times.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a folder is over its budget."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=Path, default=TIMES, metavar="FOLDER", help="with *.json")
    parser.add_argument("--write", action="store_true", help="times of the folders that ran")
    given = parser.parse_args(arguments)
    files = sorted(given.times.glob("*.json"))
    if not files:
        parser.error(f"no times in {TIMES.relative_to(ROOT)}; run scripts/test first")
    times: Counter[str] = Counter()
    for file in files:
        times.update(json.loads(file.read_text(encoding="utf-8")))
    before: dict[str, float] = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["processor_s"]
    if given.write:
        before |= times
        BUDGET.write_text(budget_text(before), encoding="utf-8")
    budget = budgets_of(times, before)
    print(f"{'folder':20}{'processor_s':>12}{'budget_s':>10}")
    for name, seconds in times.most_common():
        most = f"{budget[name]:.0f}" if name in budget else "-"
        print(f"{name:20}{seconds:12.1f}{most:>10}")
    print(f"{'all':20}{times.total():12.1f}")
    lines = over_budget(times, budget)
    for line in lines:
        print(line, file=sys.stderr)
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
