"""What docs/accuracy.md says of the goals: errors, intervals, seconds, what was seen before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb
from typing import get_args

import numpy as np
from accuracy_compared import Compared, seed_words
from shipped import FIRST, markdown

from driple.dataset.split import random_split
from driple.inspector.intervals import LEVEL
from driple.targets import TARGET_NAMES
from driple.training.arena import SplitKind, Spread
from driple.training.methods import TRANSFERRED
from driple.training.sureness import Held

SPLITS: tuple[SplitKind, ...] = get_args(SplitKind)
LEAST_HELD = 0.85  # on families held out
HELD_AT_RANDOM = (0.87, 0.93)
Seeds = tuple[int, ...]


def goals(found: Sequence[Compared]) -> list[str]:
    """The goals of the issue, setting by setting: errors, intervals, seconds."""
    measured = [item for item in found if item.is_measured]
    return [
        *errors(measured), "", *equal_labels(measured), "", *anew(measured), "",
        "### Intervals", "", *intervals(measured), "",
        *held_by_family(measured), "", *held_by_target(measured), "",
        "### Seconds", "", *seconds(measured),
    ]  # fmt: skip


def errors(found: Sequence[Compared]) -> list[str]:
    """Ratios of errors, each over the seeds that both sides have."""
    cells: list[list[tuple[str, Seeds]]] = []
    names = []
    for item in found:
        for method in dict.fromkeys((item.shipped, "default")):
            is_shipped = method == item.shipped
            names.append([item.setting, f"`{method}`{', shipped' if is_shipped else ', anew'}"])
            cells.append(_goal_cells(item, method))
    counts = Counter(seeds for row in cells for _, seeds in row if seeds)
    usual = counts.most_common(1)[0][0] if counts else ()
    rows = [
        [*name, *(_with_seeds(text, seeds, usual) for text, seeds in row)]
        for name, row in zip(names, cells, strict=True)
    ]
    head = [
        "setting",
        "inspector",
        "random: to paper, at most 0.5",
        "family: to paper, at most 0.5",
        "random: to floor, at most 1.5",
        "family: to trees, below 1",
        "family: median error of the iteration time, at most 8 %",
    ]
    words = (
        "Ratios of SMAPE over all targets: of the inspector to another method, or to what two runs "
        "of one workload differ by. Each is over the seeds that both have"
        + (f": {seed_words(usual)}, or what a cell says" if usual else "")
        + "; bold meets the goal, - has no folds yet."
    )
    return [words, "", *markdown(head, rows)]


def _goal_cells(item: Compared, method: str) -> list[tuple[str, Seeds]]:
    """Texts and the seeds they are over: to paper twice, to the floor, to trees, the time."""
    own = {split: item.results[split].seeds_of(method) for split in SPLITS}
    random, time = item.smape("random", method), item.time_median("family", method)
    floor = item.floor_pct
    return [
        *(_ratio(item, split, method, "paper", 0.5) for split in SPLITS),
        ("-", ()) if random is None or floor is None
        else (_judged(random.mean / floor, 1.5), own["random"]),
        _ratio(item, "family", method, "trees", 1.0),
        ("-", ()) if time is None else (_judged(time.mean, 8.0, digits=1), own["family"]),
    ]  # fmt: skip


def _ratio(
    item: Compared, split: SplitKind, one: str, other: str, most: float
) -> tuple[str, Seeds]:
    pair = _pair(item, split, one, other)
    if pair is None:
        return "-", ()
    return _judged(pair[0].mean / pair[1].mean, most), item.seeds(split, (one, other))


def _pair(item: Compared, split: SplitKind, one: str, other: str) -> tuple[Spread, Spread] | None:
    """SMAPE of two methods on the seeds that both have."""
    seeds = item.seeds(split, (one, other))
    a, b = (item.smape(split, name, seeds) for name in (one, other))
    return (a, b) if seeds and a is not None and b is not None else None


def _with_seeds(text: str, seeds: Seeds, usual: Seeds) -> str:
    return text if not seeds or seeds == usual else f"{text} ({seed_words(seeds)})"


def _judged(value: float, most: float, digits: int = 2) -> str:
    """The number, bold where it meets its goal."""
    text = f"{value:.{digits}f}"
    return f"**{text}**" if value <= most else text


def _range(values: Iterable[float], digits: int = 2, unit: str = "") -> str:
    """Least and largest, once if they read the same."""
    texts = list(dict.fromkeys(f"{value:.{digits}f}" for value in sorted(values)))
    ends = texts if len(texts) == 1 else [texts[0], texts[-1]]
    return " to ".join(ends) + unit


def equal_labels(found: Sequence[Compared]) -> list[str]:
    """What the ratios are worth when all have learned from the same labels."""
    moved = [item for item in found if item.shipped == TRANSFERRED]
    first = next((item for item in found if item.setting == FIRST), None)
    if not moved or first is None:
        return []
    labels = len(first.results["random"].dataset.examples)
    ratios = {
        method: [
            pair[0].mean / pair[1].mean
            for item in moved
            if (pair := _pair(item, "family", method, "trees")) is not None
        ]
        for method in (TRANSFERRED, "default")
    }
    words = (
        f"**Labels are not equal everywhere.** `{TRANSFERRED}` has learned from the training part "
        f"of the {labels} workloads of {FIRST} too; `paper` and trees know the labels of the "
        "setting alone. Rows `default`, anew, are at equal labels"
    )
    if all(ratios.values()):
        words += (
            f": {_range(ratios['default'])} of the error of trees on families held out, where "
            f"`{TRANSFERRED}` has {_range(ratios[TRANSFERRED])}"
        )
    return [
        f"{words}. What trees make of the labels of all settings is in "
        "[several-settings.md](several-settings.md): they gain by them, too."
    ]


def anew(found: Sequence[Compared]) -> list[str]:
    """Whether the transferred inspector is the better one in both errors, on families held out."""
    smapes: list[list[float]] = []
    times: list[list[float]] = []
    for item in found:
        seeds = item.seeds("family", (TRANSFERRED, "default"))
        if item.shipped == TRANSFERRED and seeds:
            for rows, number in ((smapes, item.smape), (times, item.time_median)):
                pair = [number("family", name, seeds) for name in (TRANSFERRED, "default")]
                rows.append([spread.mean for spread in pair if spread is not None])
    if not smapes:
        return []
    num = len(smapes)
    less = [sum(one < other for one, other in rows) for rows in (smapes, times)]
    (smape, smape_anew), (time, time_anew) = np.mean(smapes, axis=0), np.mean(times, axis=0)
    words = (
        f"**Tuned or anew.** With families held out `{TRANSFERRED}` errs less than `default` anew "
        f"in SMAPE on {less[0]} of {num} settings ({smape:.1f} % against {smape_anew:.1f} %, mean "
        f"of the settings), and in the iteration time on {less[1]} of {num} ({time:.1f} % against "
        f"{time_anew:.1f} %, mean of their medians)."
    )
    if less[0] > num / 2 > less[1]:
        words += (
            " Whoever wants the iteration time of a model of a new family alone is better served "
            "by `default-anew.safetensors`, which lies beside the shipped one."
        )
    return [words]


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


def seconds(found: Sequence[Compared]) -> list[str]:
    """How long a training takes, as far as the folds know; where predictions are timed."""
    first = next((item for item in found if item.setting == FIRST), None)
    own: dict[str, list[float]] = {}
    both = []
    for item in found:
        for split, result in item.results.items():
            of_source = {} if first is None else {
                (fold.seed, fold.family): fold.train_seconds
                for fold in first.results[split].folds_of("default")
            }  # fmt: skip
            for method in ("default", TRANSFERRED):
                for fold in result.folds_of(method):
                    own.setdefault(method, []).append(fold.train_seconds)
                    source = of_source.get((fold.seed, fold.family))
                    if method == TRANSFERRED and source is not None:
                        both.append(fold.train_seconds + source)
    words = [
        f"`{method}` {np.median(values):.0f} s (median of {len(values)} folds, "
        f"{max(values):.0f} s at most)"
        for method, values in own.items()
    ]
    lines = [
        f"Training of one inspector, goal at most 180 s on 2 cores: "
        f"{', '.join(words) or 'no folds yet'}. These are "
        "the epochs of the main fit alone, on whatever machine made the fold, with whatever else "
        "it did. Not in them: grouping of the graphs, and the trainings that calibrate the "
        "intervals (decision 0014), whose time is not stored."
    ]
    if both:
        lines[0] += (
            f" `{TRANSFERRED}` needs its source first: with the main fit of that, "
            f"{np.median(both):.0f} s (median), {max(both):.0f} s at most."
        )
    lines += [
        "",
        "Prediction, goal at most 1.0 s cold and 15 ms warm, is not timed here: "
        "`python scripts/bench_predict.py` times whole processes, `python "
        "scripts/bench_inspector.py` a warm one; numbers are in "
        "[decision 0002](decisions/0002-predict-with-numpy.md).",
    ]
    return lines


def seeds_told(found: Sequence[Compared]) -> list[str]:
    """Which seeds each method has, on how many settings."""
    lines = []
    for split in SPLITS:
        there: dict[tuple[str, Seeds], int] = {}
        for item in found:
            result = item.results[split]
            for method in result.methods:
                key = (method, result.seeds_of(method))
                there[key] = there.get(key, 0) + 1
        texts: dict[tuple[Seeds, int], list[str]] = {}
        for (method, seeds), num in there.items():
            texts.setdefault((seeds, num), []).append(f"`{method}`")
        parts = [
            f"{', '.join(names)} {seed_words(seeds)} on {num} setting{'s' if num > 1 else ''}"
            for (seeds, num), names in texts.items()
        ]
        lines.append(f"{split} splits: {'; '.join(parts)}")
    return [f"**Seeds that are there.** On {'. On '.join(lines)}."]


def seen_by_source(found: Sequence[Compared]) -> list[str]:
    """Where the test workloads of random splits stand in the source's split of the same seed."""
    moved = [item for item in found if item.is_measured and item.shipped == TRANSFERRED]
    first = next((item for item in found if item.setting == FIRST), None)
    if not moved or first is None:
        return []
    source = first.results["random"].dataset.workloads
    counts: dict[str, list[int]] = {"train": [], "validation": [], "test": []}
    tested = set()
    for item in moved:
        result = item.results["random"]
        for seed in result.config.seeds:
            names = result.dataset.workloads
            test = {names[i] for i in random_split(names, seed).test}
            split = random_split(source, seed)
            tested.add(len(test))
            for part, numbers in counts.items():
                numbers.append(len(test & {source[i] for i in getattr(split, part)}))
    spans = {part: _range(numbers, digits=0) for part, numbers in counts.items()}
    return [
        f"**What the source of a transfer has seen.** On random splits, of the "
        f"{_range(tested, digits=0)} test workloads of a setting {spans['train']} are in the "
        f"training part of the source, {spans['validation']} in its validation part, and "
        f"{spans['test']} in its test part ({len(moved)} settings, "
        f"{seed_words(moved[0].results['random'].config.seeds)}): a workload's place in a split is "
        "a hash of the seed and its name, on every setting."
    ]
