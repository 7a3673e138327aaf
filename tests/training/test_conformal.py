"""Ensembles with a cost law and intervals: trained, saved, predicted with and transferred."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from driple.dataset.split import random_split
from driple.inspector.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from driple.inspector.intervals import conformal_quantile
from driple.inspector.predict import predict
from driple.render.remarks import sentences
from driple.training.config import Preset, TrainConfig
from driple.training.conformal import family_groups, folds_of
from driple.training.runfiles import CHECKPOINT_FILE
from driple.training.train import RunOptions, TrainResult, train
from driple.training.transfer import TransferConfig, transfer
from tests.dataset.examples import chain_graph, synthetic_dataset
from tests.training.presets import small_preset
from tests.training.test_transfer import NEW

DATASET = synthetic_dataset(60)
SPLIT = random_split(DATASET.workloads, 0)
ONE_THREAD = RunOptions(threads=1)


def calibrated_preset() -> Preset:
    """Two small members, costs in features and context, corrections of the cost law, residuals."""
    preset = small_preset(base="costs", residuals="kernel", family_folds=2, max_epochs=6)
    return replace(
        preset,
        input=replace(preset.input, features="costs", context="costs"),
        inspector=replace(preset.inspector, members=2),
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[TrainResult, Path]:
    folder = tmp_path_factory.mktemp("calibrated")
    return train(DATASET, SPLIT, calibrated_preset(), folder, options=ONE_THREAD), folder


def test_the_saved_checkpoint_predicts_what_was_scored(
    trained: tuple[TrainResult, Path],
) -> None:
    """Law, ensemble, scales and residuals in NumPy give what torch gave in training."""
    result, folder = trained
    checkpoint = load_checkpoint(folder / CHECKPOINT_FILE)
    assert checkpoint.residuals is not None
    graph_of = {item.workload: item.graph for item in DATASET.examples}
    for name, expected in zip(result.workloads["test"], result.predictions["test"], strict=True):
        predicted = predict(graph_of[name], checkpoint).targets.flat
        np.testing.assert_allclose(predicted, expected, rtol=1e-4)


def test_intervals_come_from_the_validation_part_and_left_out_families(
    trained: tuple[TrainResult, Path],
) -> None:
    """The near half-width of a target is the quantile of its errors there, and of nothing else."""
    result, _ = trained
    intervals = result.checkpoint.intervals
    assert intervals is not None
    assert intervals.far is not None
    labels = dict(zip(DATASET.workloads, DATASET.targets(), strict=True))
    true = np.array([labels[name] for name in result.workloads["validation"]])
    errors = np.abs(np.log(result.predictions["validation"] / true))
    widest = conformal_quantile(errors)
    assert widest is not None
    np.testing.assert_allclose(intervals.near[:12], widest, rtol=1e-6)
    assert (intervals.far >= intervals.near).all()
    assert len(intervals.known) == len(SPLIT.train)


def test_a_graph_unlike_all_others_is_warned_of(trained: tuple[TrainResult, Path]) -> None:
    """A chain ten times as long: out of range, far, and with wider intervals than a usual one."""
    checkpoint = trained[0].checkpoint
    usual = predict(DATASET.examples[SPLIT.train[0]].graph, checkpoint)
    strange = predict(chain_graph(4000, bytes_per_node=10**9), checkpoint)
    assert sentences(usual.warnings) == ()
    words = " ".join(sentences(strange.warnings))
    assert "number of ops is 4000" in words
    assert "unlike every graph" in words
    assert usual.ends is not None
    assert strange.ends is not None
    widths = [
        np.log(one.ends[:, 1] / one.ends[:, 0]) for one in (usual, strange) if one.ends is not None
    ]
    assert (widths[1] >= widths[0] - 1e-9).all()
    assert widths[1].sum() > 1.5 * widths[0].sum()
    assert "extrapolated" in words
    assert strange.level is None
    shown = strange.to_json_dict()["interval"]
    assert isinstance(shown, dict)
    low, high = shown["targets"]["net_rx"]["burst_duration"]
    assert low < strange.targets.to_dict()["net_rx"]["burst_duration"] < high


def test_a_resumed_run_gives_the_same_checkpoint(
    trained: tuple[TrainResult, Path], tmp_path: Path
) -> None:
    """Family groups included: nothing is trained again, nothing is drawn anew."""
    folder = trained[1]
    before = load_checkpoint(folder / CHECKPOINT_FILE)
    options = RunOptions(threads=1, resume=True)
    again = train(DATASET, SPLIT, calibrated_preset(), folder, options=options).checkpoint
    _assert_same(before, again)


def test_members_differ_and_are_averaged(trained: tuple[TrainResult, Path]) -> None:
    """Two sets of weights, from different random numbers."""
    weights = trained[0].checkpoint.weights
    first, second = (weights[f"members.{i}.mlp.0.weight"] for i in (0, 1))
    assert not np.allclose(first, second)


def test_a_transfer_keeps_law_and_members_and_widens_intervals(
    trained: tuple[TrainResult, Path], tmp_path: Path
) -> None:
    """On a setting that is slower by a factor, with its own errors."""
    checkpoint = trained[0].checkpoint
    quick = TrainConfig(learning_rate=0.01, batch_size=4, max_epochs=4, patience_epochs=100)
    config = TransferConfig(layers=("mlp",), align=True, train=quick)
    split = random_split(NEW.workloads, 0)
    transferred = transfer(
        checkpoint, NEW, split, config, tmp_path / "run", options=ONE_THREAD
    ).checkpoint
    assert transferred.law == checkpoint.law
    assert transferred.intervals is not None
    assert transferred.intervals.far is not None
    assert (transferred.intervals.far >= transferred.intervals.near).all()
    frozen = "members.1.first.conv.linear.weight"
    np.testing.assert_array_equal(transferred.weights[frozen], checkpoint.weights[frozen])
    save_checkpoint(transferred, tmp_path / "made.safetensors")
    _assert_same(transferred, load_checkpoint(tmp_path / "made.safetensors"))


def test_every_label_is_left_out_once() -> None:
    """The shares of a transfer: test parts are disjoint and cover training and validation."""
    parts = [part for _, part in folds_of(SPLIT, 5, 0)]
    tested = np.concatenate([part.test for part in parts])
    assert sorted(tested) == sorted([*SPLIT.train, *SPLIT.validation])
    for part in parts:
        assert not set(part.test) & (set(part.train) | set(part.validation))


def test_families_stay_together() -> None:
    """Each in one group, groups of about the same size."""
    families = ["a"] * 5 + ["b"] * 3 + ["c"] * 3 + ["d"]
    groups = family_groups(families, 2)
    assert [sorted(group) for group in groups] == [["a", "d"], ["b", "c"]]
    assert family_groups(["a"], 5) == [{"a"}]


def _assert_same(checkpoint: Checkpoint, other: Checkpoint) -> None:
    """Weights and intervals, to the bit."""
    assert set(checkpoint.weights) == set(other.weights)
    for name, array in checkpoint.weights.items():
        np.testing.assert_array_equal(array, other.weights[name])
    assert checkpoint.intervals is not None
    assert other.intervals is not None
    np.testing.assert_array_equal(checkpoint.intervals.near, other.intervals.near)
    np.testing.assert_array_equal(checkpoint.intervals.known, other.intervals.known)
