"""What the closed forms take: numbers or arrays of them, checked where they divide."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError

__all__ = ["FloatArray", "Numbers", "as_array", "positive"]

Numbers = npt.ArrayLike
FloatArray = npt.NDArray[np.float64]


def as_array(values: Numbers) -> FloatArray:
    """Double precision, of any shape.

    Raises:
        ConfigError: something that is no number, or rows of unlike lengths.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"numbers are needed, got {values!r}") from error


def positive(name: str, values: Numbers) -> FloatArray:
    """Numbers to divide by, or to count with.

    Raises:
        ConfigError: one that is not above 0 and finite.
    """
    array = as_array(values)
    if not (np.isfinite(array) & (array > 0)).all():
        raise ConfigError(f"{name} must be above 0 and finite, got {values!r}")
    return array
