"""Whether doubt separates: how many of the answers that state a large error have one.

CoveredRun, ... --doubts_of--> Doubt by what was left out and task
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1

import numpy as np

from scripts.fits.coverage import CoveredRun, weights_by_family

__all__ = ["LARGE_ERROR", "Answers", "Doubt", "doubts_of"]

LARGE_ERROR = 0.25  # share of the published time


@dataclass(frozen=True, kw_only=True, slots=True)
class Answers:
    """Some answers, each family weighted alike.

    Attributes:
        runs: how many.
        large_pct: share whose error is above `LARGE_ERROR`.
        inside_pct: share whose published time lies in the 90 % interval; None where no error is
            stated.
    """

    runs: int
    large_pct: float
    inside_pct: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Doubt:
    """How well the doubt of answers says which of them are far off.

    Attributes:
        held_out: `model` or `device`.
        task: `train` or `forward`.
        area: under the curve of "error above `LARGE_ERROR`" against the stated 90th percentile, an
            answer without one being the most doubtful: 1 if each such answer states a larger one
            than each other, 0.5 by chance; None where all answers are of one kind.
        family_area: the same, each family weighted alike.
        unchecked: answers that state no error, as no published run is like theirs; None if none.
        guesses: answers that are called a guess; None if none.
        others: all others; None if none.
    """

    held_out: str
    task: str
    area: float | None
    family_area: float | None
    unchecked: Answers | None
    guesses: Answers | None
    others: Answers | None


def doubts_of(covered: Sequence[CoveredRun]) -> list[Doubt]:
    """The doubts by what was left out and task; needs scikit-learn."""
    groups: dict[tuple[str, str], list[CoveredRun]] = defaultdict(list)
    for run in covered:
        groups[run.run.held_out, run.run.task].append(run)
    doubts = []
    for (held_out, task), some in groups.items():
        stated = [one for one in some if one.stated.num_runs]
        doubts.append(
            Doubt(
                held_out=held_out,
                task=task,
                area=_area(some, np.ones(len(some))),
                family_area=_area(some, weights_by_family([one.run for one in some])),
                unchecked=_answers([one for one in some if not one.stated.num_runs]),
                guesses=_answers([one for one in stated if one.stated.is_guess]),
                others=_answers([one for one in stated if not one.stated.is_guess]),
            )
        )
    return doubts


def _is_large(covered: CoveredRun) -> bool:
    return abs(expm1(covered.run.log_ratio)) > LARGE_ERROR


def _area(
    answers: Sequence[CoveredRun], weights: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> float | None:
    from sklearn.metrics import roc_auc_score

    large = [_is_large(one) for one in answers]
    if len(set(large)) < 2:
        return None
    largest = max((one.stated.p90 or 0.0 for one in answers), default=0.0)
    doubt = [largest + 1 if one.stated.p90 is None else one.stated.p90 for one in answers]
    return float(roc_auc_score(large, doubt, sample_weight=weights))


def _answers(some: Sequence[CoveredRun]) -> Answers | None:
    if not some:
        return None
    weights = weights_by_family([one.run for one in some])
    inside = float(weights @ np.array([one.is_inside for one in some]))
    return Answers(
        runs=len(some),
        large_pct=100 * float(weights @ np.array([_is_large(one) for one in some])),
        inside_pct=100 * inside if all(one.stated.num_runs for one in some) else None,
    )
