"""Checkpoints that are made of a data set are named, trained and transferred."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset
from driple.inspector.checkpoint import load_checkpoint
from driple.training.transfer_config import transfer_config
from tests.dataset.examples import of_setting, synthetic_dataset
from tests.training.presets import small_preset

ROOT = Path(__file__).resolve().parents[3]
FIRST = synthetic_dataset(24)
OTHER = of_setting(FIRST, "CPU-P2w2/ho-200M")


def test_a_setting_is_trained_anew_or_carried_over(program: ModuleType) -> None:
    """The first settings are trained anew, the others start from those; a device alone has none."""
    assert program.way_of(FIRST, "measured") is program.anew
    assert program.way_of(of_setting(FIRST, "V100-P1w2/ho-PCIe"), "simulated") is program.anew
    assert program.way_of(of_setting(FIRST, "1x4090"), "simulated") is None
    for setting, labels, source in (
        ("CPU-P2w2/ho-200M", "measured", "CPU-P1w2/ho-200M"),
        ("2080Ti-P1w2/ho-PCIe", "simulated", "V100-P1w2/ho-PCIe"),
    ):
        way = program.way_of(of_setting(FIRST, setting), labels)
        assert way.func is program.transferred
        assert way.keywords["source"] == source


def test_what_ships_is_what_is_made_unless_all_is_asked_for(program: ModuleType) -> None:
    """The files of checkpoints/ are those that the program makes."""
    folders = (ROOT / "datasets/settings").glob("*w*_*")
    names = [folder.name.replace("_", "/", 1) for folder in folders]
    names += ["8xA100/NVLink", "8xB200/NVLink", "8xH100/NVLink", "4x8xH100/NVLink+400G"]
    expected = {
        (name, preset)
        for name in names
        for preset in ("default", "paper")
        if program.ships(name, preset, "measured" if name.startswith("CPU") else "simulated")
    }
    files = (ROOT / "checkpoints").glob("*/*.safetensors")
    assert {(file.parent.name.replace("_", "/", 1), file.stem) for file in files} == expected


def test_all_checkpoints_are_made(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two settings: one is trained anew, and carried over to the other."""
    quick = replace(small_preset(max_epochs=2), name="default")

    def file_of(setting: str, name: str) -> Path:
        return tmp_path / Setting.parse(setting).file_name / f"{name}.safetensors"

    def folder_of(dataset: Dataset, *_: object) -> Path:
        return tmp_path / "runs" / Setting.parse(dataset.setting).file_name

    def config_of(_: str) -> object:
        config = transfer_config("default", align=False)
        return replace(
            config, train=replace(config.train, max_epochs=1, residuals="none"), interval_folds=0
        )

    for name, stand_in in (
        ("ROOT", tmp_path),
        ("measured_folders", lambda: {FIRST.setting: tmp_path, OTHER.setting: tmp_path}),
        ("read_datasets", lambda _: [FIRST, OTHER]),
        ("preset_named", lambda _: quick),
        ("inspector_file", file_of),
        ("run_folder", folder_of),
        ("transfer_config", config_of),
    ):
        monkeypatch.setattr(program, name, stand_in)
    monkeypatch.setattr(sys, "argv", ["checkpoints", "--presets", "default", "--threads", "1"])
    program.main()
    checkpoints = {
        str(file.relative_to(tmp_path)): load_checkpoint(file)
        for file in tmp_path.glob("CPU*/*.safetensors")
    }
    assert {name: one.setting for name, one in checkpoints.items()} == {
        "CPU-P1w2_ho-200M/default.safetensors": FIRST.setting,
        "CPU-P2w2_ho-200M/default.safetensors": OTHER.setting,
    }
    moved = checkpoints["CPU-P2w2_ho-200M/default.safetensors"].trained_on
    assert moved.transferred_from is not None
    assert moved.transferred_from.setting == FIRST.setting
