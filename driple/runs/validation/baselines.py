"""What every predictor has to beat: four baselines, fitted to the same rows as the simulator.

    constant   one share of the peak FLOP/s that all steps reach
    roofline   sum over ops of max(compute, memory) + a start each, fitted per device and precision
    linear     a non-negative sum of compute, memory, kernels and traffic, relative errors squared
    trees      boosted trees on the logarithm of the time over a plain roofline

Each is a function (training work, training rows, work to predict, its rows) -> seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from driple.errors import MissingExtraError, install_hint
from driple.runs.measured_run import MeasuredRun
from driple.runs.solver import least_squares
from driple.runs.validation.metrics import family_weights, weighted_quantile
from driple.runs.validation.work import RowWork

__all__ = ["BASELINES", "Baseline", "require_trees"]

FloatArray = npt.NDArray[np.float64]
Baseline = Callable[[RowWork, Sequence[MeasuredRun], RowWork, Sequence[MeasuredRun]], FloatArray]

_START = np.log([0.5, 0.6, 1e-5])  # share of compute, share of memory, seconds of a start
_PRIOR = 0.1  # a number e times its start costs as much as a row that is 10 % off
_ENOUGH_ROWS = 8  # of a device in one precision, for a roofline of its own


def constant(
    train: RowWork, rows: Sequence[MeasuredRun], test: RowWork, _: Sequence[MeasuredRun]
) -> FloatArray:
    """Compute at one share of the peak, the weighted median of the shares of the training rows."""
    compute_s = train.summed(train.compute_s)
    measured = np.array([row.step_s for row in rows])
    share = weighted_quantile(compute_s / measured, family_weights(rows), 0.5)
    seconds: FloatArray = test.summed(test.compute_s) / share
    return seconds


def roofline(
    train: RowWork, rows: Sequence[MeasuredRun], test: RowWork, wanted: Sequence[MeasuredRun]
) -> FloatArray:
    """Three numbers per device and precision; of an unseen device, those of all together."""
    fits: dict[tuple[str, ...], FloatArray] = {}
    places: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        for key in _keys(row):
            places.setdefault(key, []).append(i)
    measured = np.log([row.step_s for row in rows])
    weights = np.sqrt(len(rows) * family_weights(rows))
    seconds = np.empty(len(wanted))
    groups: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(wanted):
        key = next(key for key in _keys(row) if len(places.get(key, ())) >= _ENOUGH_ROWS or not key)
        groups.setdefault(key, []).append(i)
    for key, some in groups.items():
        if key not in fits:
            own = np.array(places[key], dtype=np.int64)
            fits[key] = _fit_roofline(train.take(own), measured[own], weights[own])
        at = np.array(some, dtype=np.int64)
        seconds[at] = _roofline_s(fits[key], test.take(at))
    return seconds


def _keys(row: MeasuredRun) -> tuple[tuple[str, ...], ...]:
    """Groups of rows that may share a roofline, the narrowest first."""
    precision = row.precision or "unknown"
    return (row.device, precision, row.task), (row.device, precision), (precision,), ()


def _fit_roofline(work: RowWork, logs: FloatArray, weights: FloatArray) -> FloatArray:
    def residuals(moved: FloatArray) -> FloatArray:
        off = (np.log(_roofline_s(_START + moved, work)) - logs) * weights
        return np.concatenate([off, moved * _PRIOR])

    coefficients: FloatArray = (
        _START + least_squares(residuals, np.zeros(3), loss="soft_l1", f_scale=0.1).x
    )
    return coefficients


def _roofline_s(logs: FloatArray, work: RowWork) -> FloatArray:
    compute, memory, start_s = np.exp(logs)
    each_s = np.maximum(work.compute_s / compute, work.memory_s / memory) + start_s * work.kernels
    seconds: FloatArray = np.maximum(work.summed(each_s), work.link_s)
    return seconds


def linear(
    train: RowWork, rows: Sequence[MeasuredRun], test: RowWork, _: Sequence[MeasuredRun]
) -> FloatArray:
    """Compute, memory, kernels, traffic and a constant, by non-negative least squares."""
    from scipy.optimize import nnls  # in the calibration extra

    measured = np.array([row.step_s for row in rows])
    weights = np.sqrt(len(rows) * family_weights(rows))
    design = _columns(train)
    scale = np.maximum((design / measured[:, None]).mean(axis=0), 1e-30)
    coefficients = nnls(design / scale * (weights / measured)[:, None], weights)[0]
    seconds: FloatArray = np.maximum(_columns(test) / scale @ coefficients, 1e-9)
    return seconds


def _columns(work: RowWork) -> FloatArray:
    return np.stack(
        [
            work.summed(work.compute_s),
            work.summed(work.memory_s),
            work.summed(work.kernels) * 1e-5,
            work.link_s,
            np.full(len(work.starts), 1e-3),
        ],
        axis=1,
    )


def require_trees() -> None:
    """Check, before minutes of work, that boosted trees can be made.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    if find_spec("sklearn") is None:
        raise MissingExtraError(
            "boosted trees, to compare, need scikit-learn, which is not installed; "
            f"{install_hint('calibration')}"
        )


def trees(
    train: RowWork, rows: Sequence[MeasuredRun], test: RowWork, _: Sequence[MeasuredRun]
) -> FloatArray:
    """Gradient-boosted trees (Friedman, 2001) on job and device features.

    Raises:
        MissingExtraError: scikit-learn is not installed.
    """
    require_trees()
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits  # scikit-learn needs it

    model = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=150, learning_rate=0.1, max_leaf_nodes=15, random_state=0
    )
    measured = np.log([row.step_s for row in rows])
    weights = len(rows) * family_weights(rows)
    # Threads that wait for each other cost more than they save on some thousand rows.
    with threadpool_limits(1):
        model.fit(train.features, measured - np.log(_plain_s(train)), sample_weight=weights)
        seconds: FloatArray = np.exp(model.predict(test.features)) * _plain_s(test)
    return seconds


def _plain_s(work: RowWork) -> FloatArray:
    """The roofline with the numbers that every fit begins with."""
    return _roofline_s(_START, work)


BASELINES: Mapping[str, Baseline] = {
    "constant": constant,
    "roofline": roofline,
    "linear": linear,
    "trees": trees,
}
