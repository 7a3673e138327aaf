"""What docs/accuracy.md says of tuning the first setting's inspector against training anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from accuracy_compared import Compared

from driple.dataset.example import Dataset
from driple.training.arena import ArenaResult, Fold
from driple.training.methods import TRANSFERRED
from driple.training.metrics import smape_pct, time_errors_pct

FloatArray = npt.NDArray[np.float64]

# How much of the tuned inspector's logarithm counts, the rest being of the one trained anew.
SHARES = (1.0, 0.0, 0.5)


def tuned_or_anew(found: Sequence[Compared]) -> list[str]:
    """Which way errs less on families held out, and what the middle of both answers would do."""
    errors = []
    for item in found:
        seeds = item.seeds("family", (TRANSFERRED, "default"))
        if item.shipped == TRANSFERRED and seeds:
            result = item.results["family"].of_seeds(seeds)
            errors.append(np.mean([_errors_of_seed(result, seed) for seed in seeds], axis=0))
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


def _errors_of_seed(result: ArenaResult, seed: int) -> FloatArray:
    """Shape [3, 3]: of each of `SHARES` the SMAPE, median and mean error of the iteration time.

    As in the arena's table: each family counts the same, the median is over all workloads.
    """
    tuned, new = (
        [fold for fold in result.folds_of(method) if fold.seed == seed]
        for method in (TRANSFERRED, "default")
    )
    rows = []
    for share in SHARES:
        smapes, times = [], []
        for one, other in zip(tuned, new, strict=True):
            smape, errors = _errors_of_fold(result.dataset, one, other, share)
            smapes.append(smape)
            times.append(errors)
        median = np.median(np.concatenate(times))
        rows.append([np.mean(smapes), median, np.mean([errors.mean() for errors in times])])
    return np.array(rows)


def _errors_of_fold(
    dataset: Dataset, tuned: Fold, new: Fold, share: float
) -> tuple[float, FloatArray]:
    """SMAPE, and the error of the iteration time of each workload, of two answers' mean."""
    examples = {item.workload: item for item in dataset.examples}
    tested = [examples[name] for name in tuned.predictions]
    logs = [np.log([fold.predictions[item.workload] for item in tested]) for fold in (tuned, new)]
    predicted = np.exp(share * logs[0] + (1.0 - share) * logs[1])
    smape = smape_pct(predicted, np.array([item.targets.flat for item in tested])).mean()
    times_s = np.array([item.iteration_time_s for item in tested])
    return float(smape), time_errors_pct(predicted, times_s)
