"""Fit `Residuals`: kernel ridge regression on a network's training residuals.

    contexts, residuals of the training part + those of the validation part -> Residuals | None

Length and ridge minimise the error on the validation part over a grid. The result is None if no
choice improves on the network alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.inspector.residuals import Residuals, differences, nearness

__all__ = ["LENGTHS", "RIDGES", "fit_residuals"]

FloatArray = npt.NDArray[np.float64]

# Mean differences of standardised contexts: about 0.1 between neighbours on a grid of
# hyper-parameters, 0.5 to 1 between families.
LENGTHS = (0.05, 0.1, 0.2, 0.5, 1.0)
# Ratio of the noise variance of a residual to the variance shared by near graphs.
RIDGES = (0.03, 0.1, 0.3, 1.0)


def fit_residuals(
    contexts: npt.ArrayLike,
    residuals: FloatArray,
    validation_contexts: npt.ArrayLike,
    validation_residuals: FloatArray,
) -> Residuals | None:
    """The residuals as a function of the context.

    Args:
        contexts: shape [n, C], scaled contexts of the training part.
        residuals: shape [n, 12], scaled labels less scaled outputs.
        validation_contexts: shape [m, C].
        validation_residuals: shape [m, 12].

    Returns:
        None if no length and ridge reduce the validation error.

    Raises:
        ConfigError: graphs have no context.
    """
    learned = np.asarray(contexts, dtype=np.float32)
    if learned.shape[1] == 0:
        raise ConfigError("residuals need a context; set the input's context to costs")
    best, least = None, float(np.abs(validation_residuals).mean())
    apart, beside = differences(learned, learned), differences(validation_contexts, learned)
    for length in LENGTHS:
        among, across = nearness(apart, length), nearness(beside, length)
        for ridge in RIDGES:
            coefficients = np.linalg.solve(among + ridge * np.eye(len(among)), residuals)
            left = float(np.abs(validation_residuals - across @ coefficients).mean())
            if left < least:
                best, least = (length, coefficients), left
    if best is None:
        return None
    return Residuals(length=best[0], learned=learned, coefficients=best[1].astype(np.float32))
