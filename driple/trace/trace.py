"""`Trace`: evenly spaced samples of one resource."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import TraceError

__all__ = ["Trace"]

_UNITS = ("%", "MB/s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """Samples of one resource of one worker, evenly spaced.

    Attributes:
        resource: one of `driple.trace.targets.RESOURCES`.
        unit: unit of `amount`: `%` or `MB/s`.
        amount: shape [n], float64; the mean over each sampling period.
        period_s: seconds between two samples.
        start_s: start of the first sampling period, on the clock of the run.
        counter_period_s: seconds between two updates of the underlying counter. A counter slower
            than the samples averages over this time.
    """

    resource: str
    unit: str
    amount: npt.NDArray[np.float64]
    period_s: float
    start_s: float = 0.0
    counter_period_s: float = 0.0

    def __post_init__(self) -> None:
        """Raise TraceError on values that no counter can show."""
        if self.unit not in _UNITS:
            raise TraceError(
                f"trace of {self.resource} is in '{self.unit}'; it must be in {' or '.join(_UNITS)}"
            )
        if not 0 < self.period_s < math.inf:
            raise TraceError(
                f"trace of {self.resource} has a sampling period of {self.period_s} s; it must be "
                "above 0 and finite"
            )
        if self.amount.ndim != 1 or not np.isfinite(self.amount).all():
            raise TraceError(
                f"trace of {self.resource} holds values that are not finite numbers in one row; "
                "measure again"
            )

    @property
    def time_s(self) -> npt.NDArray[np.float64]:
        """Shape [n]: the end of each sampling period."""
        ends = np.arange(1, len(self.amount) + 1, dtype=np.float64)
        return np.add(self.start_s, self.period_s * ends, dtype=np.float64)
