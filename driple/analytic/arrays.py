"""Checked array arguments of the closed forms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError

__all__ = ["FloatArray", "Numbers", "as_array", "positive"]

Numbers = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]


def as_array(values: Numbers) -> FloatArray:
    """The values in double precision, any shape.

    Raises:
        ConfigError: a value is not a number, or rows have different lengths.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"numbers are needed, got {values!r}") from error


def positive(name: str, values: Numbers) -> FloatArray:
    """The values, checked to be positive and finite.

    Raises:
        ConfigError: a value is not positive and finite.
    """
    array = as_array(values)
    if not (np.isfinite(array) & (array > 0)).all():
        raise ConfigError(f"{name} must be above 0 and finite, got {values!r}")
    return array
