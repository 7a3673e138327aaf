"""Least squares with scipy, which is an extra: loaded when something is fitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import MissingExtraError, install_hint

__all__ = ["least_squares"]

FloatArray = npt.NDArray[np.float64]


def least_squares(
    residuals: Callable[[FloatArray], FloatArray],
    begin: npt.ArrayLike,
    *,
    extra: str = "calibration",
    **options: Any,
) -> Any:
    """The result of `scipy.optimize.least_squares`.

    Args:
        residuals: function of a parameter vector.
        begin: the start vector.
        extra: Driple's extra that installs scipy for the caller.
        options: passed on to scipy.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    try:
        from scipy import optimize
    except ImportError as error:
        raise MissingExtraError(
            f"fitting needs scipy, which is not installed; {install_hint(extra)}"
        ) from error
    return optimize.least_squares(residuals, begin, **options)
