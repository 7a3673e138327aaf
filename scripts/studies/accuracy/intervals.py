"""What page.md says of intervals: labels held, by setting, family and target."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

import numpy as np

from driple.inspector.intervals import LEVEL
from driple.targets import TARGET_NAMES
from driple.training.arena import SplitKind
from driple.training.sureness import Held
from scripts.studies.accuracy.compared import SPLITS, Compared
from scripts.studies.kit.tables import markdown

LEAST_HELD = 0.85  # on families held out
HELD_AT_RANDOM = (0.87, 0.93)


def by_chance(num: int, share: float = LEVEL) -> tuple[float, float]:
    """Between which shares of `num` values 19 of 20 draws lie if each is held with this chance."""
    sums = np.cumsum([comb(num, k) * share**k * (1 - share) ** (num - k) for k in range(num + 1)])
    low, high = (int(np.searchsorted(sums, end, side="right")) for end in (0.025, 0.975))
    return low / num, min(high, num) / num


def intervals(found: Sequence[Compared]) -> list[str]:
    """What the intervals of the shipped inspectors held, by setting."""
    rows, missed = [], []
    least = {"random": HELD_AT_RANDOM[0], "family": LEAST_HELD}
    most = {"random": HELD_AT_RANDOM[1], "family": 1.0}
    for item in found:
        cells = [item.setting, f"`{item.shipped}`"]
        for split in SPLITS:
            result = item.results[split]
            coverage = item.coverage(split)
            if coverage is None:
                cells += ["-"] * 4
                continue
            num = len({name for fold in result.folds_of(item.shipped) for name in fold.predictions})
            low, high = by_chance(num)
            for share in (coverage.targets, coverage.iteration_time):
                text = f"{share:.1%}"
                cells.append(f"**{text}**" if least[split] <= share <= most[split] else text)
            cells += [str(num), f"{low:.0%} to {high:.0%}"]
            share = coverage.iteration_time
            if not least[split] <= share <= most[split]:
                by = "within" if low <= share <= high else "beyond"
                missed.append(f"{item.setting}, {split} split, {share:.1%} ({by} chance)")
        rows.append(cells)
    head = ["setting", "inspector"]
    for split, goal in (("random", "87 to 93 %"), ("family", "at least 85 %")):
        head += [f"{split}: targets, {goal}", f"{split}: iteration times, {goal}",
                 f"{split}: workloads", f"{split}: by chance"]  # fmt: skip
    words = (
        f"Share of the labels within their {LEVEL:.0%} intervals; bold meets the goal. By chance: "
        f"intervals that hold an iteration time with a chance of exactly {LEVEL:.0%} would hold so "
        "many of so many different workloads in 19 of 20 draws (binomial). Targets are twelve a "
        "workload, but are missed together; so are the workloads of a family that is held out, and "
        "there chance reaches further than it says."
    )
    lines = [words, "", *markdown(head, rows)]
    if missed:
        lines += ["", f"Iteration times that miss the goal: {'; '.join(missed)}."]
    return lines


def _pooled(found: Sequence[Compared], split: SplitKind) -> dict[str, Held]:
    """What was held of each family, over the settings."""
    parts: dict[str, list[Held]] = {}
    for item in found:
        coverage = item.coverage(split)
        for family, held in (coverage.by_family if coverage else {}).items():
            parts.setdefault(family, []).append(held)
    pooled = {}
    for family, rows in sorted(parts.items()):
        counts = [held.num_predictions for held in rows]
        pooled[family] = Held(
            num_predictions=sum(counts),
            targets=float(np.average([held.targets for held in rows], weights=counts)),
            iteration_time=float(
                np.average([held.iteration_time for held in rows], weights=counts)
            ),
        )
    return pooled


def held_by_family(found: Sequence[Compared]) -> list[str]:
    """Coverage of each family, over the measured settings, and in words where it fails."""
    held = {split: _pooled(found, split) for split in SPLITS}
    if not held["family"]:
        return []
    rows = []
    for family in sorted({*held["random"], *held["family"]}):
        cells = [family]
        for split in ("family", "random"):
            of = held[split].get(family)
            cells += ["-"] * 3 if of is None else [
                str(of.num_predictions), f"{of.targets:.0%}", f"{of.iteration_time:.0%}"
            ]  # fmt: skip
        rows.append(cells)
    head = ["family"]
    for name in ("held out", "random"):
        head += [f"{name}: predictions", f"{name}: targets", f"{name}: iteration times"]
    below = [
        (f"{share:.0%} of the {words} of {family}", share)
        for family, of in held["family"].items()
        for words, share in (("iteration times", of.iteration_time), ("targets", of.targets))
        if share < LEAST_HELD
    ]
    below.sort(key=lambda pair: pair[1])
    told = (
        f"When they are held out the intervals hold less than {LEAST_HELD:.0%} of some families, "
        f"which the shares of all hide: {', '.join(words for words, _ in below)}."
        if below
        else f"The intervals hold {LEAST_HELD:.0%} or more of every family that is held out."
    )
    about = "By family, shipped inspectors, over the measured settings and all seeds:"
    return [about, "", *markdown(head, rows), "", told]


def held_by_target(found: Sequence[Compared]) -> list[str]:
    """Coverage of each target, over the measured settings."""
    columns = []
    for split in SPLITS:
        known = [item.coverage(split) for item in found]
        there = [coverage for coverage in known if coverage is not None]
        weights = [sum(of.num_predictions for of in row.by_family.values()) for row in there]
        shares = [[*row.by_target.values(), row.iteration_time] for row in there]
        columns.append(
            [f"{share:.0%}" for share in np.average(shares, axis=0, weights=weights)]
            if there
            else ["-"] * (len(TARGET_NAMES) + 1)
        )
    names = [*TARGET_NAMES, "iteration time"]
    rows = [list(row) for row in zip(names, *columns, strict=True)]
    return ["By target, likewise:", "", *markdown(["target", *SPLITS], rows)]
