"""Baseline predictors on whole-graph summaries, without the graph itself.

    summaries [n, F], labels [n, 12] of the training part --fit-->  Predict: summaries -> targets

`BASELINES` names them. All but the mean learn standardised logarithms of the targets, as preset
`default` does, so that small workloads count as much as large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from driple.errors import DatasetError, MissingExtraError, install_hint
from driple.inspector.scaling import TargetScaler

__all__ = [
    "BASELINES",
    "ON_SUMMARIES",
    "SETTINGS",
    "Predict",
    "fit_forest",
    "fit_mean",
    "fit_neighbours",
    "fit_trees",
    "limited_threads",
]

FloatArray = npt.NDArray[np.float64]
Predict = Callable[[FloatArray], FloatArray]

# Of scikit-learn's regressors. Chosen on the training and validation parts of the random split of
# CPU-P1w2/ho-200M with seed 0, families of it left out in turn; no test part was looked at.
SETTINGS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "mean": {},
        "knn": {"n_neighbors": 5, "weights": "distance"},
        "trees": {
            "learning_rate": 0.1,
            "max_iter": 150,
            "max_leaf_nodes": 8,
            "min_samples_leaf": 3,
            "early_stopping": False,
            "random_state": 0,
        },
        "forest": {"n_estimators": 300, "random_state": 0},
    }
)


def fit_mean(summaries: FloatArray, labels: FloatArray) -> Predict:
    """The mean of the training labels, target by target, whatever the workload.

    Args:
        summaries: shape [n, any], not looked at.
        labels: shape [n, 12], targets in their units.

    Returns:
        From summaries [m, any] to targets [m, 12].

    Raises:
        DatasetError: no training workloads.
    """
    _check(labels)
    mean = labels.mean(axis=0)
    return lambda rows: np.tile(mean, (len(rows), 1))


def fit_neighbours(summaries: FloatArray, labels: FloatArray) -> Predict:
    """The mean of the nearest training workloads, the nearer the heavier (method `knn`).

    Distances are those of standardised summaries; arguments and errors as of `fit_mean`.
    """
    _check(labels)
    _require_sklearn()
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    settings = dict(SETTINGS["knn"])
    settings["n_neighbors"] = min(settings["n_neighbors"], len(labels))
    nearest = KNeighborsRegressor(**settings)
    return _fit_logs(make_pipeline(StandardScaler(), nearest), summaries, labels)


def fit_trees(summaries: FloatArray, labels: FloatArray) -> Predict:
    """Gradient-boosted trees, an ensemble for each target (method `trees`).

    Arguments and errors as of `fit_mean`.
    """
    _check(labels)
    _require_sklearn()
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.multioutput import MultiOutputRegressor

    boosted = HistGradientBoostingRegressor(**SETTINGS["trees"])
    return _fit_logs(MultiOutputRegressor(boosted), summaries, labels)


def fit_forest(summaries: FloatArray, labels: FloatArray) -> Predict:
    """Extremely randomised trees, one forest for all targets (method `forest`).

    Arguments and errors as of `fit_mean`.
    """
    _check(labels)
    _require_sklearn()
    from sklearn.ensemble import ExtraTreesRegressor

    return _fit_logs(ExtraTreesRegressor(**SETTINGS["forest"]), summaries, labels)


BASELINES: Mapping[str, Callable[[FloatArray, FloatArray], Predict]] = MappingProxyType(
    {"mean": fit_mean, "knn": fit_neighbours, "trees": fit_trees, "forest": fit_forest}
)
# Those that need a summary of every graph.
ON_SUMMARIES = frozenset(BASELINES) - {"mean"}


def limited_threads(threads: int | None) -> AbstractContextManager[object]:
    """A context in which scikit-learn uses this many threads; None leaves them as they are."""
    _require_sklearn()
    import sklearn.ensemble  # so that no fit's time holds the import
    import sklearn.neighbors  # noqa: F401  # likewise
    from threadpoolctl import threadpool_limits  # scikit-learn needs it

    limits: AbstractContextManager[object] = threadpool_limits(limits=threads)
    return limits


class _Regressor(Protocol):
    """Interface of scikit-learn's regressors."""

    def fit(self, rows: FloatArray, values: FloatArray) -> object:
        """Learn values [n, 12] of rows [n, F]."""
        ...

    def predict(self, rows: FloatArray) -> FloatArray:
        """Values [m, 12] of rows [m, F]."""
        ...


def _fit_logs(regressor: _Regressor, summaries: FloatArray, labels: FloatArray) -> Predict:
    """Learn the logarithms of the labels; predict labels."""
    scaler = TargetScaler.fit(labels, "log")
    regressor.fit(summaries, scaler.transform(labels))
    return lambda rows: scaler.inverse(regressor.predict(rows))


def _check(labels: FloatArray) -> None:
    if not len(labels):
        raise DatasetError("a baseline was given no training workloads; it needs 1 or more")


def _require_sklearn() -> None:
    try:
        import sklearn  # noqa: F401  # an extra
    except ImportError as error:
        raise MissingExtraError(
            f"baselines need scikit-learn, which is not installed; {install_hint('train')}"
        ) from error
