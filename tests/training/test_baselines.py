"""The mean predictor predicts the mean."""

from __future__ import annotations

import numpy as np
import pytest

from driple.errors import DatasetError
from driple.training.baselines import BASELINES, fit_mean
from tests.dataset.examples import synthetic_dataset


def test_mean_of_the_training_labels() -> None:
    """Target by target, the same for every workload."""
    dataset = synthetic_dataset(6)
    predicted = fit_mean(dataset.examples[:4]).predict(dataset.examples[4:])
    assert predicted.shape == (2, 12)
    assert np.array_equal(predicted[0], predicted[1])
    assert predicted[0] == pytest.approx(dataset.targets()[:4].mean(axis=0))
    assert BASELINES["mean"] is fit_mean


def test_a_mean_of_nothing_is_refused() -> None:
    """No training workloads, no mean."""
    with pytest.raises(DatasetError, match="needs 1 or more"):
        fit_mean([])
