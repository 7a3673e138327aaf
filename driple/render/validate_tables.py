"""Tables of the benchmark for people: a table per kind of task, then the simulator by group."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import TYPE_CHECKING

from driple.render.show import print_table

if TYPE_CHECKING:
    from driple.api.benchmarking import OwnRun
    from driple.runs.validation.entry import EntryScore
    from driple.runs.validation.predictions import RowPrediction
    from driple.runs.validation.rankings import RankSummary
    from driple.runs.validation.scores import GroupScore
    from driple.runs.validation.utilisation import UtilisationScore

__all__ = ["print_entry", "print_own_runs", "print_rankings", "print_scores", "print_utilisation"]

_SPLITS = {
    "nothing": "nothing",
    "family": "the model family",
    "device": "the device",
    "source": "the source",
}
_MOST_RUNS = 30
_HEADER = ("rows", "families", "median", "90 %", "signed", "tau", "in 90 % interval", "width")


def _interval(prediction: RowPrediction) -> str:
    if prediction.low is None:
        return "-"
    return f"{prediction.low:.3g} to {prediction.high:.3g}"


def print_own_runs(runs: Sequence[OwnRun]) -> None:
    """Runs of the user's own table beside their predictions, the worst first.

    Args:
        runs: of the table; nothing is printed of none.
    """
    if not runs:
        return
    worst = sorted(runs, key=lambda one: -abs(log(1 + one.error)))
    more = f", the {_MOST_RUNS} farthest off (--json has all)" if len(runs) > _MOST_RUNS else ""
    print(f"your runs, seconds of a step{more}")
    print_table(
        ["run", "job", "setting", "measured", "predicted", "90 % interval", "error"],
        [
            [own.run.id, own.run.job, own.run.setting, f"{own.run.step_s:.3g}",
             f"{own.prediction.seconds:.3g}", _interval(own.prediction),
             f"{100 * own.error:+.0f} %"]
            for own in worst[:_MOST_RUNS]
        ],
    )  # fmt: skip
    print()


def print_entry(scores: Sequence[EntryScore]) -> None:
    """Given predictions in each split, and the simulator on the same rows; nothing of none."""
    if not scores:
        return
    print("given predictions: |predicted - measured| / measured of a step, each row alike")
    print_table(
        ["held out", "predictor", "rows", "refused", "median", "90 %", "families alike", "90 %",
         "signed", "Spearman", "in interval", "width"],
        [
            [_SPLITS[one.split], one.predictor, str(one.rows - one.refused), str(one.refused),
             f"{one.median_pct:.1f} %", f"{one.p90_pct:.1f} %", f"{one.family_median_pct:.1f} %",
             f"{one.family_p90_pct:.1f} %", f"{one.signed_pct:+.1f} %",
             "-" if one.spearman is None else f"{one.spearman:.2f}",
             "-" if one.coverage_pct is None else f"{one.coverage_pct:.0f} %",
             "-" if one.width is None else f"{one.width:.2f}"]
            for one in scores
        ],
    )  # fmt: skip
    print()


def print_scores(scores: Sequence[GroupScore]) -> None:
    """Every predictor by kind of task, and the simulator by device, source and precision.

    Args:
        scores: of the benchmark; nothing is printed of none.
    """
    if not scores:
        return
    for task, mode in dict.fromkeys((one.group, one.mode) for one in scores if one.by == "task"):
        print(
            f"{task}, {mode}: |predicted - measured| / measured, each model family weighted alike"
        )
        print_table(
            ["held out", "predictor", *_HEADER],
            [
                [_SPLITS[one.split], one.predictor, *_cells(one)]
                for one in scores
                if (one.by, one.group, one.mode) == ("task", task, mode)
            ],
        )
        print()
    for by in dict.fromkeys(one.by for one in scores if one.by not in {"task", "speed-up"}):
        some = [one for one in scores if one.by == by and one.predictor == "simulator"]
        print(f"simulator by {by}")
        print_table(
            [by, "mode", "held out", *_HEADER],
            [[one.group, one.mode, _SPLITS[one.split], *_cells(one)] for one in some],
        )
        print()

    _print_speedups([one for one in scores if one.by == "speed-up"])


def _print_speedups(scores: Sequence[GroupScore]) -> None:
    if not scores:
        return
    print("speed-up by torch.compile: |predicted - measured| / measured of the ratio of two rows")
    print_table(
        ["device", "mode", "held out", "predictor", *_HEADER],
        [[one.group, one.mode, _SPLITS[one.split], one.predictor, *_cells(one)] for one in scores],
    )
    print()


def print_rankings(rankings: Sequence[RankSummary]) -> None:
    """How well the simulator ranks configurations and devices; nothing is printed of none."""
    if not rankings:
        return
    print("ranking by predicted time of a token or sample: Kendall's tau")
    print_table(
        ["of", "held out", "source", "jobs", "choices", "mean tau", "predicted best is slower by"],
        [
            [one.what, _SPLITS[one.split], one.source, str(one.jobs), str(one.choices),
             f"{one.tau:.2f}", f"{one.best_pct:.1f} %"]
            for one in rankings
        ],
    )  # fmt: skip
    print()


def print_utilisation(scores: Sequence[UtilisationScore]) -> None:
    """Simulated against measured mean utilisation; nothing is printed of none."""
    if not scores:
        return
    print("mean utilisation of devices; no fit has seen it")
    print_table(
        ["runs", "number", "measured", "simulated", "difference", "rank correlation"],
        [
            [one.group, str(one.runs), f"{one.measured_pct:.1f} %", f"{one.predicted_pct:.1f} %",
             f"{one.points:.1f} points", "-" if one.rank is None else f"{one.rank:.2f}"]
            for one in scores
        ],
    )  # fmt: skip
    print()


def _cells(score: GroupScore) -> list[str]:
    return [
        str(score.rows),
        str(score.families),
        f"{score.median_pct:.1f} %",
        f"{score.p90_pct:.1f} %",
        f"{score.signed_pct:+.1f} %",
        "-" if score.tau is None else f"{score.tau:.2f}",
        "-" if score.coverage_pct is None else f"{score.coverage_pct:.0f} %",
        "-" if score.width is None else f"{score.width:.2f}",
    ]
