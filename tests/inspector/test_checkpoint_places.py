"""Where checkpoints of settings are, and which ones ship."""

from __future__ import annotations

import pytest

from driple.cluster.setting import Setting
from driple.errors import CheckpointError
from driple.inspector.checkpoint_places import (
    _TRAINABLE,
    checkpoint_files,
    checkpoint_path,
    settings_with_checkpoint,
)
from driple.training.config import PRESETS

BOTH, ALONE = ["default", "paper"], ["default"]


def test_both_presets_ship_for_measured_settings_and_the_first_of_gpus() -> None:
    """Other GPU settings have preset default; those that the simulator answers for have none."""
    shipped = {
        name: list(checkpoint_files(Setting.parse(name))) for name in settings_with_checkpoint()
    }
    for name, presets in shipped.items():
        measured = name.startswith("CPU")
        assert presets == (BOTH if measured or name == "V100-P1w2/ho-PCIe" else ALONE), name
    assert len(shipped) == 21
    assert "8xH100/NVLink" in shipped
    assert not {"8xA100/NVLink", "8xB200/NVLink", "4x8xH100/NVLink+400G"} & shipped.keys()


def test_a_preset_that_is_missing_is_refused_with_the_command_that_makes_it() -> None:
    """Of a preset that none trains there is no such command."""
    ti = Setting.parse("2080Ti")
    with pytest.raises(
        CheckpointError, match=r"are: default\).*--setting 2080Ti\S* --preset paper$"
    ):
        checkpoint_path(ti, "paper")
    with pytest.raises(CheckpointError, match=r"are: default\).*or give a checkpoint file$"):
        checkpoint_path(ti, "papr")
    with pytest.raises(CheckpointError, match=r"train --setting 8xA100/NVLink --preset paper$"):
        checkpoint_path(Setting.parse("8xA100"), "paper")


def test_presets_that_can_be_trained_are_those_of_training() -> None:
    assert set(_TRAINABLE) == set(PRESETS)
