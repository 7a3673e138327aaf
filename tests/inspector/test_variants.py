"""Layers and readouts that no preset uses: torch runs them, and without torch they are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from driple.errors import ConfigError, MissingExtraError
from driple.inspector.checkpoint import load_checkpoint, save_checkpoint
from driple.inspector.config import InspectorConfig
from driple.inspector.forward import run_inspector
from driple.inspector.predict import Predictor
from driple.inspector.variants import layer_shapes
from driple.training.config import PRESETS
from tests.inspector.examples import checkpoint_of, random_input, random_inspector

VARIANTS = (
    InspectorConfig(hidden=8, layer="gat"),
    InspectorConfig(hidden=8, layer="gin", readout="max"),
    InspectorConfig(hidden=8, layer="mpnn"),
    InspectorConfig(hidden=8, readout="add"),
    InspectorConfig(hidden=8, readout="mean"),
    InspectorConfig(hidden=8, readout="sort"),
)
MESSAGE = "needs torch, which is not installed; pip install 'driple\\[train\\]'"


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a user's installation."""
    monkeypatch.setitem(sys.modules, "torch", None)


def test_presets_run_without_torch() -> None:
    """What is shipped is of these structures."""
    assert not any(preset.inspector.needs_torch for preset in PRESETS.values())
    assert all(config.needs_torch for config in VARIANTS)


@pytest.mark.parametrize("config", VARIANTS, ids=lambda c: f"{c.layer}-{c.readout}")
def test_a_variant_without_torch_is_one_line(
    config: InspectorConfig, request: pytest.FixtureRequest
) -> None:
    """It says what the checkpoint is of, and what to install."""
    checkpoint = checkpoint_of(random_inspector(config, 4), 4)  # type: ignore[arg-type]
    inputs = [random_input(0, 4)]
    assert Predictor(checkpoint).predict_inputs(inputs).shape == (1, 12)
    request.getfixturevalue("no_torch")
    with pytest.raises(MissingExtraError, match=MESSAGE) as caught:
        Predictor(checkpoint).predict_inputs(inputs)
    assert f"{config.layer} with readout {config.readout}" in str(caught.value)


def test_a_stored_variant_without_torch_is_one_line(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Its weights cannot even be checked; one of a preset's structure loads."""
    files = []
    for config in (VARIANTS[0], InspectorConfig(hidden=8)):
        files.append(tmp_path / f"{config.layer}.safetensors")
        checkpoint = checkpoint_of(random_inspector(config, 4), 4)  # type: ignore[arg-type]
        save_checkpoint(checkpoint, files[-1])
    request.getfixturevalue("no_torch")
    with pytest.raises(MissingExtraError, match=MESSAGE):
        load_checkpoint(files[0])
    assert Predictor(load_checkpoint(files[1])).predict_inputs([random_input(0, 4)]).shape == (
        1,
        12,
    )


def test_numpy_refuses_a_variant() -> None:
    """It would be another network."""
    with pytest.raises(ConfigError, match="NumPy runs no inspector with graph layer gat"):
        run_inspector({}, VARIANTS[0], 4, random_input(0, 4))


def test_shapes_of_a_large_layer_take_no_memory() -> None:
    """A forged checkpoint may claim any width."""
    shapes = layer_shapes("gin", 4096, 4096)
    assert shapes["first.weight"] == (4096, 4096)
    assert shapes["eps"] == (1,)
