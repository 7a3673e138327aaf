"""Fit the cost law of a setting: rates that are not negative, by least squares of ratios.

contexts [n, C], labels [n, 12]  ->  CostLaw

Each label counts by its ratio, so that small workloads count as much as large ones. A ridge of some
tens of labels keeps sums that are rare in the training part from dominating in a new model.
It pulls rates to 0; in a transfer (`relaw`), to those of the other setting, at the level of the
labels.
Durations grow with what a step costs; amounts (percent, MB/s) do not, their law is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driple.errors import MissingExtraError, install_hint
from driple.inspector.cost_prior import LAW_NAMES, CostPrior, columns_of, sums_of
from driple.trace.targets import TARGET_NAMES

__all__ = ["RIDGE_LABELS", "fit_cost_law"]

FloatArray = npt.NDArray[np.float64]

RIDGE_LABELS = 15.0
_SMALLEST = 1e-30


def fit_cost_law(
    contexts: FloatArray,
    labels: FloatArray,
    floor: FloatArray,
    context_names: Sequence[str],
    *,
    prior: CostPrior | None = None,
    ratios: FloatArray | None = None,
    law_names: Sequence[Sequence[str]] = LAW_NAMES,
    ridge_labels: float = RIDGE_LABELS,
) -> CostPrior:
    """The law that comes nearest to the labels.

    Args:
        contexts: shape [n, C], log(1 + x) of `context_names`.
        labels: shape [n, 12].
        floor: shape [12], labels below count as this.
        context_names: entries of the context.
        prior: law of the setting that a transfer starts from; it is what the inspector goes on
            reading.
        ratios: shape [n, 12], above 0, of labels to law, where an inspector knows them; 1 if None.
        law_names: entries that each sum adds up; others than the usual ones are for experiments.
        ridge_labels: how many labels the ridge is worth.

    Raises:
        ConfigError: the context lacks costs.
        MissingExtraError: scipy is not installed.
    """
    try:
        from scipy.optimize import nnls
    except ImportError as error:
        raise MissingExtraError(
            f"fitting a cost law needs scipy, which is not installed; {install_hint('train')}"
        ) from error
    columns = columns_of(context_names, law_names)
    sums = sums_of(contexts, columns)
    num_sums = sums.shape[1]
    pull = np.sqrt(ridge_labels) * np.eye(num_sums)
    rates = np.empty((labels.shape[1], num_sums))
    for i, name in enumerate(TARGET_NAMES):
        known = np.maximum(labels[:, i], floor[i])
        parts = sums / (known if ratios is None else known / ratios[:, i])[:, None]
        if not name.endswith("duration"):
            parts[:, :-1] = 0.0
        scale = np.maximum(parts.mean(axis=0), _SMALLEST)
        expected = np.zeros(num_sums) if prior is None else _levelled(parts, prior.rates[i])
        wanted = np.concatenate([np.ones(len(labels)), pull @ (expected * scale)])
        shares, _ = nnls(np.concatenate([parts / scale, pull]), wanted, maxiter=100 * num_sums)
        rates[i] = np.where(shares > 0, shares / scale, 0.0)
    read = None if prior is None else prior.read or prior
    return CostPrior(columns=columns, rates=rates, floor=floor, read=read)


def _levelled(parts: FloatArray, rates: FloatArray) -> FloatArray:
    """The rates times the one factor that brings them nearest to the labels."""
    told = parts @ rates
    square = float(told @ told)
    return rates * (told.sum() / square) if square > 0 else np.zeros_like(rates)
