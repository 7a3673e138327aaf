"""Repeatability of labels: the difference between runs is the floor of every prediction's error.

    workload -> targets of each of its runs [runs, 12], seconds per iteration [runs]
             -> coefficients of variation, SMAPE between two runs

SMAPE between two runs is measured pair by pair. For normally distributed runs with a small
coefficient of variation c, its mean is 2 c / sqrt(pi) = 1.13 c, the mean distance of two draws. A
predictor of the true mean would have an error of sqrt(2 / pi) c = 0.80 c against a label from one
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt

from driple.trace.provenance import Repeatability
from driple.trace.targets import TARGET_NAMES

__all__ = ["repeatability", "smape_shares"]

FloatArray = npt.NDArray[np.float64]


def smape_shares(first: FloatArray, other: FloatArray) -> FloatArray:
    """|first - other| / ((|first| + |other|) / 2) of every number, 0 to 2; 0/0 counts as 0.

    Args:
        first: any shape.
        other: the same shape.
    """
    size = (np.abs(first) + np.abs(other)) / 2
    shares: FloatArray = np.divide(
        np.abs(first - other), size, out=np.zeros_like(size), where=size > 0
    )
    return shares


def repeatability(
    targets: Mapping[str, FloatArray], times_s: Mapping[str, FloatArray]
) -> Repeatability:
    """Record of a data set's repeats (`dataset.json`).

    Args:
        targets: shape [runs, 12] by workload; those with a single run do not count.
        times_s: shape [runs] by workload, seconds per iteration.
    """
    repeated = {name: rows for name, rows in targets.items() if len(rows) > 1}
    if not repeated:
        return Repeatability()
    spreads = [_variation(rows) for rows in repeated.values()]
    between = {name: _between_runs_pct(rows) for name, rows in repeated.items()}
    by_target = np.mean(list(between.values()), axis=0)
    time_pct = np.mean([_between_runs_pct(times_s[name]) for name in repeated])
    return Repeatability(
        workloads=len(repeated),
        median_cv=dict(
            zip(TARGET_NAMES, np.median(spreads, axis=0).round(4).tolist(), strict=True)
        ),
        smape_pct={
            **dict(zip(TARGET_NAMES, by_target.round(2).tolist(), strict=True)),
            "iteration_time": round(float(time_pct), 2),
        },
        smape_pct_by_workload={
            name: round(float(row.mean()), 2) for name, row in sorted(between.items())
        },
    )


def _variation(rows: FloatArray) -> FloatArray:
    """Standard deviation over mean of each target, shape [12]; 0 of a target that is always 0."""
    mean, deviation = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
    shares: FloatArray = np.divide(deviation, mean, out=np.zeros_like(mean), where=mean > 0)
    return shares


def _between_runs_pct(rows: FloatArray) -> FloatArray:
    """Mean over all pairs of runs, percent: shape [runs, ...] to [...]."""
    shares = [smape_shares(rows[i], rows[j]) for i, j in combinations(range(len(rows)), 2)]
    mean: FloatArray = 100 * np.mean(shares, axis=0)
    return mean
