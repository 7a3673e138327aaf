"""Errors of predictions: NRMSE, SMAPE and the error of the iteration time (`design.md`).

    predicted [n, 12], true [n, 12], largest training labels [12]  ->  Scores

Entry point: `score`. Pure arithmetic on arrays in the targets' own units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from driple.checks import check_fields
from driple.codec import json_field
from driple.errors import DatasetError
from driple.trace.repeatability import smape_shares
from driple.trace.targets import FIGURES, TARGET_NAMES, Targets, impossible_numbers

__all__ = [
    "Scores",
    "ScoresRecord",
    "check_scale",
    "mean_scores",
    "nrmse",
    "predicted_times_s",
    "score",
    "smape_pct",
    "time_errors_pct",
]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class ScoresRecord:
    """`Scores` as folds store them: means first, then each target by name.

    Attributes:
        nrmse: mean over the 12 targets.
        smape_pct: likewise.
        iteration_time_mape_pct: of `Scores`.
        num_workloads: of `Scores`.
        num_impossible: of `Scores`; 0 in older files.
        nrmse_by_target: NRMSE by name of the target.
        smape_pct_by_target: likewise.

    Raises:
        ConfigError: numbers that are not of the twelve targets.
    """

    nrmse: float
    smape_pct: float
    iteration_time_mape_pct: float
    num_workloads: int
    num_impossible: int = field(default=0, metadata=json_field(may_lack=True))
    nrmse_by_target: Mapping[str, float]
    smape_pct_by_target: Mapping[str, float]

    def __post_init__(self) -> None:
        for by_target in (self.nrmse_by_target, self.smape_pct_by_target):
            check_fields("errors by target", by_target, TARGET_NAMES)

    def scores(self) -> Scores:
        """The scores themselves."""
        rows = (
            np.array([by_target[name] for name in TARGET_NAMES], dtype=np.float64)
            for by_target in (self.nrmse_by_target, self.smape_pct_by_target)
        )
        nrmse_of, smape_of = rows
        return Scores(
            nrmse=nrmse_of,
            smape_pct=smape_of,
            iteration_time_mape_pct=self.iteration_time_mape_pct,
            num_workloads=self.num_workloads,
            num_impossible=self.num_impossible,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores:
    """Errors of one method on one part of a split.

    Attributes:
        nrmse: shape [12], RMSE over the largest training label of the target.
        smape_pct: shape [12], percent, 0 to 200.
        iteration_time_mape_pct: mean absolute error of the iteration time in percent of the true.
        num_workloads: workloads that were predicted.
        num_impossible: predictions with an impossible value, which `driple predict` refuses; the
            errors include them.
    """

    nrmse: FloatArray
    smape_pct: FloatArray
    iteration_time_mape_pct: float
    num_workloads: int
    num_impossible: int = 0

    @property
    def mean_nrmse(self) -> float:
        """Average NRMSE: mean over the 12 targets (paper, section 5.2)."""
        return float(self.nrmse.mean())

    @property
    def mean_smape_pct(self) -> float:
        """Mean SMAPE over the 12 targets, percent."""
        return float(self.smape_pct.mean())

    def record(self) -> ScoresRecord:
        """The mapping for files and output."""
        return ScoresRecord(
            nrmse=self.mean_nrmse,
            smape_pct=self.mean_smape_pct,
            iteration_time_mape_pct=self.iteration_time_mape_pct,
            num_workloads=self.num_workloads,
            num_impossible=self.num_impossible,
            nrmse_by_target=dict(zip(TARGET_NAMES, self.nrmse.tolist(), strict=True)),
            smape_pct_by_target=dict(zip(TARGET_NAMES, self.smape_pct.tolist(), strict=True)),
        )


def score(
    predicted: FloatArray, true: FloatArray, *, true_times_s: FloatArray, train_labels: FloatArray
) -> Scores:
    """Score the predictions of one part of a split.

    Args:
        predicted: shape [n, 12], in the targets' own units.
        true: shape [n, 12], labels.
        true_times_s: shape [n], seconds per iteration.
        train_labels: shape [num_train, 12], labels of the training part, which scale the NRMSE.

    Raises:
        DatasetError: nothing to score, or a training target that is 0 in every workload.
    """
    if len(true) == 0:
        raise DatasetError("no workload to score; the part of the split is empty")
    return Scores(
        nrmse=nrmse(predicted, true, largest=train_labels.max(axis=0)),
        smape_pct=smape_pct(predicted, true),
        iteration_time_mape_pct=float(time_errors_pct(predicted, true_times_s).mean()),
        num_workloads=len(true),
        num_impossible=sum(bool(impossible_numbers(_targets(row))) for row in predicted),
    )


def check_scale(largest: FloatArray) -> None:
    """Refuse labels of which a target is 0 everywhere: an error has no scale there.

    Args:
        largest: shape [12], largest label of each target in the training part.

    Raises:
        DatasetError: a largest label is 0.
    """
    zero = np.flatnonzero(~(largest > 0))
    if not len(zero):
        return
    name = TARGET_NAMES[zero[0]]
    advice = (
        "nothing crosses a network on a device alone, for which the simulator answers"
        if name.startswith("net_")
        else "add workloads in which it is above 0"
    )
    raise DatasetError(
        f"target {name} is {largest[zero[0]]:g} in every training workload, so that an inspector "
        f"cannot learn it; {advice}"
    )


def nrmse(predicted: FloatArray, true: FloatArray, *, largest: FloatArray) -> FloatArray:
    """Root mean squared error of each target over its largest training label.

    Args:
        predicted: shape [n, 12].
        true: shape [n, 12].
        largest: shape [12], largest label of each target in the training part, above 0.

    Returns:
        Shape [12], no unit.

    Raises:
        DatasetError: a largest label is 0.
    """
    check_scale(largest)
    rmse: FloatArray = np.sqrt(np.mean((predicted - true) ** 2, axis=0))
    return rmse / largest


def smape_pct(predicted: FloatArray, true: FloatArray) -> FloatArray:
    """Mean of |predicted - true| / ((|predicted| + |true|) / 2) in percent; 0/0 counts as 0.

    Args:
        predicted: shape [n, 12].
        true: shape [n, 12].

    Returns:
        Shape [12], percent, 0 (all equal) to 200 (all of opposite sign, or one of them 0).
    """
    mean: FloatArray = 100 * smape_shares(predicted, true).mean(axis=0)
    return mean


def time_errors_pct(predicted: FloatArray, true_times_s: FloatArray) -> FloatArray:
    """Shape [n], absolute error of the iteration time in percent of the true one.

    Args:
        predicted: shape [n, 12], targets, which imply the time.
        true_times_s: shape [n], seconds.
    """
    errors: FloatArray = 100 * np.abs(predicted_times_s(predicted) - true_times_s) / true_times_s
    return errors


def predicted_times_s(predicted: FloatArray) -> FloatArray:
    """Shape [n], the iteration time that each row of targets [n, 12] implies, seconds."""
    rows = [_targets(row).iteration_time_s for row in predicted]
    return np.array(rows, dtype=np.float64)


def _targets(row: FloatArray) -> Targets:
    return Targets(row.reshape(-1, len(FIGURES)))


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """The mean over folds, each fold counting the same; `num_workloads` is their sum."""
    return Scores(
        nrmse=np.mean([fold.nrmse for fold in scores], axis=0),
        smape_pct=np.mean([fold.smape_pct for fold in scores], axis=0),
        iteration_time_mape_pct=float(np.mean([fold.iteration_time_mape_pct for fold in scores])),
        num_workloads=sum(fold.num_workloads for fold in scores),
        num_impossible=sum(fold.num_impossible for fold in scores),
    )
