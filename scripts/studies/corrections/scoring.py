"""Corrections of simulated step times, learned from published steps of other jobs and devices.

rows + held-out simulated seconds --score_corrections--> CorrectionScore by split, task and method

Each method learns the logarithm of measured over simulated from rows of other families, or other
devices, and corrects the rest; the simulated seconds are of fits that had not seen them either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.errors import ConfigError
from driple.runs.measured_run import MeasuredRun
from driple.runs.validation.baselines import require_trees
from driple.runs.validation.metrics import family_weights
from driple.runs.validation.shipped import Shipped
from driple.runs.validation.splits import parts_of
from driple.simulate.calibration import Calibration
from scripts.fits.sampled import sampled_forward
from scripts.studies.corrections.inputs import CorrectionInputs, correction_inputs
from scripts.studies.corrections.network import MOST, RowSplit, network, scaled

__all__ = ["METHODS", "SPLITS", "CorrectionScore", "score_corrections"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# (inputs, logarithms to learn, weights, rows to learn and rows to correct, seed) -> logarithms
Method = Callable[[CorrectionInputs, FloatArray, FloatArray, RowSplit, int], FloatArray]

SPLITS = ("family", "device")
TASKS = ("training, timm", "training, others", "forward pass", "forward pass, compiled")
_LEAST_ROWS = 10  # of a part whose errors count
_RIDGE, _NEIGHBOURS, _NEAR = 3.0, 15, 0.2


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrectionScore:
    """Errors of a method.

    Attributes:
        split: what was left out: `family` or `device`.
        task: one of `TASKS`.
        method: `simulator`, or one of `METHODS` on top of it.
        rows: how many.
        seeds: of the first weights and the order of rows; the errors are means over them.
        median_pct: median of |p - t| / t, percent; each row counts once.
        p90_pct: 90th percentile of it.
    """

    split: str
    task: str
    method: str
    rows: int
    seeds: int
    median_pct: float
    p90_pct: float


def score_corrections(
    shipped: Shipped,
    calibration: Calibration,
    *,
    splits: Sequence[str] = SPLITS,
    methods: Sequence[str] = (),
    seeds: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> list[CorrectionScore]:
    """Errors of the simulator and of corrections on steps on one device.

    Args:
        shipped: rows with held-out predictions.
        calibration: with which the inputs are worked out.
        splits: of `SPLITS`.
        methods: of `METHODS`; empty for all.
        seeds: of a method that depends on one.
        progress: called with each step of the work.

    Raises:
        ConfigError: the folder has no held-out predictions.
        MissingExtraError: scikit-learn or torch is not installed.
    """
    held_out = shipped.held_out
    if held_out is None:
        raise ConfigError("the published rows have no held-out predictions to correct")
    single = [row for row in shipped.rows if row.scheme == "single"]
    rows = [row for row in single if row.task == "train"] + sampled_forward(single)
    inputs = correction_inputs(rows, shipped.steps, calibration, progress)
    measured = np.log([row.step_s for row in rows])
    tasks = np.array([_task(row) for row in rows])
    weights = len(rows) * family_weights(rows)
    scores = []
    for split in splits:
        known_s = [held_out.of(row.id, split) for row in rows]
        base = np.log([np.nan if one is None else one.seconds for one in known_s])
        known = np.isfinite(base)
        parts = [
            (_those(part.train, known), _those(part.test, known))
            for part in parts_of(rows, split, shipped.folds)
            if len(part.test) >= _LEAST_ROWS
        ]
        off = np.clip(measured - base, -MOST, MOST)
        predicted = {"simulator": [base]}
        for name in methods or tuple(METHODS):
            progress(f"{name}, without a {split}")
            predicted[name] = [base.copy() for _ in range(seeds if name in SEEDED else 1)]
            for seed, logs in enumerate(predicted[name]):
                for part in parts:
                    logs[part[1]] += METHODS[name](inputs, off, weights, part, seed)
        counted = np.zeros(len(rows), dtype=np.bool_)
        for _, test in parts:
            counted[test] = True
        for task in TASKS:
            some = np.flatnonzero(counted & (tasks == task))
            for name, predicted_logs in predicted.items() if len(some) else ():
                scores.append(
                    _score(split, task, name, np.array(predicted_logs)[:, some] - measured[some])
                )
    return scores


def _those(places: Sequence[int], known: npt.NDArray[np.bool_]) -> IntArray:
    """The places of rows with a held-out prediction."""
    indices = np.asarray(places, dtype=np.int64)
    return indices[known[indices]]


def _score(split: str, task: str, method: str, off: FloatArray) -> CorrectionScore:
    """The errors of logarithms of predicted over measured, by seed and row."""
    errors = 100 * np.abs(np.exp(off) - 1)
    return CorrectionScore(
        split=split,
        task=task,
        method=method,
        rows=off.shape[1],
        seeds=off.shape[0],
        median_pct=float(np.median(errors, axis=1).mean()),
        p90_pct=float(np.quantile(errors, 0.9, axis=1).mean()),
    )


def _task(row: MeasuredRun) -> str:
    if row.task == "train":
        return TASKS[0] if row.source == "timm" else TASKS[1]
    return TASKS[3] if row.compiled else TASKS[2]


def ridge(
    inputs: CorrectionInputs, off: FloatArray, weights: FloatArray, part: RowSplit, _: int
) -> FloatArray:
    """A linear model whose coefficients are penalised by their squares."""
    train, test = part
    flat = scaled(inputs.flat(), train)
    columns = np.concatenate([flat, np.ones((len(flat), 1))], axis=1)
    seen, weight = columns[train], weights[train] / weights[train].sum()
    normal = (seen * weight[:, None]).T @ seen
    normal[np.diag_indices(len(normal))] += _RIDGE
    predicted: FloatArray = columns[test] @ np.linalg.solve(
        normal, (seen * weight[:, None]).T @ off[train]
    )
    return predicted


def nearest(
    inputs: CorrectionInputs, off: FloatArray, _: FloatArray, part: RowSplit, __: int
) -> FloatArray:
    """The mean of the nearest steps by shares of time, less the further they are."""
    train, test = part
    predicted = np.empty(len(test))
    for place, i in enumerate(test.tolist()):
        apart = np.abs(inputs.shares[train] - inputs.shares[i]).sum(axis=1) / 2
        apart += np.abs(inputs.steps[train, :3] - inputs.steps[i, :3]).sum(axis=1)  # same task
        near = np.argsort(apart)[:_NEIGHBOURS]
        close = np.exp(-apart[near] / _NEAR)
        predicted[place] = (close * off[train[near]]).sum() / (close.sum() + 1.0)
    return predicted


def trees(
    inputs: CorrectionInputs, off: FloatArray, weights: FloatArray, part: RowSplit, _: int
) -> FloatArray:
    """Gradient-boosted trees (Friedman, 2001)."""
    require_trees()
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits  # scikit-learn needs it

    train, test = part
    model = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=150, learning_rate=0.06, max_leaf_nodes=15,
        min_samples_leaf=20, l2_regularization=1.0, random_state=0,
    )  # fmt: skip
    flat = inputs.flat()
    with threadpool_limits(1):  # threads that wait for each other cost more than they save
        model.fit(flat[train], off[train], sample_weight=weights[train])
        predicted: FloatArray = model.predict(flat[test])
    return predicted


METHODS: Mapping[str, Method] = {
    "nearest": nearest,
    "ridge": ridge,
    "trees": trees,
    "network": network,
}
SEEDED = ("network",)  # the others learn the same whatever the seed
