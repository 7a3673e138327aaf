"""What page.md says of tuning the first setting's inspector against training anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from driple.dataset.example import Dataset
from driple.training.arena import ALL, SMAPE, TIME, ArenaResult, Fold
from driple.training.methods import TRANSFERRED
from driple.training.metrics import score
from scripts.studies.accuracy.compared import Compared

MIDDLE = "geometric mean of both"
NUMBERS = ((SMAPE, ALL), (TIME, "median"), (TIME, "mean"))


def tuned_or_anew(found: Sequence[Compared]) -> list[str]:
    """Which way errs less on families held out, and what the middle of both answers would do."""
    errors = []
    for item in found:
        seeds = item.seeds("family", (TRANSFERRED, "default"))
        if item.shipped == TRANSFERRED and seeds:
            result = _with_middle(item.results["family"].of_seeds(seeds))
            errors.append([_errors(result, way) for way in (TRANSFERRED, "default", MIDDLE)])
    if not errors:
        return []
    table = np.array(errors)
    less = (table[:, 0] < table[:, 1]).sum(axis=0)
    tuned, new, middle = table.mean(axis=0)
    smape, median, mean = (
        f"on {num} of {len(errors)} settings ({one:.1f} % against {other:.1f} %)"
        for num, one, other in zip(less, tuned, new, strict=True)
    )
    return [
        f"**Tuned or anew.** With families held out `{TRANSFERRED}` errs less than `default` anew "
        f"in SMAPE {smape}, in the median error of the iteration time {median}, in its mean error "
        f"{mean}; in brackets are means of the settings. The inspector that is trained anew lies "
        "beside the shipped one as `default-anew.safetensors`. The geometric mean of both answers "
        f"would have {middle[0]:.1f} %, {middle[1]:.1f} % and {middle[2]:.1f} %; it would take two "
        "inspectors for each prediction, and is not shipped."
    ]


def _errors(result: ArenaResult, method: str) -> list[float]:
    """What the arena's table says of a method: each of `NUMBERS`, the mean over the seeds."""
    seeds = [seed.numbers() for seed in result.by_seed(method)]
    return [float(np.mean([numbers[name] for numbers in seeds])) for name in NUMBERS]


def _with_middle(result: ArenaResult) -> ArenaResult:
    """The result with one method more: the geometric mean of what both ways predict."""
    pairs = zip(result.folds_of(TRANSFERRED), result.folds_of("default"), strict=True)
    middle = [_middle(result.dataset, tuned, new) for tuned, new in pairs]
    return replace(result, folds=(*result.folds, *middle))


def _middle(dataset: Dataset, tuned: Fold, new: Fold) -> Fold:
    """One fold of it; its NRMSE, which is not told, is over the largest of all labels."""
    examples = {item.workload: item for item in dataset.examples}
    tested = [examples[name] for name in tuned.predictions]
    rows = [[fold.predictions[item.workload] for item in tested] for fold in (tuned, new)]
    predicted = np.exp(np.log(rows).mean(axis=0))
    scores = score(
        predicted,
        np.array([item.targets.flat for item in tested]),
        true_times_s=np.array([item.iteration_time_s for item in tested]),
        train_labels=dataset.targets(),
    )
    names = [item.workload for item in tested]
    predictions = dict(zip(names, predicted.tolist(), strict=True))
    return replace(tuned, method=MIDDLE, scores=scores, predictions=predictions)
