"""Few layers first: the repeated layer waits, the best epoch has all, a stop loses nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from driple.features import InputConfig
from driple.inspector.config import InspectorConfig
from driple.training.config import Preset, TrainConfig
from driple.training.loop import Progress
from driple.training.runfiles import load_state
from tests.training.test_train import assert_same_run, run

GROWTH_EPOCHS, EPOCHS = 4, 8
GROWING = Preset(
    name="growing",
    input=InputConfig(num_groups=8, components="all", features="log"),
    inspector=InspectorConfig(hidden=8, output="linear"),
    train=TrainConfig(
        batch_size=3,
        max_epochs=EPOCHS,
        patience_epochs=EPOCHS,
        input_scaling="standard",
        target_scaling="log",
        start="pass",
        shared_rate_share=0.1,
        growth_share=GROWTH_EPOCHS / EPOCHS,
    ),
)


class Stopped(KeyboardInterrupt):
    """The user's Ctrl-C."""


def stopped_after(folder: Path, epoch: int) -> None:
    """A run that is stopped when an epoch is done."""

    def stop(progress: Progress) -> None:
        if progress.stage == "epochs" and progress.done == epoch:
            raise Stopped

    with pytest.raises(Stopped):
        run(folder, GROWING, progress=stop)


def shared_weights(folder: Path) -> dict[str, list[float]]:
    state = load_state(folder)
    assert state is not None
    return {name: w.flatten().tolist() for name, w in state.model.items() if "shared" in name}


def test_the_repeated_layer_waits(tmp_path: Path) -> None:
    """Its weights are those of the first epoch until all layers run, and then they move."""
    epochs = (1, GROWTH_EPOCHS, GROWTH_EPOCHS + 1)
    for epoch in epochs:
        stopped_after(tmp_path / str(epoch), epoch)
    first, last, after = (shared_weights(tmp_path / str(epoch)) for epoch in epochs)
    assert first == last
    assert all(last[name] != after[name] for name in last)


def test_the_best_epoch_has_all_layers(tmp_path: Path) -> None:
    """Even if few layers were better; patience too counts from there on."""
    wild = replace(GROWING.train, learning_rate=0.3, patience_epochs=1)
    result = run(tmp_path, replace(GROWING, train=wild))
    losses = [record.val_loss for record in result.history]
    assert min(losses[:GROWTH_EPOCHS]) < min(losses[GROWTH_EPOCHS:])
    assert result.best_epoch > GROWTH_EPOCHS


@pytest.mark.parametrize("epoch", [2, GROWTH_EPOCHS, 6])
def test_stopped_and_resumed(tmp_path: Path, epoch: int) -> None:
    """With few layers, between, and with all of them: as if it had not been stopped."""
    run(tmp_path / "whole", GROWING)
    stopped_after(tmp_path / "stopped", epoch)
    run(tmp_path / "stopped", GROWING, resume=True)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")
