"""Baselines: closed cases, and laws that hold for any of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from driple.errors import DatasetError
from driple.evaluation.baselines import (
    BASELINES,
    ON_SUMMARIES,
    SETTINGS,
    fit_mean,
    fit_neighbours,
    limited_threads,
)

RANDOM = np.random.default_rng(0)
ROWS = RANDOM.uniform(0, 4, (60, 5))
# Products of powers of the summaries: a straight line of logarithms.
LABELS = np.exp(ROWS @ RANDOM.uniform(-0.5, 0.5, (5, 12)))
LEARNERS = sorted(ON_SUMMARIES)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads of so small fits wait for each other longer than they work."""
    with limited_threads(1):
        yield


def test_mean_of_the_training_labels() -> None:
    """Target by target, the same for every workload."""
    predicted = fit_mean(ROWS, LABELS)(ROWS[:2])
    assert predicted.shape == (2, 12)
    assert np.array_equal(predicted[0], predicted[1])
    assert predicted[0] == pytest.approx(LABELS.mean(axis=0))


def test_a_neighbour_at_no_distance_is_the_answer() -> None:
    """What was trained on comes back; with one workload, it is all that is known."""
    assert fit_neighbours(ROWS, LABELS)(ROWS[:3]) == pytest.approx(LABELS[:3])
    assert fit_neighbours(ROWS[:1], LABELS[:1])(ROWS[1:2]) == pytest.approx(LABELS[:1])


@pytest.mark.parametrize("name", LEARNERS)
def test_learners_beat_the_mean(name: str) -> None:
    """On labels that follow from the summaries, the logarithms are less than half as wrong."""
    train, test = slice(0, 45), slice(45, 60)

    def error(method: str) -> float:
        predicted = BASELINES[method](ROWS[train], LABELS[train])(ROWS[test])
        return float(np.abs(np.log(predicted / LABELS[test])).mean())

    assert error(name) < 0.6 * error("mean")


@pytest.mark.parametrize("name", ["mean", "knn", "trees"])
def test_units_do_not_matter(name: str) -> None:
    """Labels in milliseconds give a thousand times the prediction in seconds.

    The forest draws its splits at random, and draws others when the last digit of a label differs.
    """
    in_seconds = BASELINES[name](ROWS, LABELS)(ROWS[:4] + 0.1)
    other = BASELINES[name](ROWS, 1000 * LABELS)(ROWS[:4] + 0.1)
    assert other == pytest.approx(1000 * in_seconds, rel=1e-6)


@pytest.mark.parametrize("name", ["mean", "knn", "forest"])
def test_averages_stay_among_the_labels(name: str) -> None:
    """Far outside of the training part they say the nearest that they know, and no more."""
    predicted = BASELINES[name](ROWS, LABELS)(100 * ROWS)
    assert (predicted <= LABELS.max(axis=0) * (1 + 1e-9)).all()
    assert (predicted >= LABELS.min(axis=0) * (1 - 1e-9)).all()


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_nothing_to_learn_from_is_refused(name: str) -> None:
    """No training workloads, no predictor; and every method's settings are known."""
    with pytest.raises(DatasetError, match="needs 1 or more"):
        BASELINES[name](np.zeros((0, 5)), np.zeros((0, 12)))
    assert SETTINGS.keys() == BASELINES.keys()
