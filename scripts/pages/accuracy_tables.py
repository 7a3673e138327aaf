"""Tables of docs/accuracy.md: scores and errors -> Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from scipy.stats import binom

from driple.estimate import LEVEL
from driple.runs.validation.rankings import RankSummary
from driple.runs.validation.scores import GroupScore
from driple.runs.validation.utilisation import UtilisationScore
from scripts.fits.coverage import Coverage
from scripts.fits.doubts import LARGE_ERROR, Answers, Doubt
from scripts.fits.reached import Errors, Reached
from scripts.pages.sweep_ranks import SweepRank
from scripts.studies.kit.tables import markdown

__all__ = [
    "KINDS",
    "NOT_MADE",
    "coverage_table",
    "doubt_table",
    "misfit_table",
    "ranking_table",
    "reached_table",
    "score_table",
    "stated_table",
    "sweep_table",
    "utilisation_table",
]

KINDS = {
    "single": "one device",
    "ring": "all-reduce",
    "sharded": "sharded",
    "split": "tensor, context, expert, pipeline",
    "servers": "parameter servers",
}
NOT_MADE = "not made"
_SPLITS = {
    "model": "model family",
    "family": "model family",
    "size": "size of a known family",
    "device": "device",
    "source": "source",
    "nothing": "nothing",
}
_LEAST_RUNS = 20  # of a group whose share of runs is judged
_SURE = 0.01  # that a group of all is called beyond chance though it is not


def reached_table(lines: Iterable[Reached]) -> str:
    """What was reached on each task beside what is wanted, by row and by family."""
    return _table(
        ["task", "left out", "rows", "families", "median", "90th percentile", "median, by family",
         "90th percentile, by family", "wanted"],
        [
            [one.task, _SPLITS[one.split], *_reached(one.errors), _wanted(one)] for one in lines
        ],
    )  # fmt: skip


def _reached(errors: Errors | None) -> list[str]:
    if errors is None:
        return ["", "", NOT_MADE, "", "", ""]
    return [
        str(errors.rows),
        str(errors.families),
        f"{errors.median_pct:.1f} %",
        f"{errors.p90_pct:.0f} %",
        f"{errors.family_median_pct:.1f} %",
        f"{errors.family_p90_pct:.0f} %",
    ]


def _wanted(one: Reached) -> str:
    given = (one.wanted_median_pct, one.wanted_p90_pct)
    return ", ".join(f"{value:g} %" for value in given if value is not None)


def stated_table(covered: Sequence[Coverage]) -> str:
    """Whether intervals hold, of all runs and of each scheme and device with enough of them.

    A group keeps its intervals if as many of its runs are inside as chance allows of a true
    `LEVEL`: two-sided, 1 % for all groups of one column `left out` together.
    """
    lines = []
    for held_out in ("model", "size", "device"):
        some = [one for one in covered if one.held_out == held_out]
        groups = [one for one in some if one.by in ("kind", "device") and one.runs >= _LEAST_RUNS]
        outside = [one for one in groups if not _by_chance(one, _SURE / len(groups))]
        for one in (one for one in some if one.by == "all"):
            own = [group for group in groups if group.task == one.task]
            names = ", ".join(
                f"{KINDS.get(group.group, group.group)} ({100 * group.inside / group.runs:.0f} %)"
                for group in outside
                if group.task == one.task
            )
            lines.append([
                one.task, _SPLITS[held_out], str(one.runs), f"{100 * one.inside / one.runs:.1f} %",
                f"{one.row_width:.2f}", str(len(own)), names or "none",
            ])  # fmt: skip
    return _table(
        ["task", "left out", "runs", "in the 90 % interval", "median width", "schemes and devices",
         "of these beyond chance"],
        lines,
    )  # fmt: skip


def _by_chance(one: Coverage, doubt: float) -> bool:
    """Whether a true share of `LEVEL` gives such a count of runs, but for a small probability."""
    law = binom(one.runs, LEVEL)
    return 2 * min(float(law.cdf(one.inside)), float(law.sf(one.inside - 1))) >= doubt


def doubt_table(doubts: Iterable[Doubt]) -> str:
    """Whether stated errors say which answers are far off, of three kinds of answers."""
    large = f"over {100 * LARGE_ERROR:.0f} % off"
    return _table(
        ["task", "left out", "area", "area, by family", "no error stated", large, "guesses", large,
         "in the interval", "others", large, "in the interval"],
        [
            [one.task, _SPLITS[one.held_out], _area(one.area), _area(one.family_area),
             *_answers(one.unchecked)[:2], *_answers(one.guesses), *_answers(one.others)]
            for one in doubts
        ],
    )  # fmt: skip


def _area(area: float | None) -> str:
    return "" if area is None else f"{area:.2f}"


def _answers(some: Answers | None) -> list[str]:
    if some is None:
        return ["0", "", ""]
    inside = "" if some.inside_pct is None else f"{some.inside_pct:.0f} %"
    return [str(some.runs), f"{some.large_pct:.0f} %", inside]


def misfit_table(groups: Mapping[str, Errors], name: str, *, least_rows: int, count: int) -> str:
    """The groups whose signed median is the largest, slow or fast, largest first."""
    some = [one for one in groups.items() if one[1].rows >= least_rows]
    worst = sorted(some, key=lambda one: -abs(one[1].signed_pct))[:count]
    return _table(
        [name, "rows", "signed median", "median", "90th percentile"],
        [
            [key, str(one.rows), f"{one.signed_pct:+.0f} %", f"{one.median_pct:.0f} %",
             f"{one.p90_pct:.0f} %"]
            for key, one in worst
        ],
    )  # fmt: skip


def ranking_table(rankings: Iterable[RankSummary]) -> str:
    """How well configurations and devices are ranked."""
    return _table(
        ["of", "left out", "source", "jobs", "choices", "mean tau", "predicted best is slower by"],
        [
            [one.what, _SPLITS[one.split], one.source, str(one.jobs), str(one.choices),
             f"{one.tau:.2f}", f"{one.best_pct:.1f} %"]
            for one in rankings
        ],
    )  # fmt: skip


def utilisation_table(scores: Iterable[UtilisationScore], more: Iterable[UtilisationScore]) -> str:
    """Simulated against measured mean utilisation, and in the measured time of a step."""
    of_step = {one.group: one for one in more}

    def points(one: UtilisationScore | None) -> str:
        return "" if one is None else f"{one.points:.1f} ({one.runs} runs)"

    return _table(
        ["runs", "number", "measured", "simulated", "difference, points", "rank correlation",
         "difference in the measured step, points"],
        [
            [one.group, str(one.runs), f"{one.measured_pct:.0f} %", f"{one.predicted_pct:.0f} %",
             f"{one.points:.1f}", "" if one.rank is None else f"{one.rank:.2f}",
             points(of_step.get(one.group))]
            for one in scores
        ],
    )  # fmt: skip


def coverage_table(found: Sequence[Coverage], by: str) -> str:
    """How well stated intervals hold, by one property of the runs."""
    return _table(
        [by, "task", "left out", "runs", "in the 90 % interval",
         "below the stated 90th percentile", "width"],
        [
            [KINDS.get(one.group, one.group), one.task, _SPLITS[one.held_out], str(one.runs),
             f"{one.coverage_pct:.0f} %", f"{one.below_p90_pct:.0f} %", f"{one.width:.2f}"]
            for one in found
            if one.by == by
        ],
    )  # fmt: skip


def sweep_table(sweeps: Sequence[SweepRank], wanted: float) -> str:
    """Spearman's correlation within sweeps, and the sweeps that are below what is wanted."""
    lines = []
    for split in dict.fromkeys(sweep.split for sweep in sweeps):
        own = [sweep for sweep in sweeps if sweep.split == split]
        for source in ("all sources", *sorted({sweep.source for sweep in own})):
            some = [sweep for sweep in own if source in ("all sources", sweep.source)]
            ranks = [sweep.rank for sweep in some]
            low = min(some, key=lambda sweep: sweep.rank)
            lines.append([
                _SPLITS[split], source, str(len(some)), str(sum(sweep.settings for sweep in some)),
                f"{median(ranks):.2f}", f"{sum(rank >= wanted for rank in ranks)} of {len(some)}",
                f"{low.rank:.2f} ({low.job}, {low.place})",
            ])  # fmt: skip
    return _table(
        ["left out", "source", "sweeps", "settings", "median", f"{wanted:g} or more", "lowest"],
        lines,
    )


def score_table(
    scores: Iterable[GroupScore], by: str, *, is_shown: Callable[[GroupScore], bool] = bool
) -> str:
    """Errors of predictors by one property of the rows, each family weighted alike."""
    some = [one for one in scores if one.by == by and is_shown(one)]
    several = len({one.predictor for one in some}) > 1
    return _table(
        [by, "mode", "left out", *(["predictor"] if several else []), "rows", "families", "median",
         "90th percentile", "signed median"],
        [
            [one.group, one.mode, _SPLITS[one.split], *([one.predictor] if several else []),
             str(one.rows), str(one.families), f"{one.median_pct:.1f} %", f"{one.p90_pct:.1f} %",
             f"{one.signed_pct:+.1f} %"]
            for one in some
        ],
    )  # fmt: skip


def _table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(markdown(list(header), [list(line) for line in lines]))
