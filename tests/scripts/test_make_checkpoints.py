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

FIRST = synthetic_dataset(24)
OTHER = of_setting(FIRST, "CPU-P2w2/ho-200M")


@pytest.mark.parametrize(
    ("setting", "labels", "names"),
    [
        ("CPU-P1w2/ho-200M", "measured", ["default"]),
        ("CPU-P2w2/ho-200M", "measured", ["default", "default-anew"]),
        ("V100-P1w2/ho-PCIe", "simulated", ["default"]),
        ("2080Ti-P1w2/ho-PCIe", "simulated", ["default"]),
    ],
)
def test_names_of_the_checkpoints_of_a_setting(
    program: ModuleType, setting: str, labels: str, names: list[str]
) -> None:
    """The first settings are trained anew, the others transferred; measured ones also anew."""
    dataset = of_setting(FIRST, setting)
    assert [name for name, _ in program.ways_of(dataset, "default", labels)] == names


def test_all_checkpoints_are_made(
    program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two settings: trained anew, carried over, trained anew to compare."""
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
    monkeypatch.setattr(
        sys, "argv", ["make_checkpoints.py", "--presets", "default", "--threads", "1"]
    )
    program.main()
    made = {
        str(file.relative_to(tmp_path)): load_checkpoint(file)
        for file in tmp_path.glob("CPU*/*.safetensors")
    }
    assert {name: one.setting for name, one in made.items()} == {
        "CPU-P1w2_ho-200M/default.safetensors": FIRST.setting,
        "CPU-P2w2_ho-200M/default.safetensors": OTHER.setting,
        "CPU-P2w2_ho-200M/default-anew.safetensors": OTHER.setting,
    }
    moved = made["CPU-P2w2_ho-200M/default.safetensors"].trained_on
    assert moved.transferred_from is not None
    assert moved.transferred_from.setting == FIRST.setting
