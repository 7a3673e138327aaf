"""Training and evaluating from the command line, on the shipped data, for a few epochs."""

import json
from pathlib import Path

import pytest

from driple.dataset.store import read_dataset
from driple.inspector.checkpoint import load_checkpoint
from tests.cli.test_main import ROOT, driple, refused

DATASET = ROOT / "datasets/CPU-P1w2_ho-200M"
DOCS = ROOT / "docs"


def test_train_resumes_and_its_checkpoint_predicts(tmp_path: Path) -> None:
    """Three epochs; the same command again finds the run done and says the same."""
    command = ("train", "--setting", "cpu", "--out", tmp_path / "run", "--max-epochs", 3, "--json")
    first, second = driple(*command), driple(*command)
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    found = json.loads(first.stdout)
    assert set(found["metrics"]) >= {"test_nrmse", "test_smape_pct", "validation_nrmse"}
    shown = driple(
        "predict", ROOT / "datasets/examples/resnet20.pbtxt", "--checkpoint", found["checkpoint"]
    )
    assert shown.returncode == 0, shown.stderr
    assert "net_rx" in shown.stdout


def test_another_seed_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    """A folder holds one run."""
    command = ("train", "--setting", "cpu", "--out", tmp_path / "run", "--max-epochs", 1)
    assert driple(*command).returncode == 0
    done = driple(*command, "--seed", 1)
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("driple: ")


def test_evaluate_compares_methods(tmp_path: Path) -> None:
    """JSON and table; a capped preset is called so."""
    command = ("evaluate", "--methods", "mean,default", "--work", tmp_path, "--max-epochs", 2)
    done = driple(*command, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["methods"]) == {"mean", "default"}
    assert found["overrides"]["max_epochs"] == 2
    table = driple(*command)
    assert "device_util.burst_amount" in table.stdout
    assert "presets were changed by --max-epochs 2" in table.stderr


def test_bad_options_of_training_get_one_line(tmp_path: Path) -> None:
    """Unknown methods, splits and presets, bad numbers, data sets that are none."""
    refused_lines = [
        refused("evaluate", "--split", "alphabet"),
        refused("evaluate", "--seeds", 0),
        refused("train", "--setting", "cpu", "--preset", "papre"),
        refused("train", "--setting", "cpu", "--max-epochs", 0),
        refused("train", "--setting", "cpu", "--dataset", tmp_path),
    ]
    assert all(refused_lines)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_shipped_checkpoints_belong_to_the_shipped_data(preset: str) -> None:
    """Trained on this very data set, and no better or worse than they say."""
    checkpoint = load_checkpoint(ROOT / f"checkpoints/CPU-P1w2_ho-200M/{preset}.safetensors")
    dataset = read_dataset(DATASET)
    assert checkpoint.setting == dataset.setting
    assert checkpoint.trained_on["data_set"] == dataset.name
    assert checkpoint.trained_on["num_workloads"] == len(dataset.examples)
    assert 0 < checkpoint.metrics["test_nrmse"] < 1


def shipped_nrmse(*options: object) -> dict[str, float]:
    """Average NRMSE by method, out of the shipped folds; nothing is trained."""
    done = driple("evaluate", "--work", DOCS / "evaluation", "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["methods"]
    text = (DOCS / "evaluation.md").read_text()
    for method in found.values():
        for value in method["mean"]["nrmse_by_target"].values():
            assert f"{value:.4f}" in text, "docs/evaluation.md is old; run its script"
    return {name: method["mean"]["nrmse"] for name, method in found.items()}


def test_default_is_at_most_half_as_wrong_as_the_mean_and_better_than_paper() -> None:
    """The goal of the first data set, on the shipped folds of the random split."""
    nrmse = shipped_nrmse("--methods", "mean,paper,default")
    assert nrmse["default"] <= nrmse["mean"] / 2
    assert nrmse["default"] < nrmse["paper"]


def test_default_knows_something_of_families_it_has_never_seen() -> None:
    """The family split, on the shipped folds."""
    nrmse = shipped_nrmse("--split", "family", "--methods", "mean,default")
    assert nrmse["default"] < nrmse["mean"]
