"""Tables of docs/accuracy.md: scores and errors -> Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from driple.runs.validation.rankings import RankSummary
from driple.runs.validation.scores import GroupScore
from driple.runs.validation.utilisation import UtilisationScore
from scripts.fits.coverage import Coverage
from scripts.fits.doubts import LARGE_ERROR, Answers, Doubt
from scripts.fits.reached import Errors, Reached
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
_BELOW_P90, _INSIDE = (85.0, 95.0), (87.0, 93.0)
_LEAST_RUNS = 20  # of a group whose share of runs is judged


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
    """How many devices and schemes keep what answers state."""
    lines = []
    for by, held_out in (("kind", "model"), ("kind", "size"), ("kind", "device"),
                         ("network", "size"), ("device", "model"), ("device", "size"),
                         ("device", "device")):  # fmt: skip
        some = [
            one
            for one in covered
            if (one.by, one.held_out) == (by, held_out) and one.runs >= _LEAST_RUNS
        ]
        for words, ends, share in (
            ("below the stated 90th percentile", _BELOW_P90, _below_p90),
            ("in the 90 % interval", _INSIDE, _inside),
        ):
            if some:
                lines.append([words, {"kind": "scheme"}.get(by, by), _SPLITS[held_out],
                              *_counts([share(one) for one in some], ends)])  # fmt: skip
    return _table(
        ["runs", "by", "left out", "groups", "wanted share", "groups that have it", "lowest",
         "highest"],
        lines,
    )  # fmt: skip


def _below_p90(one: Coverage) -> float:
    return one.below_p90_pct


def _inside(one: Coverage) -> float:
    return one.coverage_pct


def _counts(shares: Sequence[float], ends: tuple[float, float]) -> list[str]:
    low, high = ends
    return [
        str(len(shares)),
        f"{low:g} to {high:g} %",
        str(sum(low <= share <= high for share in shares)),
        f"{min(shares):.0f} %",
        f"{max(shares):.0f} %",
    ]


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
