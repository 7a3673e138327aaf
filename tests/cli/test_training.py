"""Training and evaluating from the command line, on the shipped data, for a few epochs."""

import csv
import json
from pathlib import Path

import pytest

from driple.dataset.store import read_dataset
from driple.inspector.checkpoint import load_checkpoint
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple, refused

DATASET = ROOT / "datasets/settings/CPU-P1w2_ho-200M"
SMALL = "CPU-P1w2/ho-400M"  # 120 workloads
FOLDS = ROOT / "datasets/runs/evaluation"
ERRORS = ROOT / "scripts/studies/accuracy/errors.csv"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[object, ...], str]:
    """A command that trains for three epochs, and what it printed."""
    folder = tmp_path_factory.mktemp("trained")
    command = ("train", "--setting", SMALL, "-o", folder, "--set", "max_epochs=3", "--json")
    done = driple(*command)
    assert done.returncode == 0, done.stderr
    return command, done.stdout


def test_train_resumes_and_its_checkpoint_predicts(trained: tuple[tuple[object, ...], str]) -> None:
    """The same command again finds the run done and says the same."""
    command, printed = trained
    assert driple(*command).stdout == printed
    result = json.loads(printed)
    assert errors_of(result) == []
    assert set(result["metrics"]) >= {"test_nrmse", "test_smape_pct", "validation_nrmse"}
    shown = driple(
        "predict", ROOT / "datasets/examples/resnet20.pbtxt", "--checkpoint", result["checkpoint"]
    )
    assert shown.returncode == 0, shown.stderr
    assert "net_rx" in shown.stdout


def test_another_seed_in_the_same_folder_is_refused(
    trained: tuple[tuple[object, ...], str],
) -> None:
    """A folder holds one run."""
    done = driple(*trained[0], "--set", "seed=1")
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("driple: ")


def test_evaluate_compares_methods(tmp_path: Path) -> None:
    """JSON and table; a capped preset is called so; the best of a row is marked."""
    command = ("evaluate", "--setting", SMALL, "-o", tmp_path, "--set", "max_epochs=2")
    command = (*command, "--against", "mean,default,simulator")
    done = driple(*command, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert errors_of(result) == []
    assert set(result["methods"]) == {"mean", "default", "simulator"}
    assert result["overrides"]["max_epochs"] == 2
    table = driple(*command)
    assert "device_util.burst_amount" in table.stdout
    assert "presets were changed by --set max_epochs=2" in table.stderr
    lines = [line for line in table.stdout.splitlines() if line.startswith("  all 12")]
    for line, section in zip(lines, ("nrmse", "smape_pct"), strict=True):
        errors = {name: method["mean"][section] for name, method in result["methods"].items()}
        best = f"{min(errors.values()):.{4 if section == 'nrmse' else 1}f}*"
        assert (line.count("*"), line.count(best)) == (1, 1)


def test_evaluate_shows_where_the_error_is(tmp_path: Path) -> None:
    """Families, error over floor, ten workloads."""
    command = ("evaluate", "--setting", SMALL, "-o", tmp_path, "--against", "forest")
    done = driple(*command, "--json")
    assert done.returncode == 0, done.stderr
    whole = json.loads(done.stdout)
    assert errors_of(whole) == []
    where = whole["where"]
    assert len(where["worst"]) == 10
    assert where["over_floor"]["all 12"]["ratio"] > 0.7
    assert where["num_repeated_workloads"] == 12
    shown = driple(*command).stdout
    assert where["worst"][0]["workload"] in shown
    assert "error over floor" in shown


def test_bad_options_of_training_get_one_line(tmp_path: Path) -> None:
    """Unknown methods, splits and presets, bad numbers, data sets that are none."""
    refused_lines = [
        refused("evaluate", "--split", "alphabet"),
        refused("evaluate", "--set", "seeds=0"),
        refused("evaluate", "--setting", SMALL, "--against", "best"),
        refused(
            "evaluate",
            "--setting",
            "V100",
            "--dataset",
            ROOT / "datasets/settings/CPU-P1w3_ho-200M",
        ),
        refused("evaluate", "--setting", SMALL, "--set", f"simulated={tmp_path}"),
        refused("train", "--setting", "cpu", "--preset", "papre"),
        refused("train", "--setting", "cpu", "--set", "max_epochs=0"),
        refused("train", "--setting", "cpu", "--dataset", tmp_path),
    ]
    assert all(refused_lines)


def test_a_data_set_of_another_setting_is_refused(tmp_path: Path) -> None:
    """Else the checkpoint would be of the data set's setting, whatever was asked for."""
    folder = tmp_path / "run"
    line = refused("train", "--setting", "2080Ti", "--dataset", DATASET, "-o", folder)
    assert "--setting 2080Ti-P1w2/ho-PCIe, but data set" in line
    assert "is of CPU-P1w2/ho-200M" in line
    assert not folder.exists()


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_shipped_checkpoints_belong_to_the_shipped_data(preset: str) -> None:
    """Trained on this very data set, and no better or worse than they say."""
    checkpoint = load_checkpoint(ROOT / f"checkpoints/CPU-P1w2_ho-200M/{preset}.safetensors")
    dataset = read_dataset(DATASET)
    assert checkpoint.setting == dataset.setting
    assert checkpoint.trained_on.data_set == dataset.name
    assert checkpoint.trained_on.num_workloads == len(dataset.examples)
    assert 0 < checkpoint.metrics["test_nrmse"] < 1


def shipped(*options: object) -> dict[str, dict[str, dict[str, float]]]:
    """Means and deviations by method, out of the shipped folds; nothing is trained."""
    done = driple("evaluate", "-o", FOLDS, "--json", *options)
    assert done.returncode == 0, done.stderr
    methods: dict[str, dict[str, dict[str, float]]] = json.loads(done.stdout)["methods"]
    return methods


def test_default_is_at_most_half_as_wrong_as_the_mean_and_better_than_paper() -> None:
    """The goal of the first data set, on the shipped folds of the random split."""
    methods = shipped("--against", "mean,paper,default")
    nrmse = {name: method["mean"]["nrmse"] for name, method in methods.items()}
    assert nrmse["default"] <= nrmse["mean"] / 2
    assert nrmse["default"] < nrmse["paper"]


def test_default_knows_something_of_families_it_has_never_seen() -> None:
    """The family split, on the shipped folds."""
    methods = shipped("--split", "family", "--against", "mean,default")
    assert methods["default"]["mean"]["nrmse"] < methods["mean"]["mean"]["nrmse"]


def test_baselines_beat_the_mean_and_the_study_has_their_errors() -> None:
    """Random splits of five seeds on shipped folds, with the figures of study accuracy."""
    methods = shipped("--setting", SMALL, "--set", "seeds=5", "--against", "mean,knn,trees,forest")
    with ERRORS.open(newline="") as file:
        stored = {
            (row["method"], row["error"], row["target"]): f"{row['mean']} ± {row['std']}"
            for row in csv.DictReader(file)
            if (row["setting"], row["split"]) == (SMALL, "random")
        }
    for name, method in methods.items():
        mean, std = method["mean"], method["std_over_seeds"]
        if name != "mean":
            assert mean["nrmse"] < 0.8 * methods["mean"]["mean"]["nrmse"]
            assert mean["smape_pct"] < 0.8 * methods["mean"]["mean"]["smape_pct"]
        for key, kind, digits in (
            ("nrmse", ("NRMSE", "all 12"), 4),
            ("smape_pct", ("SMAPE %", "all 12"), 1),
            ("iteration_time_median_pct", ("iteration time error %", "median"), 1),
        ):
            shown = f"{mean[key]:.{digits}f} ± {std[key]:.{digits}f}"
            assert stored[name, *kind] == shown, "run scripts.studies.accuracy.run again"
