"""The arena's method `transferred`: neither setting sees the family that is held out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from driple.dataset import merge_examples
from driple.dataset.example import Dataset
from driple.dataset.lookup import read_labels
from driple.dataset.split import random_split
from driple.evaluation import transferred as moved
from driple.evaluation.benchmark import BenchmarkConfig, BenchmarkResult, SplitKind
from driple.evaluation.evaluate import run_benchmark
from driple.inspector.checkpoint import load_checkpoint
from driple.training.runfiles import CHECKPOINT_FILE
from tests.dataset.examples import of_setting, synthetic_dataset

DATASETS = Path(__file__).parents[2] / "datasets" / "settings"
MEASURED = (  # the first is the source
    "CPU-P1w2_ho-200M",
    "CPU-P1w2_he-200M",
    "CPU-P1w2_ho-400M",
    "CPU-P1w3_ho-200M",
    "CPU-P2w2_ho-200M",
    "CPU25-P1w2_ho-200M",
)
SOURCE = synthetic_dataset(24)
TARGET = of_setting(SOURCE, "CPU-P2w2/ho-200M")
FAMILY_OF = {item.workload: item.family for item in SOURCE.examples}


def arena(folder: Path, split: SplitKind = "family", source: Dataset = SOURCE) -> BenchmarkResult:
    config = BenchmarkConfig(methods=("transferred",), split=split, max_epochs=2, threads=1)
    return run_benchmark(TARGET, config, folder, source=source)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with all folds of the family split."""
    folder = tmp_path_factory.mktemp("moved")
    arena(folder)
    return folder


def no_training(*_: object, **__: object) -> None:
    raise AssertionError("something was trained again")


def told(result: BenchmarkResult) -> list[dict[str, list[float]]]:
    """Predictions of each fold."""
    return [dict(fold.predictions) for fold in result.folds]


def learned_from(run: Path) -> set[str]:
    """Workloads that a run has trained or validated on."""
    split = json.loads((run / "config.json").read_text())["run"]["split"]
    return {*split["train"], *split["validation"]}


def test_no_run_has_seen_the_family(work: Path) -> None:
    """Of each fold two runs, one on each setting, without a workload that it is tested on."""
    result = arena(work)
    for fold in result.folds:
        assert {FAMILY_OF[name] for name in fold.predictions} == {fold.family}
    seen = []
    for run in (work / "runs").iterdir():
        setting = load_checkpoint(run / CHECKPOINT_FILE).setting
        families = {FAMILY_OF[name] for name in learned_from(run)}
        assert len(families) == 1
        seen.append((setting, *families))
    assert sorted(seen) == sorted(
        (setting, family)
        for setting in (SOURCE.setting, TARGET.setting)
        for family in ("branch", "chain")
    )


def test_finished_folds_and_inspectors_are_not_made_again(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold is read; where only the fold is gone, its inspector is still there."""
    before = told(arena(work))
    monkeypatch.setattr(moved, "train", no_training)
    for file in (work / "folds").iterdir():
        file.unlink()
    assert told(arena(work)) == before
    monkeypatch.setattr(moved, "transfer", no_training)
    assert told(arena(work)) == before


def test_other_labels_of_the_source_are_another_fold(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moved, "train", no_training)
    changed = merge_examples(SOURCE, [replace(SOURCE.examples[0], iteration_time_s=3.0)])
    with pytest.raises(AssertionError, match="trained again"):
        arena(work, source=changed)


def test_a_random_split_starts_from_the_split_of_its_seed(tmp_path: Path) -> None:
    """What is tested here is tested there: the source has not learned from those graphs either."""
    (fold,) = arena(tmp_path, "random").folds
    runs = {
        load_checkpoint(run / CHECKPOINT_FILE).setting: learned_from(run)
        for run in (tmp_path / "runs").iterdir()
    }
    assert runs.keys() == {SOURCE.setting, TARGET.setting}
    for learned in runs.values():
        assert not learned & fold.predictions.keys()


def test_no_shipped_source_was_trained_on_a_graph_that_is_tested() -> None:
    """Random splits of one seed hold the same workloads out of two settings, or nearly so."""
    first, *others = (list(read_labels(DATASETS / name).targets) for name in MEASURED)
    for seed in range(5):
        source = random_split(first, seed)
        trained, tested = ({first[i] for i in rows} for rows in (source.train, source.test))
        for names in others:
            test = {names[i] for i in random_split(names, seed).test}
            assert not test & trained
            assert len(test & tested) >= 0.8 * len(test)
