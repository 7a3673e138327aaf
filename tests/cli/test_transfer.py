"""`driple transfer` on the shipped data set, relabelled as another setting's."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.dataset import Dataset, read_dataset, write_dataset
from driple.targets import Targets
from tests.cli.test_main import ROOT, driple, refused

SETTING = "CPU25-P1w2/ho-200M"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every third workload of the shipped data, slower."""
    place = tmp_path_factory.mktemp("slow") / "set"
    found = read_dataset(ROOT / "datasets/CPU-P1w2_ho-200M")
    examples = tuple(
        replace(
            item,
            setting=SETTING,
            targets=Targets(item.targets.values * np.array([1.0, 1.5, 1.3])),
        )
        for item in found.examples[::3]
    )
    write_dataset(Dataset(name="slow", setting=SETTING, examples=examples, about={}), place)
    return place


def test_transfer_writes_a_checkpoint_and_tells_what_more_labels_would_bring(
    folder: Path, tmp_path: Path
) -> None:
    """Table and JSON; the same command again finds the runs done; the checkpoint predicts."""
    command = (
        *("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--dataset", folder),
        *("--workloads", 24, "--out", tmp_path / "run", "--threads", 1),
    )
    shown = driple(*command)
    assert shown.returncode == 0, shown.stderr
    assert "24, estimated" not in shown.stdout
    assert "48, estimated" in shown.stdout
    assert "twice the workloads" in shown.stdout
    found = json.loads(driple(*command, "--json").stdout)
    assert [item["workloads"] for item in found["learning_curve"]["points"]] == [12, 24]
    assert found["metrics"]["test_nrmse"] < 0.5
    graph = ROOT / "datasets/examples/resnet20.pbtxt"
    predicted = driple("predict", graph, "--checkpoint", found["checkpoint"], "--json")
    said = json.loads(predicted.stdout)
    assert said["setting"] == SETTING
    assert said["checkpoint"]["trained_on"]["transferred_from"]["setting"] == "CPU-P1w2/ho-200M"


def test_what_cannot_be_transferred_gets_one_line(folder: Path, tmp_path: Path) -> None:
    """Unknown settings, another setting's data, odd layers, too many workloads."""
    there = ("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--dataset", folder)
    lines = [
        refused("transfer", "--from", "V101", "--to", "CPU25-P1w2", "--dataset", folder),
        refused("transfer", "--from", "CPU-P1w2", "--to", "CPU-P2w2", "--dataset", folder),
        refused(*there, "--layers", "phi_x", "--out", tmp_path / "a"),
        refused(*there, "--tuned-share", 2, "--out", tmp_path / "a"),
        refused(*there, "--workloads", 500, "--out", tmp_path / "a"),
        refused(*there[:3], "--to", "CPU-P3w3"),
    ]
    assert all(lines)
    assert not (tmp_path / "a").exists()
