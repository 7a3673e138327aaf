"""Ways to know the kernels of a chip from those of others, each chip left out in turn.

    peak seconds of ops, facts of a chip -> features -> microseconds

today: the shipped kernel model, to which the chip has no rows of its own; formula: one share of
each peak for all chips, fitted to the other chips' kernels; trees: what the formula leaves, learned
from shapes and facts of chips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from driple.catalog import Device, device_named
from driple.simulate.gpu_times import EMPTY_KERNEL_S, most_shares, peak_seconds
from driple.simulate.optable import OpTable

__all__ = ["Kernels", "errors", "fit_formula", "fit_trees", "formula_us", "trees_us"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
USUAL_BALANCE = 125.0
_MOST_TRAINED = 60_000  # rows that a forest learns from


@dataclass(frozen=True, slots=True)
class Kernels:
    """Measured kernels of one kind: a time for each op on each device, where there is one.

    Attributes:
        ops: the ops, n of them.
        us: measured microseconds by device, shape [n], NaN where not measured.
    """

    ops: OpTable
    us: Mapping[str, FloatArray]

    def features(self, device: str) -> FloatArray:
        """What shape and chip tell, shape [n, f]; the first two are seconds at the peaks."""
        spec = device_named(device)
        peaks = peak_seconds(self.ops, spec)
        sides = np.maximum(self.ops.sides, 1.0)
        plain = self.ops.flops / spec.half_flops
        return np.stack(
            [
                peaks.compute_s,
                peaks.memory_s,
                *np.log2(sides).T,
                np.log(peaks.compute_s / plain),
                np.log(peaks.compute_s / peaks.memory_s),
                *(np.full(len(plain), fact) for fact in _facts(spec)),
            ],
            axis=1,
        )


def _facts(device: Device) -> tuple[float, ...]:
    return (
        float(np.log(device.half_flops / device.bytes_per_s / USUAL_BALANCE)),
        float(np.log(device.half_flops / device.multiprocessors / 1e12)),
        float(np.log(device.multiprocessors)),
    )


_BALANCE = 8  # column of a chip's balance among the features


def formula_us(weights: FloatArray, features: FloatArray) -> FloatArray:
    """Microseconds of kernels.

    Args:
        weights: logarithms of the shares of the peak FLOP/s and bytes/s, what the first falls by
            with the chip's balance and with the logarithm of the shortest side below 4,096, the
            logarithm of the exponent in which both bounds meet, and of microseconds of a start.
        features: shape [n, f].
    """
    half, memory, fall, short, sharpness, start = weights
    least = np.clip(12.0 - features[:, 2:5].min(axis=1), 0.0, None)
    share = np.exp(half - fall * features[:, _BALANCE] - short * least)
    compute_s = features[:, 0] / np.minimum(share, most_shares(np.zeros(1, dtype=np.int64)))
    memory_s = features[:, 1] / np.exp(memory)
    power = 1.0 + np.exp(sharpness)
    both = (compute_s**power + memory_s**power) ** (1 / power)
    us: FloatArray = 1e6 * both + np.exp(start)
    return us


def fit_formula(features: FloatArray, us: FloatArray) -> FloatArray:
    """The weights of `formula_us` that fit measured times best."""
    start = np.array([np.log(0.7), np.log(0.8), 0.1, 0.05, 0.5, np.log(1e6 * EMPTY_KERNEL_S)])

    def off(weights: FloatArray) -> FloatArray:
        logs: FloatArray = np.log(formula_us(weights, features) / us)
        return logs

    fitted: FloatArray = least_squares(off, start, loss="soft_l1", f_scale=0.1).x
    return fitted


def fit_trees(
    features: FloatArray, us: FloatArray, weights: FloatArray, columns: Sequence[int]
) -> object:
    """Boosted trees of the logarithm of measured over formula."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    some = np.random.default_rng(0).permutation(len(us))[:_MOST_TRAINED]
    left = np.log(us[some] / formula_us(weights, features[some]))
    trees = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=200, max_leaf_nodes=31, learning_rate=0.1, random_state=0
    )
    return trees.fit(features[some][:, list(columns)], left)


def trees_us(
    trees: object, features: FloatArray, weights: FloatArray, columns: Sequence[int]
) -> FloatArray:
    """Microseconds of kernels by formula and trees."""
    left = trees.predict(features[:, list(columns)])  # type: ignore[attr-defined]
    us: FloatArray = formula_us(weights, features) * np.exp(left)
    return us


def errors(said: FloatArray, us: FloatArray) -> tuple[float, float, float]:
    """Median and 90th percentile of the errors, and the signed median, percent."""
    off = said / us - 1.0
    sizes = np.abs(off)
    return tuple(  # type: ignore[return-value]
        round(100 * float(value), 1)
        for value in (np.median(sizes), np.quantile(sizes, 0.9), np.median(off))
    )
