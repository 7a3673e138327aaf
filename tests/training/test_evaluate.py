"""The arena: the same rules for all, nothing trained twice, overrides shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.dataset import merge_examples, random_split
from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.inputs import groupings
from driple.inspector.checkpoint import load_checkpoint
from driple.targets import TARGET_NAMES
from driple.training import evaluate
from driple.training.arena import ArenaConfig, ArenaResult, Fold
from driple.training.evaluate import ArenaProgress, run_arena
from tests.dataset.examples import synthetic_dataset
from tests.training.presets import overfit_preset, small_preset

DATASET = synthetic_dataset()
SMALL = {"small": small_preset(max_epochs=3)}
CONFIG = ArenaConfig(methods=("mean", "small"), seeds=(0, 1), threads=1)


def arena(folder: Path, config: ArenaConfig = CONFIG, **options: object) -> ArenaResult:
    return run_arena(DATASET, config, folder, presets=SMALL, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with four finished folds."""
    folder = tmp_path_factory.mktemp("arena")
    arena(folder)
    return folder


def no_training(*_: object, **__: object) -> None:
    raise AssertionError("a finished fold was trained again")


def test_the_mean_predictor_by_hand(work: Path) -> None:
    """Its NRMSE and SMAPE of one target, computed here from the labels."""
    fold = arena(work).folds_of("mean")[0]
    split = random_split(DATASET.workloads, 0)
    train_labels, true = DATASET.targets()[split.train, 6], DATASET.targets()[split.test, 6]
    guess = train_labels.mean()
    rmse = np.sqrt(np.mean((guess - true) ** 2))
    assert fold.scores.nrmse[6] == pytest.approx(rmse / train_labels.max())
    smape = 100 * np.mean(np.abs(guess - true) / ((guess + true) / 2))
    assert fold.scores.smape_pct[6] == pytest.approx(smape)
    assert fold.predictions.keys() == {DATASET.workloads[i] for i in split.test}


def test_finished_folds_are_read(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second arena trains nothing and says the same; one more seed trains one more fold."""
    before = arena(work)
    monkeypatch.setattr(evaluate, "train", no_training)
    after = arena(work)
    assert after.to_json_dict() == before.to_json_dict()
    with pytest.raises(AssertionError, match="trained again"):
        arena(work, replace(CONFIG, seeds=(0, 1, 2)))


def test_another_dataset_or_configuration_is_another_fold(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed label, preset or override is never answered from an old fold."""
    monkeypatch.setattr(evaluate, "train", no_training)
    changed = merge_examples(DATASET, [replace(DATASET.examples[0], iteration_time_s=3.0)])
    with pytest.raises(AssertionError):
        run_arena(changed, CONFIG, work, presets=SMALL)
    with pytest.raises(AssertionError):
        arena(work, replace(CONFIG, max_epochs=2))
    with pytest.raises(AssertionError):
        run_arena(DATASET, CONFIG, work, presets={"small": small_preset(max_epochs=3, seed=9)})


def test_the_order_of_rows_does_not_count(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same data set in another order finds its folds."""
    monkeypatch.setattr(evaluate, "train", no_training)
    turned = replace(DATASET, examples=DATASET.examples[::-1])
    found = run_arena(turned, CONFIG, work, presets=SMALL)
    assert found.to_json_dict() == arena(work).to_json_dict()


def test_a_fold_that_was_killed_goes_on(tmp_path: Path) -> None:
    """What was trained before the kill is not trained again."""

    class StopError(Exception):
        pass

    epochs: list[int] = []

    def watch(progress: ArenaProgress) -> None:
        training = progress.training
        if training is not None and training.stage == "epochs":
            epochs.append(training.done)
            if training.done == 2 and len(epochs) == 2:
                raise StopError

    config = replace(CONFIG, methods=("small",), seeds=(0,))
    ticks = iter(range(0, 10**6, 60))  # a state is saved every 30 s: after every epoch
    with pytest.raises(StopError):
        arena(tmp_path, config, progress=watch, clock=lambda: float(next(ticks)))
    arena(tmp_path, config, progress=watch)
    assert epochs == [1, 2, 3]


def test_graphs_are_grouped_once_for_all_folds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folds that share their groupings give what each gives on its own, to the bit."""
    config = replace(CONFIG, methods=("small",))
    alone = [
        arena(tmp_path / f"{seed}", replace(config, seeds=(seed,))).folds[0] for seed in (0, 1)
    ]
    grouped: list[int] = []
    group_nodes = groupings.group_nodes

    def watched(graph: OpGraph, *rest: Any) -> Any:
        grouped.append(id(graph))
        return group_nodes(graph, *rest)

    monkeypatch.setattr(groupings, "group_nodes", watched)
    together = arena(tmp_path / "both", config).folds
    assert sorted(grouped) == sorted({id(item.graph) for item in DATASET.examples})
    for one, other in zip(alone, together, strict=True):
        assert one.predictions == other.predictions
        assert one.scores.to_json_dict() == other.scores.to_json_dict()
    weights = [
        sorted(folder.glob("runs/*/checkpoint.safetensors"))
        for folder in (tmp_path / "0", tmp_path / "1", tmp_path / "both")
    ]
    found = [load_checkpoint(file).weights for file in sorted(weights[0] + weights[1], key=named)]
    wanted = [load_checkpoint(file).weights for file in sorted(weights[2], key=named)]
    for a, b in zip(found, wanted, strict=True):
        assert all(a[name].tobytes() == b[name].tobytes() for name in b)


def named(file: Path) -> str:
    """The run's folder, which is named after all that decides it."""
    return file.parent.name


def test_family_folds_hold_out_each_family(tmp_path: Path) -> None:
    """One fold per family, tested on all of it."""
    result = arena(tmp_path, ArenaConfig(split="family", methods=("mean",)))
    assert [fold.name for fold in result.folds] == ["branch", "chain"]
    assert [fold.scores.num_workloads for fold in result.folds] == [6, 6]
    two = arena(tmp_path, ArenaConfig(split="family", methods=("mean",), seeds=(0, 1)))
    assert [fold.name for fold in two.folds][:2] == ["branch, seed 0", "chain, seed 0"]


def test_a_trained_inspector_beats_the_mean(tmp_path: Path) -> None:
    """On labels that follow from the graphs, learning helps."""
    presets = {"small": overfit_preset()}
    config = replace(CONFIG, seeds=(0,))
    result = run_arena(synthetic_dataset(30), config, tmp_path, presets=presets)
    assert result.summary("small").mean_nrmse < 0.5 * result.summary("mean").mean_nrmse


def test_the_result_shows_everything(work: Path) -> None:
    """Rows for each target, all of them and the iteration time; overrides in the JSON."""
    result = arena(work, replace(CONFIG, max_epochs=1, patience_epochs=1))
    rows = {row.name: row for row in result.rows()}
    assert list(rows) == [*TARGET_NAMES, "all 12", "iteration_time"]
    means = [rows[name].nrmse["small"] for name in TARGET_NAMES]
    assert rows["all 12"].nrmse["small"] == pytest.approx(np.mean(means))
    assert rows["iteration_time"].nrmse == {"mean": None, "small": None}
    stored = json.loads(json.dumps(result.to_json_dict(), allow_nan=False))
    assert stored["overrides"] == {"max_epochs": 1, "patience_epochs": 1}
    small = stored["methods"]["small"]
    assert small["config"]["train"]["max_epochs"] == 1
    assert [fold["epochs"] for fold in small["folds"]] == [1, 1]
    assert stored["methods"]["mean"]["config"] is None
    assert small["mean"]["nrmse"] == pytest.approx(result.summary("small").mean_nrmse)


def test_folds_are_json(work: Path) -> None:
    """Every finished fold is a readable file that gives the fold back."""
    files = sorted((work / "folds").iterdir())
    assert files
    for file in files:
        stored = json.loads(file.read_text())
        assert Fold.from_json_dict(stored).to_json_dict().items() <= stored.items()
        assert "torch" in stored["versions"]


def test_a_damaged_fold_is_refused(tmp_path: Path) -> None:
    """It is not taken for an unfinished one, nor overwritten."""
    config = replace(CONFIG, methods=("mean",), seeds=(0,))
    arena(tmp_path, config)
    (file,) = (tmp_path / "folds").iterdir()
    file.write_text("{}")
    with pytest.raises(ConfigError, match=r"is damaged .*; delete it, and run again"):
        arena(tmp_path, config)


def test_bad_options_are_refused(tmp_path: Path) -> None:
    """Each line names the flag."""
    with pytest.raises(ConfigError, match="--methods: 'best' is none of mean, small"):
        arena(tmp_path, replace(CONFIG, methods=("best",)))
    with pytest.raises(ConfigError, match="--split must be one of random, family"):
        ArenaConfig(split="half")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="--seeds needs"):
        ArenaConfig(seeds=())
    with pytest.raises(ConfigError, match="--methods needs"):
        ArenaConfig(methods=("mean", "mean"))


def test_progress_names_the_fold(work: Path) -> None:
    """Each fold is announced, and the end."""
    seen: list[ArenaProgress] = []
    arena(work, progress=seen.append)
    assert [(p.method, p.fold, p.folds_done) for p in seen] == [
        ("mean", "seed 0", 0),
        ("mean", "seed 1", 1),
        ("small", "seed 0", 2),
        ("small", "seed 1", 3),
        ("", "", 4),
    ]
