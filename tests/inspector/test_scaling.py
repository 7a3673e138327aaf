"""Scalers: round trips, the paper's scale by hand, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from driple.errors import ConfigError
from driple.inspector.scaling import LOG_FLOOR_SHARE, InputScaler, TargetScaler

from .examples import random_input

LABELS = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.just(12)), elements=st.floats(0, 1e6, width=32)
)


def test_max_divides_by_the_largest_label() -> None:
    """By hand: the largest becomes 1; a target that is always 0 stays 0."""
    labels = np.tile([[2.0], [8.0]], (1, 12))
    labels[:, 3] = 0
    scaled = TargetScaler.fit(labels, "max").transform(labels)
    assert scaled[:, 0].tolist() == [0.25, 1.0]
    assert scaled[:, 3].tolist() == [0.0, 0.0]


def test_max_reports_negatives_as_they_are() -> None:
    """Nothing is clamped: -0.5 of a largest label of 8 is -4."""
    scaler = TargetScaler.fit(np.full((1, 12), 8.0), "max")
    assert scaler.inverse(np.full((1, 12), -0.5))[0, 0] == -4.0


@given(LABELS, st.sampled_from(["max", "log"]))
def test_inverse_undoes_transform(labels: np.ndarray, kind: str) -> None:
    """Labels come back; with `log` those below the floor come back as the floor."""
    scaler = TargetScaler.fit(labels, kind)
    back = scaler.inverse(scaler.transform(labels))
    expected = np.maximum(labels, scaler.floor) if kind == "log" else labels
    np.testing.assert_allclose(back, expected, rtol=1e-9, atol=1e-9)


@given(LABELS, arrays(np.float64, (3, 12), elements=st.floats(-50, 50)))
def test_log_never_gives_a_negative(labels: np.ndarray, outputs: np.ndarray) -> None:
    """Whatever the model says, the logarithmic scale gives a target of 0 or more."""
    assert (TargetScaler.fit(labels, "log").inverse(outputs) >= 0).all()


def test_log_has_mean_0_and_deviation_1() -> None:
    """On the labels it was fitted to; a constant target becomes 0."""
    labels = np.random.default_rng(0).lognormal(size=(50, 12))
    labels[:, 5] = 3.0
    scaled = TargetScaler.fit(labels, "log").transform(labels)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(np.delete(scaled.std(axis=0), 5), 1, atol=1e-9)
    np.testing.assert_allclose(scaled[:, 5], 0, atol=1e-9)


def test_log_of_zero_is_that_of_the_floor() -> None:
    """A label of 0 counts as a ten-thousandth of the largest."""
    labels = np.tile([[0.0], [10.0]], (1, 12))
    scaler = TargetScaler.fit(labels, "log")
    back = scaler.inverse(scaler.transform(labels))
    assert back[0, 0] == pytest.approx(10 * LOG_FLOOR_SHARE)


@pytest.mark.parametrize("kind", ["max", "log"])
def test_target_scaler_survives_json(kind: str) -> None:
    """To the last bit."""
    labels = np.random.default_rng(1).lognormal(size=(9, 12))
    scaler = TargetScaler.fit(labels, kind)
    again = TargetScaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    assert again.kind == kind
    for name in ("offset", "scale", "floor"):
        np.testing.assert_array_equal(getattr(again, name), getattr(scaler, name))


@pytest.mark.parametrize(
    "labels", [np.zeros((0, 12)), np.zeros((2, 11)), np.full((2, 12), np.nan), -np.ones((1, 12))]
)
def test_odd_labels_are_refused(labels: np.ndarray) -> None:
    """None, too narrow, NaN, negative."""
    with pytest.raises(ConfigError):
        TargetScaler.fit(labels, "max")


def test_inputs_get_mean_0_and_deviation_1() -> None:
    """Over the groups of all inputs; the context over the inputs; edges stay."""
    inputs = [random_input(i, 5 + i, 7) for i in range(6)]
    scaler = InputScaler.fit(inputs)
    scaled = [scaler.transform(item) for item in inputs]
    features = np.concatenate([item.features for item in scaled])
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-6)
    np.testing.assert_allclose(np.stack([s.context for s in scaled]).std(axis=0), 1, atol=1e-6)
    assert scaled[0].features.dtype == np.float32
    assert scaled[0].edges is inputs[0].edges
    again = InputScaler.from_dict(json.loads(json.dumps(scaler.to_dict())))
    np.testing.assert_array_equal(again.transform(inputs[0]).features, scaled[0].features)


def test_identity_changes_nothing() -> None:
    """The paper's inputs are not scaled; the identity survives JSON."""
    graph_input = random_input(0, 4)
    assert InputScaler.identity().transform(graph_input) is graph_input
    assert (
        InputScaler.from_dict(InputScaler.identity().to_dict()).transform(graph_input)
        is graph_input
    )


def test_a_constant_column_is_not_divided_by_zero() -> None:
    """One graph of one group has no deviation; it scales to zeros."""
    graph_input = random_input(0, 1, 7)
    scaled = InputScaler.fit([graph_input]).transform(graph_input)
    assert not scaled.features.any()
    assert not scaled.context.any()


def test_odd_input_scalers_are_refused() -> None:
    """No inputs, other widths, odd fields."""
    with pytest.raises(ConfigError, match="at least one"):
        InputScaler.fit([])
    scaler = InputScaler.fit([random_input(0, 4)])
    with pytest.raises(ConfigError, match="build both alike"):
        scaler.transform(random_input(0, 4, 7))
    odd: list[dict[str, object]] = [
        {"kind": "other"},
        {"feature_std": [0.0, 1.0, 1.0]},
        {"feature_std": [1.0]},
        {"feature_mean": "no list"},
        {"feature_mean": [True, 1.0, 1.0]},
        {"colour": 1},
    ]
    for fields in odd:
        with pytest.raises(ConfigError):
            InputScaler.from_dict({**scaler.to_dict(), **fields})
    target = TargetScaler.fit(np.ones((2, 12)), "log")
    for fields in ({"kind": "root"}, {"scale": [0.0] * 12}, {"floor": [0.0] * 12}, {"offset": [1]}):
        with pytest.raises(ConfigError):
            TargetScaler.from_dict({**target.to_dict(), **fields})
