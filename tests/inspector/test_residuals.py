"""Residuals: lent to near graphs alone, kept in the checkpoint, refused where they are odd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.errors import CheckpointError, ConfigError
from driple.features.features import CONTEXT_NAMES
from driple.inspector.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from driple.inspector.config import InspectorConfig
from driple.inspector.predict import Predictor
from driple.inspector.residuals import Residuals, differences, nearness

from .examples import checkpoint_of, random_input, random_inspector
from .test_checkpoint import refused, with_metadata, with_weights

NUM_CONTEXT = len(CONTEXT_NAMES)


def of_inputs(seeds: range, length: float = 0.01) -> Residuals:
    """Residuals of random inputs, each graph's its own."""
    learned = np.stack([random_input(seed, 6, NUM_CONTEXT).context for seed in seeds])
    coefficients = np.random.default_rng(0).normal(size=(len(seeds), 12))
    return Residuals(
        length=length,
        learned=learned.astype(np.float32),
        coefficients=coefficients.astype(np.float32),
    )


@pytest.fixture(scope="module")
def plain() -> Checkpoint:
    """Without residuals."""
    config = InspectorConfig(hidden=4, num_context=NUM_CONTEXT, readout="mean", depth=2)
    return checkpoint_of(random_inspector(config, 6), 6)


def test_nearness_is_one_at_a_graph_itself_and_none_far_away() -> None:
    """It is a symmetric, positive definite kernel, and falls to 1 / e over its length."""
    contexts = np.random.default_rng(0).normal(size=(20, 5))
    near = nearness(differences(contexts, contexts), 0.5)
    np.testing.assert_allclose(np.diag(near), 1.0)
    np.testing.assert_allclose(near, near.T)
    assert np.linalg.eigvalsh(near).min() > 0
    shifted = nearness(differences(contexts + 0.5, contexts), 0.5)
    np.testing.assert_allclose(shifted.diagonal(), np.exp(-1))
    assert nearness(differences(contexts + 1e3, contexts), 0.5).max() < 1e-100


def test_far_from_what_was_learned_the_network_is_left_as_it_is(plain: Checkpoint) -> None:
    """A learned graph is told otherwise than without residuals, another one to the bit the same."""
    graph_input, other = random_input(3, 6, NUM_CONTEXT), random_input(9, 6, NUM_CONTEXT)
    other = replace(other, context=other.context + 1e3)
    with_them = Predictor(replace(plain, residuals=of_inputs(range(5))))
    without = Predictor(plain)
    near, far = with_them.predict_inputs([graph_input, other]) - without.predict_inputs(
        [graph_input, other]
    )
    expected = of_inputs(range(5)).at([graph_input.context])[0] * plain.target_scaler.scale
    np.testing.assert_allclose(near, expected, rtol=1e-6)
    assert np.abs(near).max() > 0.1
    assert not far.any()


def test_they_travel_in_the_checkpoint(plain: Checkpoint, tmp_path: Path) -> None:
    """Saved and loaded they add the same to the bit; a checkpoint without them loads too."""
    path = tmp_path / "c.safetensors"
    with_residuals = replace(plain, residuals=of_inputs(range(5)))
    save_checkpoint(with_residuals, path)
    inputs = [random_input(seed, 6, NUM_CONTEXT) for seed in range(8)]
    first, two = (
        Predictor(c).predict_inputs(inputs) for c in (with_residuals, load_checkpoint(path))
    )
    assert first.tobytes() == two.tobytes()
    save_checkpoint(plain, path)
    assert load_checkpoint(path).residuals is None


def test_damaged_ones_are_refused(plain: Checkpoint, tmp_path: Path) -> None:
    """Missing, surplus, of another shape, not finite, of an odd length: a line that says so."""
    path = tmp_path / "c.safetensors"
    save_checkpoint(replace(plain, residuals=of_inputs(range(5))), path)
    data = path.read_bytes()

    def put(name: str, value: np.ndarray) -> Callable[[dict[str, np.ndarray]], None]:
        return lambda weights: weights.update({f"residuals.{name}": value.astype(np.float32)})

    def refused_with(change: Callable[[dict[str, np.ndarray]], None]) -> str:
        return refused(with_weights(data, change), tmp_path)

    lacking = refused_with(lambda weights: weights.pop("residuals.learned"))
    assert "lacks residuals.learned" in lacking
    surplus = with_metadata(data, lambda fields: fields.update(residuals=None))
    assert "surplus weights residuals.coefficients" in refused(surplus, tmp_path)
    assert "no contexts of length" in refused_with(put("learned", np.ones((5, 2))))
    assert "coefficients of shape" in refused_with(put("coefficients", np.ones((4, 12))))
    odd = np.full((5, 12), np.nan)
    assert "no finite float32" in refused_with(put("coefficients", odd))
    for length in (0, -1.0, "long", None):
        changed = with_metadata(data, lambda f, x=length: f.update(residuals={"length": x}))
        assert "length of the residuals" in refused(changed, tmp_path)


def test_what_could_not_be_loaded_is_not_saved(plain: Checkpoint, tmp_path: Path) -> None:
    """Residuals of graphs with another context, or of no graphs."""
    some = of_inputs(range(5))
    other = replace(some, learned=some.learned[:, :2])
    with pytest.raises(CheckpointError, match="no contexts of length"):
        save_checkpoint(replace(plain, residuals=other), tmp_path / "c.safetensors")
    with pytest.raises(ConfigError, match="train anew"):
        Residuals(length=1.0, learned=some.learned[:0], coefficients=some.coefficients[:0])
