"""Uncertainty of an inspector on the test workloads of a fold, and the coverage of its intervals.

intervals, distances, warnings (stored with the fold) + predictions, labels  ->  coverage, errors
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driple.inspector.intervals import half_widths_at
from driple.remarks import Remark
from driple.trace.repeatability import smape_shares
from driple.trace.targets import NUM_TARGETS, TARGET_NAMES
from driple.training.metrics import predicted_times_s

__all__ = ["Coverage", "FamilyCoverage", "Uncertainty", "coverage_of"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Uncertainty:
    """Intervals and warnings of an inspector for its test workloads.

    Attributes:
        level: nominal coverage of its intervals.
        near: 13 half-widths of the logarithm, for the targets and the iteration time.
        far: the same for graphs unlike the training graphs; None without.
        threshold: distance from which a graph counts as far.
        reach: largest distance in the calibration of the half-widths.
        distances: distance to the nearest training graph, by workload.
        warnings: how a workload is outside the range of the training graphs, by workload;
            workloads without a warning may be left out.
    """

    level: float
    near: tuple[float, ...]
    far: tuple[float, ...] | None
    threshold: float
    reach: float
    distances: dict[str, float]
    warnings: dict[str, tuple[Remark, ...]]

    def half_widths(self, workload: str) -> FloatArray:
        """Half-widths of the logarithm for a workload, shape [13]."""
        return half_widths_at(
            np.array(self.near),
            None if self.far is None else np.array(self.far),
            distance=self.distances[workload],
            threshold=self.threshold,
            reach=self.reach,
            warned=bool(self.warnings.get(workload)),
        )

    def rounded(self) -> Uncertainty:
        """The form stored with a fold: four digits, only workloads with a warning."""
        return replace(
            self,
            near=tuple(_rounded(value) for value in self.near),
            far=None if self.far is None else tuple(_rounded(value) for value in self.far),
            distances={name: _rounded(value) for name, value in self.distances.items()},
            warnings={name: words for name, words in self.warnings.items() if words},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyCoverage:
    """Coverage of the intervals of one model family.

    Attributes:
        num_predictions: number of predicted graphs, counted once per seed.
        targets: fraction of their labels within the intervals, 0 to 1.
        iteration_time: the same for the iteration times.
    """

    num_predictions: int
    targets: float
    iteration_time: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Coverage of intervals, and errors with and without warnings.

    Attributes:
        targets: fraction of all labels within their intervals, 0 to 1.
        iteration_time: the same for the iteration times.
        median_width_pct: median over workloads and targets of the upper end over the prediction,
            percent.
        num_warned: number of workloads with a warning.
        smape_warned_pct: SMAPE over their targets; None without any.
        smape_others_pct: SMAPE over the targets of all others; None without any.
        by_target: coverage of each target.
        by_family: coverage of each model family, since the total can hide a poorly covered family.
    """

    targets: float
    iteration_time: float
    median_width_pct: float
    num_warned: int
    smape_warned_pct: float | None
    smape_others_pct: float | None
    by_target: dict[str, float]
    by_family: dict[str, FamilyCoverage]


def coverage_of(
    folds: Sequence[tuple[Uncertainty, Mapping[str, Sequence[float]]]],
    labels: Mapping[str, FloatArray],
    times_s: Mapping[str, float],
    families: Mapping[str, str],
) -> Coverage:
    """Coverage over all test workloads of several folds.

    Args:
        folds: uncertainty of each inspector, and its 12 targets by workload.
        labels: shape [12] each, by workload.
        times_s: iteration times by workload.
        families: model families by workload.
    """
    held, widths, smapes, warned = [], [], [], []
    rows: list[str] = []
    for uncertainty, predictions in folds:
        names = list(predictions)
        predicted = np.array([predictions[name] for name in names], dtype=np.float64)
        true = np.array([labels[name] for name in names])
        numbers = np.column_stack([predicted, predicted_times_s(predicted)])
        wanted = np.column_stack([true, [times_s[name] for name in names]])
        half = np.array([uncertainty.half_widths(name) for name in names])
        held.append((wanted >= numbers / np.exp(half)) & (wanted <= numbers * np.exp(half)))
        widths.append(100 * np.expm1(half[:, :NUM_TARGETS]))
        smapes.append(100 * smape_shares(predicted, true))
        warned += [bool(uncertainty.warnings.get(name)) for name in names]
        rows += [families[name] for name in names]
    inside, errors = np.concatenate(held), np.concatenate(smapes).mean(axis=1)
    flags = np.array(warned)
    return Coverage(
        targets=float(inside[:, :NUM_TARGETS].mean()),
        iteration_time=float(inside[:, NUM_TARGETS].mean()),
        median_width_pct=float(np.median(np.concatenate(widths))),
        num_warned=int(flags.sum()),
        smape_warned_pct=float(errors[flags].mean()) if flags.any() else None,
        smape_others_pct=float(errors[~flags].mean()) if (~flags).any() else None,
        by_target=dict(
            zip(TARGET_NAMES, inside[:, :NUM_TARGETS].mean(axis=0).tolist(), strict=True)
        ),
        by_family={
            family: _held(inside[[row == family for row in rows]]) for family in sorted(set(rows))
        },
    )


def _held(inside: npt.NDArray[np.bool_]) -> FamilyCoverage:
    """Shares of rows [n, 13]."""
    return FamilyCoverage(
        num_predictions=len(inside),
        targets=float(inside[:, :NUM_TARGETS].mean()),
        iteration_time=float(inside[:, NUM_TARGETS].mean()),
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
