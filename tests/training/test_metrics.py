"""Metrics against numbers computed by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from driple.codec import from_json, to_dict
from driple.errors import ConfigError, DatasetError
from driple.render.errors_stated import impossible_sentence
from driple.trace.targets import TARGET_NAMES
from driple.training.metrics import (
    ScoresRecord,
    check_scale,
    mean_scores,
    nrmse,
    predicted_times_s,
    score,
    smape_pct,
)

RX_BURST, RX_IDLE = (TARGET_NAMES.index(f"net_rx.{name}_duration") for name in ("burst", "idle"))


def rows(*values: float) -> np.ndarray:
    """One row per value, all 12 targets equal to it."""
    return np.array([[value] * 12 for value in values])


def test_nrmse_by_hand() -> None:
    """Errors 3 and 4: RMSE sqrt(12.5); over the largest training label 10."""
    errors = nrmse(rows(5.0, 1.0), rows(2.0, 5.0), largest=rows(10.0)[0])
    assert errors == pytest.approx([0.35355339] * 12)


def test_smape_by_hand() -> None:
    """|1 - 3| / 2 = 1, and 0/0 counts as 0: 50 %; predicted 0 for something is 200 %."""
    assert smape_pct(rows(1.0, 0.0), rows(3.0, 0.0)) == pytest.approx([50.0] * 12)
    assert smape_pct(rows(0.0), rows(3.0)) == pytest.approx([200.0] * 12)
    assert smape_pct(rows(-2.0), rows(2.0)) == pytest.approx([200.0] * 12)


def test_iteration_time_error_by_hand() -> None:
    """Burst 0.2 s and idle 0.4 s of RX are 0.6 s: 20 % above 0.5 s and 40 % below 1.0 s.

    Those of TX are 0.2 s, and the longer period counts.
    """
    predicted = rows(0.1, 0.1)
    predicted[:, RX_BURST], predicted[:, RX_IDLE] = 0.2, 0.4
    assert predicted_times_s(predicted) == pytest.approx([0.6, 0.6])
    scores = score(
        predicted, rows(1.0, 1.0), true_times_s=np.array([0.5, 1.0]), train_labels=rows(2.0)
    )
    assert scores.iteration_time_mape_pct == pytest.approx(30.0)
    assert scores.num_workloads == 2


def test_the_training_part_gives_the_scale() -> None:
    """The NRMSE divides by the largest training label, whatever the scored labels are."""
    scores = score(
        rows(8.0), rows(12.0), true_times_s=np.array([1.0]), train_labels=rows(1.0, 16.0, 4.0)
    )
    assert scores.mean_nrmse == pytest.approx(0.25)
    assert scores.mean_smape_pct == pytest.approx(40.0)


def test_a_target_that_is_always_zero_has_no_nrmse() -> None:
    """A scale of 0 is named, not divided by."""
    labels = rows(1.0)
    labels[0, 7] = 0.0
    with pytest.raises(DatasetError, match=r"target net_tx\.burst_duration is 0 in every"):
        score(rows(1.0), rows(1.0), true_times_s=np.array([1.0]), train_labels=labels)


def test_nothing_to_score_is_refused() -> None:
    """An empty part has no error."""
    none = np.zeros((0, 12))
    with pytest.raises(DatasetError, match="no workload to score"):
        score(none, none, true_times_s=np.zeros(0), train_labels=rows(1.0))


POSITIVE = hnp.arrays(np.float64, (5, 12), elements=st.floats(1e-3, 1e3))


@settings(max_examples=50)
@given(POSITIVE, POSITIVE, st.floats(1e-3, 1e3))
def test_units_do_not_matter(predicted: np.ndarray, true: np.ndarray, factor: float) -> None:
    """Both errors are the same in any unit, and 0 for a perfect prediction."""
    largest = true.max(axis=0)
    scaled = nrmse(factor * predicted, factor * true, largest=factor * largest)
    assert scaled == pytest.approx(nrmse(predicted, true, largest=largest))
    assert smape_pct(factor * predicted, factor * true) == pytest.approx(smape_pct(predicted, true))
    assert smape_pct(true, true).max() == nrmse(true, true, largest=largest).max() == 0.0
    assert smape_pct(predicted, true).max() <= 200.0 + 1e-9


def test_means_over_folds_and_json() -> None:
    """Folds count the same; scores come back from their JSON."""
    first = score(rows(1.0), rows(2.0), true_times_s=np.array([2.0]), train_labels=rows(2.0))
    two = score(
        rows(2.0, 2.0), rows(2.0, 2.0), true_times_s=np.array([4.0, 4.0]), train_labels=rows(2.0)
    )
    mean = mean_scores([first, two])
    assert mean.mean_nrmse == pytest.approx(0.25)
    assert mean.num_workloads == 3
    stored = json.loads(json.dumps(to_dict(first.record())))
    read = from_json(ScoresRecord, stored, where="fold")
    assert read == first.record()
    assert read.scores().record() == first.record()
    for odd, message in (
        ({"num_workloads": "many"}, "num_workloads must be a whole number"),
        ({"nrmse_by_target": 3}, "nrmse_by_target must be an object"),
        ({"nrmse_by_target": {}}, "missing fields"),
    ):
        with pytest.raises(ConfigError, match=message):
            from_json(ScoresRecord, stored | odd, where="fold")


def test_impossible_predictions_are_counted_and_named() -> None:
    """A negative amount, a step that takes no time; errors are there all the same."""
    true = np.full((3, 12), 2.0)
    predicted = true.copy()
    predicted[1, 6] = -722.4  # net_tx.burst_amount
    predicted[2, 7:9] = predicted[2, 10:12] = 0.0  # bursts and gaps of the network
    scores = score(predicted, true, true_times_s=np.full(3, 4.0), train_labels=true)
    assert scores.num_impossible == 2
    assert impossible_sentence(scores).startswith("2 of 3 predictions are impossible")
    stored = to_dict(scores.record())
    assert stored.pop("num_impossible") == 2
    assert from_json(ScoresRecord, stored, where="fold").scores().num_impossible == 0
    fine = score(true, true, true_times_s=np.full(3, 4.0), train_labels=true)
    assert (fine.num_impossible, impossible_sentence(fine)) == (0, "")


def test_a_target_that_is_0_everywhere_is_refused_with_its_reason() -> None:
    """A device alone sends nothing, which no further workloads change."""
    largest = np.ones(12)
    check_scale(largest)
    with pytest.raises(DatasetError, match="a device alone, for which the simulator answers"):
        check_scale(np.where(np.arange(12) >= 6, 0.0, largest))
    with pytest.raises(DatasetError, match=r"device_util.burst_amount is 0 .* add workloads"):
        check_scale(np.where(np.arange(12) == 0, 0.0, largest))
