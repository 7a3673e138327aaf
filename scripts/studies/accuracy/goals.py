"""What page.md says of the goals: errors, seconds, what was seen before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from driple.dataset.split import random_split
from driple.training.arena import SplitKind, Spread
from driple.training.methods import TRANSFERRED
from scripts.shipped import FIRST
from scripts.studies.accuracy.compared import SPLITS, Compared, seed_words, with_seeds
from scripts.studies.accuracy.intervals import held_by_family, held_by_target, intervals
from scripts.studies.accuracy.tuned import tuned_or_anew
from scripts.studies.kit.tables import markdown

Seeds = tuple[int, ...]


def goals(found: Sequence[Compared]) -> list[str]:
    """The goals of the issue, setting by setting: errors, intervals, seconds."""
    measured = [item for item in found if item.is_measured]
    return [
        *errors(measured), "", *equal_labels(measured), "", *tuned_or_anew(measured), "",
        *on_simulated([item for item in found if not item.is_measured]), "",
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
        [*name, *(with_seeds(text, seeds, usual) for text, seeds in row)]
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
        "iteration times of two runs of one workload differ by, mean",
    ]
    words = (
        "Ratios of SMAPE over all targets: of the inspector to another method, or to what two runs "
        "of one workload differ by. Each is over the seeds that both have"
        + (f": {seed_words(usual)}, or what a cell says" if usual else "")
        + "; bold meets the goal, - has no folds yet."
    )
    return [words, "", *markdown(head, rows), "", *_time_noise(found)]


def _time_noise(found: Sequence[Compared]) -> list[str]:
    """What of the iteration time's error no predictor gets below."""
    missed = [
        (item, time.mean)
        for item in found
        if (time := item.time_median("family", item.shipped)) is not None and time.mean > 8.0
    ]
    floors = [item.time_floor_pct for item, _ in missed if item.time_floor_pct is not None]
    if not floors:
        return []
    names = ", ".join(item.setting for item, _ in missed)
    return [
        f"**Where the iteration time misses its goal** ({names}) "
        f"the labels repeat within {_range(floors, 1)} % (mean over the workloads that ran three "
        "times). A predictor that knew every workload's mean would be 0.7 of that off, as most "
        "labels are of a single run."
    ]


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
        ("-" if item.time_floor_pct is None else f"{item.time_floor_pct:.1f}", ()),
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


def on_simulated(found: Sequence[Compared]) -> list[str]:
    """Where `default` stands on labels without noise."""
    rows = []
    for item in found:
        for split in SPLITS:
            pairs = {name: _pair(item, split, "default", name) for name in ("trees", "forest")}
            known = {name: pair for name, pair in pairs.items() if pair is not None}
            if not known:
                continue
            best = min(known, key=lambda name: known[name][1].mean)
            own, other = known[best]
            rows.append(
                f"{item.setting}, {split} split: `default` {own.mean:.1f} %, `{best}` "
                f"{other.mean:.1f} %"
            )
    if not rows:
        return []
    return [
        "**On simulated labels**, which have no noise and of which a workload's neighbours on the "
        "grid of hyper-parameters are in the training part of a random split, SMAPE is: "
        f"{'; '.join(rows)}. The goals are of measured settings."
    ]


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
        "`python -m scripts.bench.predict` times whole processes, `python "
        "scripts/bench/inspector.py` a warm one; numbers are in "
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
