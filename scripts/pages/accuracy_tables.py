"""Tables of errors on published runs, one for each CSV file of scripts/studies/published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from scipy.stats import binom

from driple.estimate import LEVEL
from driple.runs.validation.rankings import RankSummary
from driple.runs.validation.scores import GroupScore
from driple.runs.validation.utilisation import UtilisationScore
from scripts.fits.coverage import Coverage
from scripts.fits.doubts import Answers, Doubt
from scripts.fits.reached import Errors, Reached
from scripts.pages.sweep_ranks import SweepRank
from scripts.studies.kit.written import Table

__all__ = [
    "KINDS",
    "SPLIT_WORDS",
    "beyond_chance",
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
SPLIT_WORDS = {
    "model": "model family",
    "family": "model family",
    "size": "size of a known family",
    "device": "device",
    "source": "source",
    "nothing": "nothing",
}
_LEAST_RUNS = 20  # of a group whose share of runs is judged
_SURE = 0.01  # probability that any of all groups is called beyond chance though it is not


def reached_table(lines: Iterable[Reached]) -> Table:
    """Errors of each task beside what is wanted, by row and by family; empty if not predicted."""
    return Table(
        ["task", "left_out", "rows", "families", "median_pct", "p90_pct", "family_median_pct",
         "family_p90_pct", "wanted_median_pct", "wanted_p90_pct"],
        [
            [line.task, SPLIT_WORDS[line.split], *_reached(line.errors),
             *("" if aim is None else f"{aim:g}"
               for aim in (line.wanted_median_pct, line.wanted_p90_pct))]
            for line in lines
        ],
    )  # fmt: skip


def _reached(errors: Errors | None) -> list[str]:
    if errors is None:
        return [""] * 6
    return [
        str(errors.rows),
        str(errors.families),
        f"{errors.median_pct:.1f}",
        f"{errors.p90_pct:.1f}",
        f"{errors.family_median_pct:.1f}",
        f"{errors.family_p90_pct:.1f}",
    ]


def beyond_chance(covered: Sequence[Coverage], held_out: str) -> tuple[int, list[Coverage]]:
    """Number of schemes and devices that are judged, and those whose share chance does not allow.

    A group keeps its intervals if as many of its runs are inside as chance allows of a true
    `LEVEL`: two-sided, 1 % for all groups of one kind of `held_out` together.
    """
    groups = [
        group
        for group in covered
        if group.held_out == held_out
        and group.by in ("kind", "device")
        and group.runs >= _LEAST_RUNS
    ]
    return len(groups), [group for group in groups if not _by_chance(group, _SURE / len(groups))]


def stated_table(covered: Sequence[Coverage]) -> Table:
    """Whether intervals hold, of all runs and of each scheme and device with enough of them."""
    lines = []
    for held_out in ("model", "size", "device"):
        _, outside = beyond_chance(covered, held_out)
        for whole in covered:
            if (whole.held_out, whole.by) != (held_out, "all"):
                continue
            names = "; ".join(
                f"{KINDS.get(group.group, group.group)} ({100 * group.inside / group.runs:.0f} %)"
                for group in outside
                if group.task == whole.task
            )
            lines.append([
                whole.task, SPLIT_WORDS[held_out], str(whole.runs),
                f"{100 * whole.inside / whole.runs:.1f}", f"{whole.row_width:.2f}", names,
            ])  # fmt: skip
    return Table(
        ["task", "left_out", "runs", "inside_pct", "median_width", "groups_beyond_chance"], lines
    )


def _by_chance(group: Coverage, doubt: float) -> bool:
    """Whether a true share of `LEVEL` gives such a count of runs, but for a small probability."""
    law = binom(group.runs, LEVEL)
    return 2 * min(float(law.cdf(group.inside)), float(law.sf(group.inside - 1))) >= doubt


def doubt_table(doubts: Iterable[Doubt]) -> Table:
    """Whether stated errors show which answers are far off, of three kinds of answers."""
    return Table(
        ["task", "left_out", "area", "family_area", "unstated", "unstated_far_pct", "guesses",
         "guesses_far_pct", "guesses_inside_pct", "others", "others_far_pct", "others_inside_pct"],
        [
            [doubt.task, SPLIT_WORDS[doubt.held_out], _area(doubt.area), _area(doubt.family_area),
             *_answers(doubt.unchecked)[:2], *_answers(doubt.guesses), *_answers(doubt.others)]
            for doubt in doubts
        ],
    )  # fmt: skip


def _area(area: float | None) -> str:
    return "" if area is None else f"{area:.2f}"


def _answers(some: Answers | None) -> list[str]:
    if some is None:
        return ["0", "", ""]
    inside = "" if some.inside_pct is None else f"{some.inside_pct:.0f}"
    return [str(some.runs), f"{some.large_pct:.0f}", inside]


def misfit_table(groups: Mapping[str, Errors], name: str, *, least_rows: int) -> Table:
    """Groups by their signed median, the farthest from 0 first."""
    some = [(key, errors) for key, errors in groups.items() if errors.rows >= least_rows]
    return Table(
        [name, "rows", "signed_median_pct", "median_pct", "p90_pct"],
        [
            [key, str(errors.rows), f"{errors.signed_pct:+.0f}", f"{errors.median_pct:.0f}",
             f"{errors.p90_pct:.0f}"]
            for key, errors in sorted(some, key=lambda group: -abs(group[1].signed_pct))
        ],
    )  # fmt: skip


def ranking_table(rankings: Iterable[RankSummary]) -> Table:
    """How well configurations and devices are ranked."""
    return Table(
        ["of", "left_out", "source", "jobs", "choices", "mean_tau", "predicted_best_slower_pct"],
        [
            [ranking.what, SPLIT_WORDS[ranking.split], ranking.source, str(ranking.jobs),
             str(ranking.choices), f"{ranking.tau:.2f}", f"{ranking.best_pct:.1f}"]
            for ranking in rankings
        ],
    )  # fmt: skip


def utilisation_table(
    scores: Iterable[UtilisationScore], more: Iterable[UtilisationScore]
) -> Table:
    """Simulated against measured mean utilisation, and in the measured time of a step."""
    of_step = {score.group: score for score in more}

    def points(score: UtilisationScore | None) -> list[str]:
        return ["", ""] if score is None else [str(score.runs), f"{score.points:.1f}"]

    return Table(
        ["runs", "number", "measured_pct", "simulated_pct", "difference_points",
         "rank_correlation", "runs_of_known_step", "difference_in_measured_step_points"],
        [
            [score.group, str(score.runs), f"{score.measured_pct:.0f}",
             f"{score.predicted_pct:.0f}", f"{score.points:.1f}",
             "" if score.rank is None else f"{score.rank:.2f}",
             *points(of_step.get(score.group))]
            for score in scores
        ],
    )  # fmt: skip


def coverage_table(covered: Iterable[Coverage]) -> Table:
    """How well stated intervals hold, by each property of the runs."""
    return Table(
        ["by", "group", "task", "left_out", "runs", "inside_pct", "row_width",
         "family_inside_pct", "family_below_stated_p90_pct", "family_width"],
        [
            [group.by, KINDS.get(group.group, group.group), group.task,
             SPLIT_WORDS[group.held_out], str(group.runs),
             f"{100 * group.inside / group.runs:.0f}", f"{group.row_width:.2f}",
             f"{group.coverage_pct:.0f}", f"{group.below_p90_pct:.0f}", f"{group.width:.2f}"]
            for group in covered
        ],
    )  # fmt: skip


def sweep_table(sweeps: Sequence[SweepRank], wanted: float) -> Table:
    """Spearman's correlation within sweeps, by source, and the lowest one."""
    lines = []
    for split in dict.fromkeys(sweep.split for sweep in sweeps):
        own = [sweep for sweep in sweeps if sweep.split == split]
        for source in ("all sources", *sorted({sweep.source for sweep in own})):
            some = [sweep for sweep in own if source in ("all sources", sweep.source)]
            ranks = [sweep.rank for sweep in some]
            low = min(some, key=lambda sweep: sweep.rank)
            lines.append([
                SPLIT_WORDS[split], source, str(len(some)),
                str(sum(sweep.settings for sweep in some)), f"{median(ranks):.2f}",
                str(sum(rank >= wanted for rank in ranks)), f"{low.rank:.2f}",
                f"{low.job}, {low.place}",
            ])  # fmt: skip
    return Table(
        ["left_out", "source", "sweeps", "settings", "median", "kept", "lowest", "lowest_sweep"],
        lines,
    )


def score_table(scores: Iterable[GroupScore]) -> Table:
    """Errors of predictors by group of rows, each family weighted alike."""
    return Table(
        ["by", "group", "mode", "left_out", "predictor", "rows", "families", "family_median_pct",
         "family_p90_pct", "family_signed_pct"],
        [
            [score.by, score.group, score.mode, SPLIT_WORDS[score.split], score.predictor,
             str(score.rows), str(score.families), f"{score.median_pct:.1f}",
             f"{score.p90_pct:.1f}", f"{score.signed_pct:+.1f}"]
            for score in scores
        ],
    )  # fmt: skip
