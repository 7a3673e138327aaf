"""Figures of merit of predicted step times, each model family and machine type weighted equally.

rows, predicted seconds --score--> Score: median and 90th percentile of |p - t| / t, signed median,
rank correlation of the configurations of a model, coverage and width of intervals
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.predictions import RowPrediction

__all__ = [
    "Score",
    "family_weights",
    "intervals_kept",
    "kendall_tau",
    "rank_correlation",
    "score",
    "weighted_quantile",
]

FloatArray = npt.NDArray[np.float64]

_LEAST_RUNS = 3  # for a rank correlation
_LEAST_CONFIGURATIONS = 4  # of one model, for a rank correlation


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Errors of one predictor on some rows.

    Attributes:
        rows: how many were predicted.
        families: model families among them.
        median_pct: weighted median of |p - t| / t, percent.
        p90_pct: weighted 90th percentile of it.
        signed_pct: weighted median of (p - t) / t: below 0 the predictor is too fast.
        tau: mean over models of Kendall's tau between predicted and measured time of a sample, over
            the configurations of one model from one source; None without enough of them.
        coverage_pct: weighted share of measured times within the intervals; None without any.
        width: weighted median of upper over lower end; None without intervals.
    """

    rows: int
    families: int
    median_pct: float
    p90_pct: float
    signed_pct: float
    tau: float | None = None
    coverage_pct: float | None = None
    width: float | None = None


def score(rows: Sequence[MeasuredRun], predicted: Sequence[RowPrediction]) -> Score:
    """The figures of merit on one or more rows.

    Args:
        rows: with measured times.
        predicted: of each row.
    """
    seconds = np.array([one.seconds for one in predicted])
    measured = np.array([row.step_s for row in rows])
    ratio, weights = seconds / measured - 1, family_weights(rows)
    coverage, width = intervals_kept(measured, weights, predicted)
    return Score(
        rows=len(rows),
        families=len({row.family for row in rows}),
        median_pct=100 * weighted_quantile(np.abs(ratio), weights, 0.5),
        p90_pct=100 * weighted_quantile(np.abs(ratio), weights, 0.9),
        signed_pct=100 * weighted_quantile(ratio, weights, 0.5),
        tau=_rank_correlation(rows, seconds),
        coverage_pct=coverage,
        width=width,
    )


def family_weights(rows: Sequence[MeasuredRun]) -> FloatArray:
    """Weight of each row, summing to 1: families equal, machine types of a family equal."""
    types: dict[str, set[tuple[str, int, int, str]]] = defaultdict(set)
    sums: dict[tuple[str, tuple[str, int, int, str]], float] = defaultdict(float)
    for row in rows:
        types[row.family].add(row.machine_type)
        sums[row.family, row.machine_type] += row.weight
    return np.array(
        [
            row.weight / sums[row.family, row.machine_type] / len(types[row.family]) / len(types)
            for row in rows
        ]
    )


def weighted_quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    """The smallest value at which the weights of all values up to it reach a share of their sum.

    Args:
        values: shape [n], n of at least 1.
        weights: shape [n], not negative, not all 0.
        share: from 0 to 1.
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    at = int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12)))
    return float(values[order][min(at, len(values) - 1)])


def kendall_tau(left: FloatArray, other: FloatArray) -> float | None:
    """Kendall's tau-b of two orders, shape [n] each; None where one of them is all ties."""
    first = np.sign(left[:, None] - left[None, :])
    second = np.sign(other[:, None] - other[None, :])
    pairs = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / pairs if pairs else None


def _rank_correlation(rows: Sequence[MeasuredRun], seconds: FloatArray) -> float | None:
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[row.source, row.job, row.task].append(i)
    taus = []
    for places in groups.values():
        configurations = Counter((rows[i].setting, *rows[i].step_key[1:]) for i in places)
        if len(configurations) < _LEAST_CONFIGURATIONS:
            continue
        samples = np.array([rows[i].samples for i in places])
        measured = np.array([rows[i].step_s for i in places])
        tau = kendall_tau(seconds[places] / samples, measured / samples)
        if tau is not None:
            taus.append(tau)
    return float(np.mean(taus)) if taus else None


def intervals_kept(
    measured: FloatArray, weights: FloatArray, predicted: Sequence[RowPrediction]
) -> tuple[float | None, float | None]:
    """Coverage in percent and median width (high / low) of the rows with an interval.

    Args:
        measured: shape [n], seconds.
        weights: shape [n], not negative, not all 0.
        predicted: n predictions; both are None if none of them has an interval.
    """
    some = [i for i, one in enumerate(predicted) if one.low is not None and one.high is not None]
    if not some:
        return None, None
    ends = np.array([(predicted[i].low, predicted[i].high) for i in some], dtype=np.float64)
    inside = (ends[:, 0] <= measured[some]) & (measured[some] <= ends[:, 1])
    own = weights[some]
    width = weighted_quantile(ends[:, 1] / ends[:, 0], own, 0.5)
    return 100 * float((inside * own).sum() / own.sum()), width


def rank_correlation(left: FloatArray, other: FloatArray) -> float | None:
    """Spearman's correlation of two orders, shape [n] each, ties at their mean rank.

    None where there are fewer than three, or one of the orders is all ties.
    """
    if len(left) < _LEAST_RUNS:
        return None
    first, second = _centred_ranks(left), _centred_ranks(other)
    size = math.sqrt(float((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / size if size else None


def _centred_ranks(values: FloatArray) -> FloatArray:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[which]
    centred: FloatArray = ranks - ranks.mean()
    return centred
