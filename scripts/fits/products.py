"""What products in half precision reach of GPUs: fitted to kernels that others measured.

    datasets/runs/kernels/products.csv.xz -> the constants of driple/simulate/product_shares.py

    python -m scripts.fits.products

Prints shares of each device, those of any other, and the errors of both on chips left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from driple.catalog import device_named
from driple.runs.solver import least_squares
from driple.simulate.calibration import shipped_calibration
from driple.simulate.gpu_kernels import smooth_max
from driple.simulate.gpu_times import most_shares, peak_seconds
from driple.simulate.optable import OpTable
from scripts.fits.calibration_gpu import gpu_model_of
from scripts.published.kernels import wide_table
from scripts.studies.chips.today import CHIPS, product_ops

FloatArray = npt.NDArray[np.float64]
BALANCE = 125.0
_START = (np.log(0.8), np.log(0.8), 0.15, np.log(3.0))


def sharpness() -> float:
    """Exponent in which computing and memory meet, of the shipped calibration."""
    model = gpu_model_of(shipped_calibration())
    return model.kernels.sharpness


class MeasuredProducts:
    """Measured products of some devices, with their seconds at the peaks."""

    def __init__(self, ops: OpTable, times: pd.DataFrame, devices: Sequence[str]) -> None:
        parts: list[FloatArray] = []
        for name in devices:
            device, us = device_named(name), times[name].to_numpy()
            peaks = peak_seconds(ops, device)
            known = np.isfinite(us)
            balance = np.log(device.half_flops / device.bytes_per_s / BALANCE)
            chip = sum(CHIPS[other] == CHIPS[name] for other in devices)
            rows = np.stack(
                [peaks.compute_s, peaks.memory_s, us, np.full(len(us), balance),
                 np.full(len(us), chip**-0.5)], axis=1,
            )  # fmt: skip
            parts.append(rows[known])
        self.compute_s, self.memory_s, self.us, self.balance, self.weight = np.concatenate(parts).T

    def said_us(self, weights: FloatArray, power: float) -> FloatArray:
        """Microseconds by the logarithms of both shares, the fall, and that of a start."""
        half, memory, fall, start = weights
        share = np.minimum(
            np.exp(half - fall * self.balance), most_shares(np.zeros(1, dtype=np.int64))
        )
        kernel = smooth_max(self.compute_s / share, self.memory_s / np.exp(memory), power, np)
        said: FloatArray = 1e6 * kernel + np.exp(start)
        return said

    def fit(self, power: float, *, falls: bool) -> FloatArray:
        """The weights that fit best; without a fall for a single chip."""

        def off(weights: FloatArray) -> FloatArray:
            logs: FloatArray = np.log(self.said_us(self._whole(weights, falls), power) / self.us)
            weighed: FloatArray = self.weight * logs
            return weighed

        start = np.array(_START)[[0, 1, 2, 3] if falls else [0, 1, 3]]
        fit = least_squares(off, start, loss="soft_l1", f_scale=0.1)
        return self._whole(fit.x, falls)

    @staticmethod
    def _whole(weights: FloatArray, falls: bool) -> FloatArray:
        return weights if falls else np.insert(weights, 2, 0.0)


def errors(said: FloatArray, us: FloatArray) -> str:
    """Median, 90th percentile and signed median of the errors, percent."""
    off = said / us - 1
    sizes = np.abs(off)
    return (
        f"{100 * np.median(sizes):5.1f} {100 * np.quantile(sizes, 0.9):5.1f} "
        f"{100 * np.median(off):+5.1f}"
    )


def main() -> None:
    """Fit, and print constants and errors."""
    rows = wide_table("products").query("format == 'bf16' and software == 'sglang'")
    ops, power, names = product_ops(rows), sharpness(), list(CHIPS)
    every = MeasuredProducts(ops, rows, names).fit(power, falls=True)
    print("any device:", np.exp(every[:2]).round(3), every[2].round(3), np.exp(every[3]).round(2))
    for name in names:
        mine = MeasuredProducts(ops, rows, [name])
        own = mine.fit(power, falls=False)
        others = [other for other in names if CHIPS[other] != CHIPS[name]]
        unseen = MeasuredProducts(ops, rows, others).fit(power, falls=True)
        print(
            f"{name:18s} shares {np.exp(own[:2]).round(3)}, start {np.exp(own[3]):.2f} us;",
            f"own {errors(mine.said_us(own, power), mine.us)}; chip left out",
            errors(mine.said_us(unseen, power), mine.us),
        )


if __name__ == "__main__":
    main()
