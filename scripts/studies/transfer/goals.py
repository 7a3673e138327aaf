"""What a transfer saves and how long trainings take, against what was asked for and the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driple.dataset.example import Dataset
from driple.training.arena import ArenaConfig
from driple.training.evaluate import run_arena
from scripts.shipped import FOLDS
from scripts.studies.kit.tables import markdown
from scripts.studies.transfer.run import MOVED, SEEDS, SIZES, Results, mean, to_best_s

PRESETS = ("default", "paper")
# How many times fewer labels and less time, at the accuracy of training anew on all labels.
GOAL = {"data": 4.0, "time": 15.0}
PAPER = {"data": 2.5, "time": 7.3}
# Seconds that were asked for: one training to its best epoch, one transfer as a whole.
TRAINING_S = {"default": 300.0, "paper": 2400.0}
TRANSFER_S = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Saving:
    """The fewest labels with which a transfer is as good as training anew on all.

    Attributes:
        num_labels: to train and to validate on.
        nrmse: with these, mean over seeds.
        data: how many times fewer labels.
        time: how many times less time to the best epoch.
        time_in_all: how many times less time for all epochs.
    """

    num_labels: int
    nrmse: float
    data: float
    time: float
    time_in_all: float

    def reaches(self, wanted: dict[str, float]) -> dict[str, bool]:
        """Whether it saves as much data and time as that."""
        return {"data": self.data >= wanted["data"], "time": self.time >= wanted["time"]}


def saving(results: Results, target: str, preset: str, num_labels: int) -> Saving | None:
    """What a transfer saves on a setting; None if it is never as good, or nothing is anew."""
    same = {"target": target, "preset": preset}
    anew = results.pick(**same, size=0, layers=())
    for size in (*SIZES, 0) if anew else ():
        moved = results.pick(**same, size=size, **MOVED[preset])
        if moved and mean(moved, "nrmse")[0] <= mean(anew, "nrmse")[0]:
            return Saving(
                num_labels=size or num_labels,
                nrmse=mean(moved, "nrmse")[0],
                data=num_labels / (size or num_labels),
                time=less_time(anew, moved, "seconds_to_best"),
                time_in_all=less_time(anew, moved, "seconds"),
            )
    return None


def less_time(anew: list[dict[str, Any]], moved: list[dict[str, Any]], name: str) -> float:
    """How many times less time the second take, in the mean."""
    return mean(anew, name)[0] / mean(moved, name)[0]


def saving_table(results: Results, targets: list[str], labels: dict[str, int]) -> list[str]:
    """What transfer saves: the fewest labels with which it is as good as training anew on all."""
    head = ["setting", "preset", "NRMSE anew, all labels", "fewest labels as good by transfer",
            "NRMSE then", "data saved", "time saved to the best epoch",
            "time saved in all"]  # fmt: skip
    rows = []
    for preset in PRESETS:
        for target in targets:
            anew = results.pick(target=target, preset=preset, size=0, layers=())
            if not anew:
                continue
            cells = [target, preset, f"{mean(anew, 'nrmse')[0]:.4f}"]
            found = saving(results, target, preset, labels[target])
            if found is None:
                rows.append([*cells, "none", "-", "-", "-", "-"])
                continue
            saved = (f"{found.time:.1f} x", f"{found.time_in_all:.1f} x")
            rows.append(
                [*cells, f"{found.num_labels}", f"{found.nrmse:.4f}", f"{found.data:.1f} x", *saved]
            )
    return markdown(head, rows)


def goal_lines(results: Results, targets: list[str], labels: dict[str, int]) -> list[str]:
    """Whether the goal and the paper's figures are met, by setting."""
    least = min(SIZES)
    head = ["setting", "preset"]
    for thing in ("data", "time"):
        head += [f"{thing} saved", f"goal: {GOAL[thing]:g} x", f"paper: {PAPER[thing]:g} x"]
    head += [f"NRMSE with {least} labels, over that anew", "seeds as good", "time saved then"]
    rows, words = [], []
    for preset in PRESETS:
        there: list[Saving | None] = []
        for target in targets:
            same = {"target": target, "preset": preset}
            anew = results.pick(**same, size=0, layers=())
            few = results.pick(**same, size=least, **MOVED[preset])
            if not anew or not few:
                continue
            there.append(found := saving(results, target, preset, labels[target]))
            cells = [target, preset]
            for thing in ("data", "time"):
                cells.append(f"{getattr(found, thing):.1f} x" if found else "-")
                for wanted in (GOAL, PAPER):
                    reached = found is not None and found.reaches(wanted)[thing]
                    cells.append("met" if reached else "missed")
            errors = [{row["seed"]: row["nrmse"] for row in some} for some in (few, anew)]
            seeds = sorted(set(errors[0]) & set(errors[1]))
            as_good = sum(errors[0][seed] <= errors[1][seed] for seed in seeds)
            cells += [
                f"{mean(few, 'nrmse')[0] / mean(anew, 'nrmse')[0]:.2f}",
                f"{as_good} of {len(seeds)}",
                f"{less_time(anew, few, 'seconds_to_best'):.1f} x",
            ]
            rows.append(cells)
        words.append(f"- Preset `{preset}`: {_verdict(there, len(targets))}")
    return [
        "Asked for was the accuracy of training anew on all labels, with at least "
        f"{GOAL['time']:g} times less time and {GOAL['data']:g} times fewer labels; the paper says "
        f"{PAPER['time']:g} times less time and {PAPER['data']:g} times less data at similar "
        "accuracy. Data and time saved are those of the fewest labels that are as good, from the "
        f"table above, time to the best epoch. A transfer is tried with {_listed(SIZES)} labels "
        "and all, so that data saved goes in steps.",
        "",
        *words,
        "",
        *markdown(head, rows),
    ]


def _verdict(there: list[Saving | None], num_settings: int) -> str:
    """On how many settings the goal and the paper's figures are met."""
    if not there:
        return "not yet trained anew on all labels, so nothing can be said."
    parts = []
    for name, wanted in (("the goal", GOAL), ("what the paper says", PAPER)):
        reached = [found.reaches(wanted) for found in there if found is not None]
        counts = [sum(item[thing] for item in reached) for thing in ("data", "time")]
        both = sum(all(item.values()) for item in reached)
        parts.append(
            f"{name} is met on {both} of {len(there)} settings (data on {counts[0]}, time on "
            f"{counts[1]})"
        )
    missing = num_settings - len(there)
    late = f"; settings not yet trained: {missing}" if missing else ""
    return f"{'; '.join(parts)}{late}."


def _listed(counts: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, counts[:-1]))} and {counts[-1]}"


def speed_lines(results: Results, first: Dataset) -> list[str]:
    """How long one training and one transfer take, against what was asked for.

    Args:
        results: of this report.
        first: the setting with most workloads.
    """
    head = ["what", "preset", "labels", "trainings", "seconds to the best epoch", "seconds in all",
            "asked for", ""]  # fmt: skip
    config = ArenaConfig(split="random", seeds=SEEDS, methods=PRESETS)
    trained = run_arena(first, config, FOLDS, stored_only=True)
    rows = []
    for preset in PRESETS:
        folds = trained.folds_of(preset)
        if folds:
            to_best = [
                to_best_s(fold.train_seconds, fold.best_epoch, fold.num_epochs) for fold in folds
            ]
            rows.append(
                [
                    f"anew, {first.setting}",
                    preset,
                    str(len(first.examples) - len(folds[0].predictions)),
                    str(len(folds)),
                    _spread(to_best),
                    _spread([fold.train_seconds for fold in folds]),
                    f"{TRAINING_S[preset] / 60:g} min to the best epoch",
                    _within(to_best, TRAINING_S[preset]),
                ]
            )
    for preset in PRESETS:
        moved = results.pick(preset=preset, size=0, **MOVED[preset])
        if moved:
            in_all = [row["seconds"] for row in moved]
            rows.append(
                [
                    "transfer to each other setting",
                    preset,
                    "all",
                    str(len(moved)),
                    _spread([row["seconds_to_best"] for row in moved]),
                    _spread(in_all),
                    f"{TRANSFER_S:g} s in all",
                    _within(in_all, TRANSFER_S),
                ]
            )
    return [
        "Median and most over trainings. Training anew is that of `driple evaluate` "
        "(datasets/evaluation), with all of the preset's patience, in seconds of the clock on whatever "
        "machine made it; transfers are those above. Grouping graphs, running frozen layers once "
        "and finding intervals are not in them. Labels are those to train and to validate on, "
        f"fewer than the 320 and 120 that the times were asked for: of the {len(first.examples)} "
        "measured workloads the rest is kept for the test.",
        "",
        *markdown(head, rows),
    ]


def _spread(seconds: list[float]) -> str:
    """Median and most."""
    if len(seconds) == 1:
        return f"{seconds[0]:.1f}"
    return f"{np.median(seconds):.1f}, {max(seconds):.1f}"


def _within(seconds: list[float], limit_s: float) -> str:
    """How many keep within a limit."""
    kept = sum(value <= limit_s for value in seconds)
    return "met" if kept == len(seconds) else f"met by {kept} of {len(seconds)}"
