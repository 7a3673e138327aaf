"""What the simulator has to beat: a roofline with three numbers per device and precision.

seconds = sum over ops of max(FLOPs / (a peak FLOP/s), bytes / (b peak bytes/s)) + c per op
(Williams, Waterman and Patterson, CACM 2009). Single precision reaches twice the peak of plain
cores, since libraries save multiplications, and half precision half of that of tensor cores: one
share for both fits neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.runs.solver import least_squares
from scripts.fits.fit import StepRows

__all__ = ["Roofline", "fit_roofline"]

FloatArray = npt.NDArray[np.float64]

_START = (0.5, 0.6, 1e-5)
# A number that is e times its start costs as much as a run that is 10 % off. Without it, five runs
# let the time of each op grow until it explains all: ResNet-152, left out, took 1.5 times too long.
# Of 0.001, 0.05, 0.1 and 0.2 this is the best on left-out models.
_PRIOR = 0.1


@dataclass(frozen=True, slots=True)
class Roofline:
    """One device in one precision.

    Attributes:
        compute: share of peak FLOP/s.
        memory: share of peak bytes/s.
        op_s: seconds of each op besides.
    """

    compute: float
    memory: float
    op_s: float

    def seconds(self, device: Device, rows: StepRows) -> FloatArray:
        """Seconds of each step."""
        table = rows.table
        flops = 2 * table.sides.prod(axis=1)
        peak = np.where(table.half, device.half_flops, device.matrix_flops)
        bound_s = np.maximum(
            flops / (peak * self.compute), table.moved / (device.bytes_per_s * self.memory)
        )
        each_s = np.where(table.moved > 0, bound_s + self.op_s, 0.0)
        sums = np.add.reduceat(each_s * rows.executions, rows.starts)
        cases: FloatArray = sums + rows.update_s / self.memory
        return cases[rows.case_of]


def fit_roofline(device: Device, rows: StepRows) -> Roofline:
    """The three numbers with the least squares of the logarithm of simulated over measured time.

    Args:
        device: that the steps ran on.
        rows: of one precision.

    Raises:
        MissingExtraError: scipy is not installed.
    """

    def residuals(steps: FloatArray) -> FloatArray:
        logs: FloatArray = np.log(_moved(steps).seconds(device, rows) / rows.seconds)
        return np.concatenate([logs, steps * _PRIOR])

    return _moved(least_squares(residuals, np.zeros(3), loss="soft_l1", f_scale=0.1).x)


def _moved(steps: FloatArray) -> Roofline:
    return Roofline(*(np.array(_START) * np.exp(steps)).tolist())
