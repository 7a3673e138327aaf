"""Fitting residuals: what near graphs share is found, what is noise is left."""

from __future__ import annotations

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.training.config import PRESETS
from driple.training.prepare import preset_for
from driple.training.residuals import fit_residuals
from tests.dataset.examples import grouped_dataset, synthetic_dataset


def made_up(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts [n, 4] and residuals [n, 12] that vary smoothly with them."""
    contexts = np.random.default_rng(seed).uniform(-1, 1, size=(rows, 4))
    waves = np.random.default_rng(9).normal(size=(4, 12))
    return contexts, np.sin(contexts @ waves)


def test_what_near_graphs_share_is_found() -> None:
    """Of new graphs among the learned ones most of the residual is told."""
    learned, known = made_up(0, 200)
    residuals = fit_residuals(learned, known, *made_up(1, 60))
    assert residuals is not None
    contexts, wanted = made_up(2, 50)
    assert np.abs(wanted - residuals.at(contexts)).mean() < 0.25 * np.abs(wanted).mean()


def test_noise_is_not_learned() -> None:
    """Residuals that have nothing to do with the context are left alone, or nearly."""
    learned, _ = made_up(0, 60)
    validation, _ = made_up(1, 60)
    noise = np.random.default_rng(2)
    residuals = fit_residuals(
        learned, noise.normal(size=(60, 12)), validation, noise.normal(size=(60, 12))
    )
    assert residuals is None or np.abs(residuals.at(made_up(3, 50)[0])).mean() < 0.2


def test_only_the_training_part_is_learned_from() -> None:
    """Other validation graphs may choose another length; the learned graphs are the training's."""
    learned, known = made_up(0, 80)
    residuals = fit_residuals(learned, known, *made_up(1, 20))
    assert residuals is not None
    np.testing.assert_array_equal(residuals.learned, learned.astype(np.float32))


def test_the_order_of_graphs_changes_nothing() -> None:
    """Rows are interchangeable."""
    learned, known = made_up(0, 80)
    order = np.random.default_rng(1).permutation(80)
    first = fit_residuals(learned, known, *made_up(1, 20))
    two = fit_residuals(learned[order], known[order], *made_up(1, 20))
    assert first is not None
    assert two is not None
    contexts, _ = made_up(2, 10)
    np.testing.assert_allclose(first.at(contexts), two.at(contexts), rtol=1e-4, atol=1e-6)


def test_graphs_without_a_context_are_refused() -> None:
    """Nothing tells which of them are near."""
    none = np.zeros((5, 0))
    with pytest.raises(ConfigError, match="context to costs"):
        fit_residuals(none, np.ones((5, 12)), none, np.ones((5, 12)))


def test_graphs_that_are_grouped_already_are_learned_without() -> None:
    """They have no context: preset `default` is what it can be on them."""
    whole = preset_for(synthetic_dataset(6), PRESETS["default"])
    assert whole.train.residuals == "kernel"
    grouped = preset_for(grouped_dataset(6), PRESETS["default"])
    assert (grouped.train.residuals, grouped.input.context) == ("none", "none")
