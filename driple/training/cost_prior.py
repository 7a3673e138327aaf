"""Fit the cost prior of a setting: non-negative least squares on relative errors.

contexts [n, C], labels [n, 12]  ->  CostLaw

Errors are relative, so that small and large workloads have the same weight. A ridge worth some tens
of labels keeps sums that are rare in the training part from dominating on a new model. It pulls
rates to 0; in a transfer (`cost_prior_selection`), to those of the other setting, scaled to the
labels. Durations grow with the cost of a step; amounts (percent, MB/s) do not, so their prior is a
constant.
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
    """The cost prior with the smallest relative error on the labels.

    Args:
        contexts: shape [n, C], log(1 + x) of `context_names`.
        labels: shape [n, 12].
        floor: shape [12], minimum of labels.
        context_names: entries of the context.
        prior: cost prior of a transfer's source, which stays an input of the inspector.
        ratios: shape [n, 12], above 0, predicted ratios of labels to the prior; 1 if None.
        law_names: entries of the context that each sum adds; the default except in experiments.
        ridge_labels: strength of the ridge, in labels.

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
    """The rates times the factor with the smallest error on the labels."""
    predicted = parts @ rates
    square = float(predicted @ predicted)
    return rates * (predicted.sum() / square) if square > 0 else np.zeros_like(rates)
