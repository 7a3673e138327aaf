"""Aligning: a setting that differs by factors is known after it, and nothing else is changed."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from driple.inspector.scaling import TargetScaler
from driple.trace.targets import NUM_TARGETS
from driple.training.align import OFFSET_LABELS, align_layer, aligned_lines


def labels(count: int) -> np.ndarray:
    """Made-up labels, shape [count, 12]."""
    return np.exp(np.random.default_rng(0).normal(size=(count, NUM_TARGETS)))


def test_a_setting_that_differs_by_factors_is_known_after_n_labels() -> None:
    """Perfect outputs, labels times a factor: n labels leave 1 / (n + 1) of its logarithm."""
    old_labels = labels(40)
    new_labels = old_labels * np.linspace(0.3, 3.0, NUM_TARGETS)
    old, new = TargetScaler.fit(old_labels, "log"), TargetScaler.fit(new_labels, "log")
    outputs, wanted = old.transform(old_labels), new.transform(new_labels)
    slopes, offsets = aligned_lines(outputs, wanted, old, new)
    np.testing.assert_allclose(slopes, 1.0, atol=1e-9)
    left = new.inverse(slopes * outputs + offsets) / new_labels
    expected = (old_labels / new_labels) ** (1 / (len(old_labels) + OFFSET_LABELS))
    np.testing.assert_allclose(left, expected, rtol=1e-9)


def test_few_labels_move_the_level_and_hardly_the_slope() -> None:
    """Half the slope, a level two deviations up, eight labels: the level is found."""
    scaler = TargetScaler.fit(labels(200), "log")
    outputs = scaler.transform(labels(8))
    wanted = 0.5 * outputs + 2.0
    slopes, offsets = aligned_lines(outputs, wanted, scaler, scaler)
    assert (slopes > 0.75).all()
    assert (np.abs((slopes * outputs + offsets - wanted).mean(axis=0)) < 0.3).all()


def test_without_labels_to_tell_otherwise_predictions_stay() -> None:
    """Labels that are what was predicted: the same predictions, on whichever scale."""
    old, new = TargetScaler.fit(labels(200), "log"), TargetScaler.fit(labels(12), "log")
    outputs = old.transform(labels(12))
    slopes, offsets = aligned_lines(outputs, new.transform(old.inverse(outputs)), old, new)
    np.testing.assert_allclose(
        new.inverse(slopes * outputs + offsets), old.inverse(outputs), rtol=1e-9
    )


def test_the_line_is_folded_into_the_layer() -> None:
    """The layer gives slope * output + offset."""
    layer = nn.Linear(5, NUM_TARGETS)
    x = torch.randn(7, 5)
    before = layer(x).detach().numpy()
    slopes, offsets = np.linspace(-1, 2, NUM_TARGETS), np.linspace(3, 4, NUM_TARGETS)
    align_layer(layer, slopes, offsets)
    np.testing.assert_allclose(layer(x).detach().numpy(), slopes * before + offsets, atol=1e-5)
