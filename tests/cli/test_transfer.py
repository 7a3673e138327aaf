"""`driple transfer` on the shipped data set, relabelled as another setting's."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.cli.transfer import _check_new, _checkpoint, _config, _note_leakage
from driple.cluster.setting import Setting
from driple.dataset import Dataset, read_dataset, write_dataset
from driple.dataset.split import random_split
from driple.errors import CheckpointError
from driple.inspector.checkpoint_places import checkpoint_path
from driple.trace.targets import Targets
from tests.api.test_schema import errors_of
from tests.cli.test_main import ROOT, driple, refused

SETTING = "CPU25-P1w2/ho-200M"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every fourth workload of the shipped data, slower."""
    place = tmp_path_factory.mktemp("slow") / "set"
    dataset = read_dataset(ROOT / "datasets/settings/CPU-P1w2_ho-200M")
    examples = tuple(
        replace(
            item,
            setting=SETTING,
            targets=Targets(item.targets.values * np.array([1.0, 1.5, 1.3])),
        )
        for item in dataset.examples[::4]
    )
    write_dataset(Dataset(name="slow", setting=SETTING, examples=examples), place)
    return place


def test_transfer_writes_a_checkpoint_and_tells_what_more_labels_would_bring(
    folder: Path, tmp_path: Path
) -> None:
    """Table and JSON; the same command again finds the runs done; the checkpoint predicts."""
    command = (
        *("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--dataset", folder),
        *("--workloads", 40, "-o", tmp_path / "run", "--set", "threads=1"),
    )
    shown = driple(*command)
    assert shown.returncode == 0, shown.stderr
    assert "40, estimated" not in shown.stdout
    assert "80, estimated" in shown.stdout
    assert "twice the workloads: about" in shown.stdout
    assert "four times of five between" in shown.stdout
    result = json.loads(driple(*command, "--json").stdout)
    assert errors_of(result) == []
    assert [item["workloads"] for item in result["learning_curve"]["points"]] == [20, 40]
    assert result["no_learning_curve"] is None
    assert result["metrics"]["test_nrmse"] < 0.5
    graph = ROOT / "datasets/examples/resnet20.pbtxt"
    predicted = driple("predict", graph, "--checkpoint", result["checkpoint"], "--json")
    (said,) = json.loads(predicted.stdout)["answers"]
    assert said["setting"] == SETTING
    assert said["checkpoint"]["trained_on"]["transferred_from"]["setting"] == "CPU-P1w2/ho-200M"


def test_too_few_workloads_for_a_curve_are_told(folder: Path, tmp_path: Path) -> None:
    """One line for people, null and the reason for machines."""
    command = (
        *("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--dataset", folder),
        *("--workloads", 20, "-o", tmp_path / "run", "--set", "threads=1"),
    )
    reason = "no learning curve: it takes 40 workloads to learn from, here are 20"
    shown = driple(*command)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1].startswith(reason)
    result = json.loads(driple(*command, "--json").stdout)
    assert errors_of(result) == []
    assert result["learning_curve"] is None
    assert result["no_learning_curve"].startswith(reason)
    asked = json.loads(driple(*command, "--set", "curve=off", "--json").stdout)
    assert asked["no_learning_curve"] == "no learning curve: --set curve=off was given"


def test_too_few_or_too_many_workloads_are_refused(folder: Path, tmp_path: Path) -> None:
    """With the number needed; a small data set is taken whole, but its test part is not learned."""
    there = ("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "-o", tmp_path / "a")
    assert "--workloads" in refused(
        *there, "--dataset", folder, "--workloads", -1, "--set", "curve=off"
    )
    for few in (1, 5, 19):
        line = refused(*there, "--dataset", folder, "--workloads", few, "--set", "curve=off")
        assert f"--workloads {few} is too few: a transfer needs 20 or more" in line
    data = read_dataset(folder)
    small = replace(data, examples=data.examples[:20])
    write_dataset(small, tmp_path / "small")
    line = refused(*there, "--dataset", tmp_path / "small", "--workloads", 20)
    assert "of the 20 workloads" in line
    assert "16 are left to learn from" in line
    assert not (tmp_path / "a").exists()
    done = driple(*there, "--dataset", tmp_path / "small", "--set", "curve=off", "--json")
    assert done.returncode == 0, done.stderr
    trained = replace(small, examples=small.examples[:19])
    write_dataset(trained, tmp_path / "smaller")
    assert (
        "19 labels, a transfer needs 20"
        in driple(
            *there[:-1], tmp_path / "b", "--dataset", tmp_path / "smaller", "--set", "curve=off"
        ).stderr
    )


def test_the_preset_that_is_asked_for_is_the_one_that_is_carried(
    folder: Path, tmp_path: Path
) -> None:
    """A file of another preset is refused; one that is no preset is blamed, not the setting."""
    paper = ROOT / "checkpoints/CPU-P1w2_ho-200M/paper.safetensors"
    there = ("--to", "CPU25-P1w2", "--dataset", folder, "-o", tmp_path / "a")
    line = refused("transfer", "--from", paper, "--preset", "default", *there)
    assert "--preset default, but" in line
    assert "an inspector of preset paper" in line
    for source in (paper, "CPU-P1w2"):
        line = refused("transfer", "--from", source, "--preset", "papr", *there)
        assert "--preset must be one of paper, default, got 'papr'" in line
    assert not (tmp_path / "a").exists()
    for source, asked, given in (
        (str(paper), None, "paper"),
        (str(paper), "paper", "paper"),
        ("CPU-P1w2", None, "default"),
    ):
        assert _checkpoint(source, asked)[0].preset == given


def test_a_preset_that_is_not_shipped_is_refused_with_those_that_are() -> None:
    """The setting exists, so it is not to blame."""
    with pytest.raises(CheckpointError, match=r"no 'mine' checkpoint for V100.*: default, paper"):
        checkpoint_path(Setting.parse("V100"), "mine")


def test_a_preset_that_left_the_shipped_ones_is_refused_with_how_to_make_it() -> None:
    """One line names the presets that the setting has, and the command."""
    for command in (
        ("transfer", "--from", "2080Ti", "--to", "V100-P2w2", "--preset", "paper"),
        ("predict", ROOT / "datasets/examples/resnet50.pbtxt", "--setting", "2080Ti", "--set",
         "preset=paper"),
    ):  # fmt: skip
        line = refused(*command)
        assert "no 'paper' checkpoint for 2080Ti-P1w2/ho-PCIe (its presets are: default)" in line
        assert "driple train --setting 2080Ti-P1w2/ho-PCIe --preset paper" in line


def test_preset_paper_of_the_first_gpu_setting_is_carried_over(tmp_path: Path) -> None:
    """Its shipped checkpoint tunes a share of phi_r, which preset default leaves as it is."""
    stored = read_dataset(ROOT / "datasets/settings/2080Ti-P1w2_ho-PCIe")
    few = replace(stored, name="few", examples=stored.examples[::30])
    write_dataset(few, tmp_path / "few")
    done = driple(
        "transfer", "--from", "V100", "--to", "2080Ti", "--preset", "paper", "--dataset",
        tmp_path / "few", "--set", "threads=1", "--set", "curve=off", "-o", tmp_path / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    before, _ = _checkpoint("V100", "paper")
    after, _ = _checkpoint(str(tmp_path / "run/checkpoint.safetensors"), None)
    assert (after.setting, after.preset) == ("2080Ti-P1w2/ho-PCIe", "paper")
    assert after.num_tuned > 0
    weights = after.weights
    for name, values in before.weights.items():
        assert np.array_equal(weights[name], values) != name.startswith("mlp"), name
    phi_r = "conv.linear.weight"
    assert not np.array_equal(weights[f"tuned.{phi_r}"], before.weights[f"shared.{phi_r}"])


def test_another_split_than_the_sources_is_told_to_flatter(folder: Path, tmp_path: Path) -> None:
    """With how many of the tested workloads it has learned from; its own split needs no word."""
    command = (
        *("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--dataset", folder),
        *("--workloads", 20, "--set", "threads=1", "--set", "curve=off", "--json"),
    )
    done = driple(*command, "--set", "split_seed=1", "-o", tmp_path / "one")
    assert done.returncode == 0, done.stderr
    workloads = read_dataset(folder).workloads
    tested = {workloads[row] for row in random_split(workloads, 1).test}
    names = read_dataset(ROOT / "datasets/settings/CPU-P1w2_ho-200M").workloads
    learned = len(tested & {names[row] for row in random_split(names, 0).train})
    assert learned > 0
    knows = json.loads(done.stdout)["source_knows"]
    assert knows == {"tested": len(tested), "learned": learned, "recorded": False}
    (line,) = (line for line in done.stderr.splitlines() if "flattered" in line)
    assert f"up to {learned} of the {len(tested)} workloads that --set split_seed=1 tests" in line
    done = driple(*command, "-o", tmp_path / "usual")
    assert "flattered" not in done.stderr
    assert json.loads(done.stdout)["source_knows"]["learned"] == 0


def test_a_source_without_a_record_is_told_of_by_the_seed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If its data set is not there either; with the usual seed nothing is amiss."""
    checkpoint, file = _checkpoint("CPU-P1w2", None)
    lost = replace(checkpoint, trained_on=replace(checkpoint.trained_on, data_set="lost"))
    assert _note_leakage(lost, file, ["a"], 0) is None
    assert capsys.readouterr().err == ""
    assert _note_leakage(lost, file, ["a"], 2) is None
    assert "not on record; unless it was trained with --set split_seed=2" in capsys.readouterr().err


def test_a_setting_is_not_carried_to_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same labels are refused, others noted; measured ones on simulated ones are as usual."""
    line = refused("transfer", "--from", "CPU-P1w2", "--to", "CPU-P1w2", "-o", tmp_path / "a")
    assert "the inspector is of CPU-P1w2/ho-200M already" in line
    assert "data set CPU-P1w2_ho-200M itself; use it as it is" in line
    assert not (tmp_path / "a").exists()
    checkpoint, _ = _checkpoint("CPU-P1w2", None)
    dataset = read_dataset(ROOT / "datasets/settings/CPU-P1w2_ho-200M")
    data = Dataset(name="few", setting=dataset.setting, examples=dataset.examples[:3])
    _check_new(replace(checkpoint, provenance="simulated"), data)
    assert capsys.readouterr().err == ""
    _check_new(checkpoint, data)
    (note,) = capsys.readouterr().err.splitlines()
    assert "has learned from other measured labels of it; it is tuned on few" in note


def test_a_share_of_layers_that_are_not_tuned_is_refused(folder: Path, tmp_path: Path) -> None:
    """Named with what is tuned; where phi_r is tuned, the share is what was asked for."""
    there = ("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--dataset", folder)
    share = ("--set", "tuned_share=0.25", "-o", tmp_path / "a")
    line = refused(*there, *share)
    assert "--set tuned_share=0.25 has no effect" in line
    assert "preset default tunes mlp; leave it out" in line
    line = refused(*there, "--preset", "paper", "--set", "layers=readout,mlp", *share)
    assert "--set layers is readout,mlp; leave it out" in line
    assert not (tmp_path / "a").exists()
    assert _config("default", 0.25, "gru,mlp", None).tuned_share == 0.25
    assert _config("paper", 0.25, None, None).tuned_share == 0.25
    assert _config("default", None, None, None).tuned_share == 0.5


def test_what_cannot_be_transferred_gets_one_line(folder: Path, tmp_path: Path) -> None:
    """Unknown settings, another setting's data, odd layers, too many workloads."""
    there = ("transfer", "--from", "CPU-P1w2", "--to", "CPU25-P1w2", "--dataset", folder)
    lines = [
        refused("transfer", "--from", "V101", "--to", "CPU25-P1w2", "--dataset", folder),
        refused("transfer", "--from", "CPU-P1w2", "--to", "CPU-P2w2", "--dataset", folder),
        refused(*there, "--set", "layers=phi_x", "-o", tmp_path / "a"),
        refused(*there, "--set", "tuned_share=2", "-o", tmp_path / "a"),
        refused(*there, "--workloads", 500, "-o", tmp_path / "a"),
        refused(*there[:3], "--to", "CPU-P3w3"),
    ]
    assert all(lines)
    assert not (tmp_path / "a").exists()
