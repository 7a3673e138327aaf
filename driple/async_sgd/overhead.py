"""Parsing overhead of a received tensor: alpha * size + beta (section 3.2.1).

sizes, seconds beyond the transfer -> Overhead, R^2
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from driple.codec import json_field
from driple.errors import TraceError

__all__ = ["Overhead", "OverheadFit", "fit_overhead"]

FloatArray = npt.NDArray[np.float64]

_LEAST_POINTS = 3


@dataclass(frozen=True, slots=True)
class Overhead:
    """Time to parse a received tensor, seconds.

    Attributes:
        s_per_byte: alpha of the paper.
        s: beta of the paper.
    """

    s_per_byte: float = field(default=0.0, metadata=json_field(may_lack=True))
    s: float = field(default=0.0, metadata=json_field(may_lack=True))

    def of(self, nbytes: npt.ArrayLike) -> FloatArray:
        """Time for tensors of these sizes, seconds."""
        return self.s_per_byte * np.asarray(nbytes, dtype=np.float64) + self.s


@dataclass(frozen=True, slots=True)
class OverheadFit:
    """A fitted line.

    Attributes:
        overhead: the line.
        r_squared: fraction of the variance explained by the line.
    """

    overhead: Overhead
    r_squared: float


def fit_overhead(sizes: FloatArray, seconds: FloatArray) -> OverheadFit:
    """Least-squares line through measured overheads, with both coefficients at least zero.

    Args:
        sizes: bytes of each tensor.
        seconds: time from the last byte until the tensor can be used.

    Raises:
        TraceError: too few points, or all of one size.
    """
    if len(sizes) < _LEAST_POINTS or np.ptp(sizes) == 0:
        raise TraceError(
            f"parsing overhead needs {_LEAST_POINTS} tensors of different sizes or more, got "
            f"{len(sizes)}"
        )
    # Relative to the largest, so that the squares are of one magnitude.
    scale = float(sizes.max())
    slope, offset = np.polyfit(sizes / scale, seconds, 1)
    if offset < 0:
        slope, offset = float((sizes / scale) @ seconds / np.square(sizes / scale).sum()), 0.0
    if slope < 0:
        slope, offset = 0.0, float(max(seconds.mean(), 0.0))
    overhead = Overhead(float(slope) / scale, float(offset))
    rest = np.square(seconds - overhead.of(sizes)).sum()
    spread = np.square(seconds - seconds.mean()).sum()
    return OverheadFit(overhead, float(1 - rest / spread) if spread > 0 else 1.0)
