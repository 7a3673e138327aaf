"""Kernels of inference builds beside those of our own training steps, on the same GPUs.

    datasets/runs/measured-h100, -h200: seconds of the products and attentions of a step
    datasets/runs/kernels             : what those shapes take in inference builds

No shape of a step stands in a table as it is: a product gets the share of the peaks that the
nearest shapes reach, in the logarithms of rows, columns and depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from driple.catalog import device_named
from driple.runs.step_store import StepStore
from driple.simulate.gpu_times import EMPTY_KERNEL_S, peak_seconds
from driple.simulate.optable import OpTable
from scripts.fits.measured_gpu import MEASURED_FILE, read_profiled_runs
from scripts.fits.measured_kernels import kinds_of_parts, seconds_of_parts, stored_job
from scripts.published.kernels import wide_table
from scripts.studies.chips.today import attention_ops, kernel_us, product_ops

__all__ = ["OwnStep", "own_steps"]

FloatArray = npt.NDArray[np.float64]
DATASETS = Path(__file__).resolve().parents[3] / "datasets"
FOLDERS = {
    "H100": DATASETS / "runs" / "measured-h100",
    "H200": DATASETS / "runs" / "measured-h200",
}
_NEAREST = 4
_HALF = ("bf16", "amp-bf16")
_MOST_APART = 0.1  # of a part's time in ops that the tables lack, by Driple's own times
_LONG_S = 2e-4  # shorter parts measure launches


@dataclass(frozen=True, slots=True)
class OwnStep:
    """Kernels of one kind in one of our steps.

    Attributes:
        device: that ran them.
        kind: `matmul` or `attention`.
        task: `train` or `forward`.
        measured_s: by PyTorch's profiler.
        inference_s: by the tables of inference builds.
        today_s: by Driple's model of kernels.
    """

    device: str
    kind: str
    task: str
    measured_s: float
    inference_s: float
    today_s: float


class _Table:
    """Time over that at the peaks, of the nearest shapes of a table."""

    def __init__(self, ops: OpTable, us: FloatArray, device: str) -> None:
        known = np.isfinite(us)
        self._device = device
        peaks = self._peak_s(ops)
        self._slower = np.log(us * 1e-6 / peaks)[known]
        self._tree = cKDTree(self._place(ops)[known])

    def _peak_s(self, ops: OpTable) -> FloatArray:
        peaks = peak_seconds(ops, device_named(self._device))
        seconds: FloatArray = np.maximum(peaks.compute_s, peaks.memory_s) + EMPTY_KERNEL_S
        return seconds

    @staticmethod
    def _place(ops: OpTable) -> FloatArray:
        logs: FloatArray = np.log2(np.maximum(ops.sides, 1.0))
        return logs

    def seconds(self, ops: OpTable) -> FloatArray:
        away, nearest = self._tree.query(self._place(ops), k=_NEAREST)
        weights = 1.0 / (away + 0.1)
        slower = (weights * self._slower[nearest]).sum(axis=1) / weights.sum(axis=1)
        seconds: FloatArray = self._peak_s(ops) * np.exp(slower)
        return seconds


def _tables(device: str) -> dict[str, _Table]:
    products = wide_table("products").query("format == 'bf16' and software == 'sglang'")
    attention = wide_table("attention").query("format == 'bf16' and software == 'vllm'")
    return {
        "matmul": _Table(product_ops(products), products[device].to_numpy(), device),
        "attention": _Table(attention_ops(attention), attention[device].to_numpy(), device),
    }


def own_steps() -> Iterator[OwnStep]:
    """Products and attention in half precision of our steps, that the tables cover."""
    for device, folder in FOLDERS.items():
        tables, times = _tables(device), seconds_of_parts(folder)
        store = StepStore.open(folder)
        for row in read_profiled_runs(folder / MEASURED_FILE):
            job = stored_job(row, store) if row.precision in _HALF else None
            if job is None:
                continue
            for part, kinds in kinds_of_parts(job):
                seconds = times.get(row.key, {}).get(part, 0.0)
                if part not in tables or seconds < _LONG_S:
                    continue
                runs = np.bincount(kinds.kind_of, kinds.executions, len(kinds.table.moved))
                today_s = runs * kernel_us(kinds.table, device) / 1e6
                covered = _covered(kinds.table, part)
                if today_s[~covered].sum() > _MOST_APART * today_s.sum():
                    continue
                said = np.where(covered, tables[part].seconds(kinds.table), 0.0) * runs
                said = np.where(covered, said, today_s)
                yield OwnStep(
                    device, part, row.task, seconds, float(said.sum()), float(today_s.sum())
                )


def _covered(table: OpTable, part: str) -> npt.NDArray[np.bool_]:
    """Single products in half precision, of sides that are multiples of 8; attention forward."""
    if part == "attention":
        return np.array([kind == "attention" for kind in table.facts.kinds])
    single = table.sides[:, 3] == 1
    sides = table.sides[:, :3]
    fits: npt.NDArray[np.bool_] = (sides.min(axis=1) >= 16) & (sides % 8 == 0).all(axis=1)
    covered: npt.NDArray[np.bool_] = fits & single & table.half
    return covered
