"""What a correction of simulated step times may learn from: where the simulated time goes.

MeasuredRun, ... + StepSource + Calibration --correction_inputs--> CorrectionInputs

Per step and group of ops (`GROUPS`): its share of the time, how many kernels, how long they are,
what bounds them, and the facts of its ops, weighted by their time. Per step: options of the job and
peaks of the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.catalog import Device
from driple.runs.measured_run import MeasuredRun
from driple.runs.steps import StepSource
from driple.simulate.calibration import CalibratedDevice, Calibration
from driple.simulate.gpu_times import peak_seconds
from driple.simulate.op_facts import FACTS, GROUPS
from driple.simulate.prepared_job import PreparedJob

__all__ = ["CorrectionInputs", "correction_inputs"]

FloatArray = npt.NDArray[np.float64]

_PRECISIONS = ("fp32", "tf32", "bf16", "fp16", "amp-bf16", "amp-fp16")
_LIBRARIES = ("torch1", "torch2.1", "torch2.7")
_TINY_S = 1e-12


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrectionInputs:
    """Inputs of n steps.

    Attributes:
        shares: shape [n, groups], of the device's busy time; rows sum to 1.
        groups: shape [n, groups, g], of each group of ops; 0 where a step has none.
        steps: shape [n, s], of the whole step.
    """

    shares: FloatArray
    groups: FloatArray
    steps: FloatArray

    def flat(self) -> FloatArray:
        """One row of numbers per step, for methods without groups: shape [n, f]."""
        mean = (self.groups * self.shares[:, :, None]).sum(axis=1)
        counts = self.groups[:, :, 0]
        return np.concatenate([self.shares, counts, mean, self.steps], axis=1)


def correction_inputs(
    rows: Sequence[MeasuredRun],
    steps: StepSource,
    calibration: Calibration,
    progress: Callable[[str], None] = lambda _: None,
) -> CorrectionInputs:
    """Inputs of the rows, in their order.

    Args:
        rows: on one device each.
        steps: where their steps come from.
        calibration: that simulates them.
        progress: called with the job of each row.

    Raises:
        DripleError: a step cannot be made.
    """
    count, width = len(rows), 4 + len(FACTS)
    shares = np.zeros((count, len(GROUPS)))
    groups = np.zeros((count, len(GROUPS), width))
    wholes: list[list[float]] = [[] for _ in rows]
    last: tuple[tuple[object, ...], PreparedJob] | None = None
    for i in sorted(range(count), key=lambda i: repr(rows[i].step_key)):
        row = rows[i]
        progress(row.job)
        if last is None or last[0] != row.step_key:
            last = (row.step_key, steps.prepared(row))
        device = calibration.device(row.device)
        shares[i], groups[i], waits = _of_groups(last[1], device)
        wholes[i] = [*_of_job(row), *_of_device(device.spec), waits]
    return CorrectionInputs(shares=shares, groups=groups, steps=np.array(wholes))


def _of_groups(job: PreparedJob, device: CalibratedDevice) -> tuple[FloatArray, FloatArray, float]:
    """Shares, inputs of the groups, and how much longer than busy the step is (logarithm)."""
    times, kinds = job.times(device), job.kinds
    table = kinds.table
    size = len(table.moved)
    busy = np.bincount(kinds.kind_of, times.busy_s, size).astype(np.float64)
    runs = np.bincount(kinds.kind_of, kinds.executions, size).astype(np.float64)
    peaks = peak_seconds(table, device.spec)
    of = table.facts.groups

    def summed(values: FloatArray) -> FloatArray:
        return np.bincount(of, values, len(GROUPS)).astype(np.float64)

    total, kernels = summed(busy), summed(runs)
    weights = busy / np.maximum(total[of], _TINY_S)
    bound = summed(weights * (peaks.compute_s > peaks.memory_s).astype(np.float64))
    each_s = total / np.maximum(kernels, 1)
    length = np.where(total > 0, np.log(np.maximum(each_s, _TINY_S) / 1e-4), 0.0)
    facts = np.stack([summed(weights * column) for column in table.facts.values.T], axis=1)
    whole_s = float(times.duration_s.sum())
    inputs = np.concatenate(
        [np.log1p(kernels)[:, None], bound[:, None], length[:, None], (total > 0)[:, None], facts],
        axis=1,
    )
    share = total / max(float(total.sum()), _TINY_S)
    return share, inputs, float(np.log(max(whole_s, _TINY_S) / max(busy.sum(), _TINY_S)))


def _of_job(row: MeasuredRun) -> list[float]:
    return [
        float(row.task == "train"),
        float(row.compiled),
        float(row.channels_last),
        float(np.log(row.batch_size or 1)),
        float(np.log(row.seq_len or 1)),
        float(np.log((row.input_shape or (1,))[-1])),
        float(np.log(row.grad_accumulation)),
        float(row.activation_checkpointing not in ("", "none")),
        *(float(row.precision == name) for name in _PRECISIONS),
        *(float(row.library == name) for name in _LIBRARIES),
    ]


def _of_device(device: Device) -> list[float]:
    rates = (device.half_flops, device.matrix_flops, device.fp32_flops, device.bytes_per_s)
    return [float(np.log(rate)) for rate in rates]
