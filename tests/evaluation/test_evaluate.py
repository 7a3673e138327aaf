"""The arena: the same rules for all, nothing trained twice, overrides shown."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.codec import to_dict
from driple.dataset import merge_examples, random_split
from driple.dataset.lookup import StoredLabels
from driple.errors import ConfigError
from driple.evaluation import evaluate
from driple.evaluation.benchmark import (
    ALL,
    NRMSE,
    SMAPE,
    TIME,
    TRAINING,
    BenchmarkConfig,
    BenchmarkResult,
    Fold,
    TableRow,
)
from driple.evaluation.evaluate import BenchmarkProgress, run_benchmark
from driple.evaluation.foldfiles import read_fold, write_fold
from driple.features import grouping_cache as groupings
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import load_checkpoint
from driple.trace.targets import TARGET_NAMES, Targets
from tests.dataset.examples import synthetic_dataset
from tests.training.presets import overfit_preset, small_preset

DATASET = synthetic_dataset()
SMALL = {"small": small_preset(max_epochs=3)}
BASELINES = ("mean", "knn", "trees", "forest", "simulator")
# A simulator that is always right.
SIMULATED = StoredLabels(
    DATASET.setting, {item.workload: item.targets.flat for item in DATASET.examples}
)
CONFIG = BenchmarkConfig(methods=("mean", "small"), seeds=(0, 1), threads=1)


def arena(folder: Path, config: BenchmarkConfig = CONFIG, **options: object) -> BenchmarkResult:
    return run_benchmark(DATASET, config, folder, presets=SMALL, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with finished folds of two seeds."""
    folder = tmp_path_factory.mktemp("arena")
    arena(folder)
    return folder


def said(result: BenchmarkResult) -> dict[str, Any]:
    """The JSON without training times: a mean is fitted anew each time, and takes as long."""
    result_json: dict[str, Any] = json.loads(
        json.dumps(to_dict(result.to_json_dict())),
        object_hook=lambda item: {k: v for k, v in item.items() if k != "train_seconds"},
    )
    return result_json


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
    assert said(after) == said(before)
    with pytest.raises(AssertionError, match="trained again"):
        arena(work, replace(CONFIG, seeds=(0, 1, 2)))


def test_another_dataset_or_configuration_is_another_fold(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A changed label, preset or override is never answered from an old fold."""
    monkeypatch.setattr(evaluate, "train", no_training)
    changed = merge_examples(DATASET, [replace(DATASET.examples[0], iteration_time_s=3.0)])
    with pytest.raises(AssertionError):
        run_benchmark(changed, CONFIG, work, presets=SMALL)
    with pytest.raises(AssertionError):
        arena(work, replace(CONFIG, max_epochs=2))
    with pytest.raises(AssertionError):
        run_benchmark(DATASET, CONFIG, work, presets={"small": small_preset(max_epochs=3, seed=9)})


def test_the_order_of_rows_does_not_count(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same data set in another order finds its folds."""
    monkeypatch.setattr(evaluate, "train", no_training)
    turned = replace(DATASET, examples=DATASET.examples[::-1])
    result = run_benchmark(turned, CONFIG, work, presets=SMALL)
    assert said(result) == said(arena(work))


def test_a_fold_that_was_killed_goes_on(tmp_path: Path) -> None:
    """What was trained before the kill is not trained again."""

    class StopError(Exception):
        pass

    epochs: list[int] = []

    def watch(progress: BenchmarkProgress) -> None:
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
    for fold, other in zip(alone, together, strict=True):
        assert fold.predictions == other.predictions
        assert fold.scores.record() == other.scores.record()
    weights = [
        sorted(folder.glob("runs/*/checkpoint.safetensors"))
        for folder in (tmp_path / "0", tmp_path / "1", tmp_path / "both")
    ]
    weights_alone = [
        load_checkpoint(file).weights for file in sorted(weights[0] + weights[1], key=named)
    ]
    wanted = [load_checkpoint(file).weights for file in sorted(weights[2], key=named)]
    for a, b in zip(weights_alone, wanted, strict=True):
        assert all(a[name].tobytes() == b[name].tobytes() for name in b)


def named(file: Path) -> str:
    """The run's folder, which is named after all that decides it."""
    return file.parent.name


def test_family_folds_hold_out_each_family(tmp_path: Path) -> None:
    """One fold per family, tested on all of it."""
    result = arena(tmp_path, BenchmarkConfig(split="family", methods=("mean",)))
    assert [fold.name for fold in result.folds] == ["branch, seed 0", "chain, seed 0"]
    assert [fold.family for fold in result.folds] == ["branch", "chain"]
    assert [fold.scores.num_workloads for fold in result.folds] == [6, 6]
    two = arena(tmp_path, BenchmarkConfig(split="family", methods=("mean",), seeds=(0, 1)))
    assert [(fold.seed, fold.family) for fold in two.folds][2:] == [(1, "branch"), (1, "chain")]


def test_a_trained_inspector_beats_the_mean(tmp_path: Path) -> None:
    """On labels that follow from the graphs, learning helps."""
    presets = {"small": overfit_preset()}
    config = replace(CONFIG, seeds=(0,))
    result = run_benchmark(synthetic_dataset(30), config, tmp_path, presets=presets)
    assert result.summary("small").mean_nrmse < 0.5 * result.summary("mean").mean_nrmse


def test_the_result_shows_everything(work: Path) -> None:
    """Rows for each target, all of them, times; spreads over seeds; overrides in the JSON."""
    result = arena(work, replace(CONFIG, max_epochs=1, patience_epochs=1))
    rows = {(row.section, row.name): row for row in result.rows()}
    for section in (NRMSE, SMAPE):
        names = [name for where, name in rows if where == section]
        assert names == [*TARGET_NAMES, ALL]
        means = [rows[section, name].values["small"].mean for name in TARGET_NAMES]
        assert rows[section, ALL].values["small"].mean == pytest.approx(np.mean(means))
    assert [name for where, name in rows if where == TIME] == ["mean", "median"]
    of_seeds = [fold.scores.mean_nrmse for fold in result.folds_of("small")]
    spread = rows[NRMSE, ALL].values["small"]
    assert spread.mean == pytest.approx(np.mean(of_seeds))
    assert spread.std == pytest.approx(abs(of_seeds[0] - of_seeds[1]) / np.sqrt(2))
    stored = json.loads(json.dumps(to_dict(result.to_json_dict())))
    assert stored["overrides"] == {"max_epochs": 1, "patience_epochs": 1}
    small = stored["methods"]["small"]
    assert small["config"]["train"]["max_epochs"] == 1
    assert [fold["epochs"] for fold in small["folds"]] == [1, 1]
    assert stored["methods"]["mean"]["config"] is None
    assert small["mean"]["nrmse"] == pytest.approx(result.summary("small").mean_nrmse)
    assert small["std_over_seeds"]["nrmse"] == pytest.approx(spread.std)


def test_the_median_of_iteration_times_by_hand(work: Path) -> None:
    """Over all workloads of a seed, whatever the folds."""
    result = arena(work, replace(CONFIG, methods=("mean",), seeds=(0,), split="family"))
    errors = []
    for fold in result.folds:
        for name, row in fold.predictions.items():
            true = DATASET.examples[DATASET.workloads.index(name)].iteration_time_s
            predicted_s = max(
                row[7] + row[8], row[10] + row[11]
            )  # burst + idle of net_tx, of net_rx
            errors.append(100 * abs(predicted_s - true) / true)
    (median_row,) = [row for row in result.rows() if (row.section, row.name) == (TIME, "median")]
    assert len(errors) == len(DATASET.examples)
    assert median_row.values["mean"].mean == pytest.approx(np.median(errors))
    assert median_row.values["mean"].std is None


def test_the_best_is_the_smallest(work: Path) -> None:
    """Row by row; training time has no best, nor has a method that is alone."""
    result = run_benchmark(DATASET, replace(CONFIG, methods=BASELINES), work, simulated=SIMULATED)
    best = set()
    for row in result.rows():
        means = {method: spread.mean for method, spread in row.values.items()}
        if row.section == TRAINING:
            assert row.best is None
        else:
            assert row.best is not None
            assert means[row.best] == min(means.values())
            best.add(row.best)
    assert best == {"simulator"}  # whose labels are those of the data set here
    alone = run_benchmark(DATASET, replace(CONFIG, methods=("mean",)), work)
    assert {row.best for row in alone.rows()} == {None}


def test_methods_are_compared_on_the_seeds_that_all_have(work: Path) -> None:
    """A seed that only one method has is in its own mean, and does not make it the best."""
    full = run_benchmark(DATASET, replace(CONFIG, methods=("mean", "trees"), seeds=(0, 1, 2)), work)
    errors = {seed.seed: seed.scores.mean_smape_pct for seed in full.by_seed("mean")}
    left = {fold.seed: fold for fold in full.folds_of("mean")}
    hard = max(errors, key=lambda seed: errors[seed])
    # The mean predictor under another name, without the seed on which it errs most.
    easy = [replace(fold, method="trees") for seed, fold in left.items() if seed != hard]
    result = replace(full, folds=(*left.values(), *easy))
    assert hard not in result.common_seeds(("mean", "trees"))
    assert len(result.common_seeds(("mean", "trees"))) == 2
    (row,) = [row for row in result.rows() if (row.section, row.name) == (SMAPE, ALL)]
    assert row.values["mean"].mean > row.values["trees"].mean
    assert row.by_seed["mean"] == errors
    assert row.by_seed["trees"] == {seed: errors[seed] for seed in errors if seed != hard}
    assert row.best == "mean"  # a tie: the first
    common = result.to_json_dict()["common_seeds"]
    assert list(common) == [seed for seed in errors if seed != hard]
    apart = replace(result, folds=(left[hard], *easy))
    assert {row.best for row in apart.rows()} == {None}


def test_a_method_with_fewer_seeds_does_not_hide_the_others() -> None:
    """Those that have more are compared on all of theirs, it with the best on those it has."""

    def best(short: float) -> str | None:
        by_seed = {"short": {0: short}, "even": {0: 3.0, 1: 3.0}, "late": {0: 4.0, 1: 1.0}}
        return TableRow(section=SMAPE, name=ALL, by_seed=by_seed).best

    assert best(9.0) == "late"  # 2.5 against 3.0, though not on seed 0
    assert best(4.0) == "late"  # its mean is larger, and on seed 0 it is no better
    assert best(3.9) == "short"


def test_no_baseline_sees_a_test_label(work: Path, tmp_path: Path) -> None:
    """Another label in the test part changes no prediction; one in the training part does."""
    split = random_split(DATASET.workloads, 0)
    config = replace(CONFIG, methods=BASELINES[:-1], seeds=(0,))

    def predictions(changed: str | None) -> list[dict[str, list[float]]]:
        rows = [] if changed is None else getattr(split, changed).tolist()
        new = [
            replace(item, targets=Targets(5 * item.targets.values), iteration_time_s=7.0)
            for item in (DATASET.examples[i] for i in rows)
        ]
        folder = work if changed is None else tmp_path / changed
        return [
            fold.predictions
            for fold in run_benchmark(merge_examples(DATASET, new), config, folder).folds
        ]

    before = predictions(None)
    assert predictions("test") == before
    assert predictions("validation") == before
    after = predictions("train")
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_instant_methods_leave_no_files_and_the_others_are_read(tmp_path: Path) -> None:
    """Trees are stored under all that decides them: another summary is another fold."""
    config = replace(CONFIG, methods=BASELINES, seeds=(0,))
    first = run_benchmark(DATASET, config, tmp_path, simulated=SIMULATED)
    files = sorted(file.name.split("-")[0] for file in (tmp_path / "folds").iterdir())
    assert files == ["forest", "trees"]
    again = run_benchmark(DATASET, config, tmp_path, simulated=SIMULATED, stored_only=True)
    assert [fold.predictions for fold in again.folds] == [fold.predictions for fold in first.folds]
    example = DATASET.examples[0]
    assert isinstance(example.graph, OpGraph)
    remote = (replace(example.graph.remote[0], num_nodes=99),)
    other = merge_examples(DATASET, [replace(example, graph=replace(example.graph, remote=remote))])
    result = run_benchmark(other, config, tmp_path, simulated=SIMULATED, stored_only=True)
    assert set(result.methods) == {"mean", "knn", "simulator"}


def test_only_whole_seeds_are_read(tmp_path: Path) -> None:
    """With `stored_only` nothing is made, and a seed that lacks a family does not count."""
    config = BenchmarkConfig(split="family", methods=("mean", "forest"), seeds=(0, 1))
    run_benchmark(DATASET, config, tmp_path)
    assert run_benchmark(DATASET, config, tmp_path, stored_only=True).methods == ("mean", "forest")
    files = list((tmp_path / "folds").iterdir())
    assert len(files) == 4
    files[0].unlink()
    result = run_benchmark(DATASET, config, tmp_path, stored_only=True)
    assert [len(result.by_seed(method)) for method in result.methods] == [2, 1]
    assert len(list((tmp_path / "folds").iterdir())) == 3


def test_folds_are_gzipped_json(work: Path) -> None:
    """Every finished fold is a readable file that gives the fold back."""
    files = sorted((work / "folds").iterdir())
    assert files
    for file in files:
        stored = json.loads(gzip.decompress(file.read_bytes()))
        seed = int(stored["fold"].removeprefix("seed "))
        record = read_fold(file)
        assert record is not None
        again = Fold.of_record(record, seed=seed, family="")
        assert to_dict(again.record(stored["versions"])) == stored
        assert "torch" in stored["versions"]


def test_a_damaged_fold_is_refused(tmp_path: Path) -> None:
    """It is not taken for an unfinished one, nor overwritten."""
    config = replace(CONFIG, methods=("forest",), seeds=(0,))
    arena(tmp_path, config)
    (file,) = (tmp_path / "folds").iterdir()
    file.write_bytes(gzip.compress(b"{}"))
    with pytest.raises(ConfigError, match=r"is damaged.*; delete it, and run again"):
        arena(tmp_path, config)


def test_bad_options_are_refused(tmp_path: Path) -> None:
    """Each line names the flag."""
    with pytest.raises(ConfigError, match="--against: 'best' is none of all, mean, knn"):
        arena(tmp_path, replace(CONFIG, methods=("best",)))
    with pytest.raises(ConfigError, match="--split must be one of random, family"):
        BenchmarkConfig(methods=("mean",), split="half")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="--set seeds needs"):
        BenchmarkConfig(methods=("mean",), seeds=())
    with pytest.raises(ConfigError, match="--against needs"):
        BenchmarkConfig(methods=("mean", "mean"))


def test_progress_names_the_fold(work: Path) -> None:
    """Each fold is announced, and the end."""
    seen: list[BenchmarkProgress] = []
    arena(work, progress=seen.append)
    assert [(p.method, p.fold, p.folds_done) for p in seen] == [
        ("mean", "seed 0", 0),
        ("mean", "seed 1", 1),
        ("small", "seed 0", 2),
        ("small", "seed 1", 3),
        ("", "", 4),
    ]


def test_errors_of_a_stored_fold_are_made_of_its_predictions(tmp_path: Path) -> None:
    """So that a number that is worked out otherwise one day needs no training."""
    config = replace(CONFIG, methods=("trees",), seeds=(0,), split="random")
    (fold,) = arena(tmp_path, config).folds
    (file,) = (tmp_path / "folds").glob("trees-*.json.gz")
    stored = read_fold(file)
    assert stored is not None
    wrong = replace(stored, test=replace(stored.test, iteration_time_mape_pct=1e6))
    write_fold(file, wrong)
    (again,) = arena(tmp_path, config).folds
    assert again.scores.iteration_time_mape_pct == pytest.approx(
        fold.scores.iteration_time_mape_pct, rel=1e-4
    )
    fewer = dict(list(stored.predictions.items())[1:])
    write_fold(file, replace(stored, predictions=fewer))
    with pytest.raises(ConfigError, match="other workloads"):
        arena(tmp_path, config)


def _folds(folder: Path) -> dict[str, dict[str, Any]]:
    """Stored folds by file, without how long they took."""
    read = {file.name: json.loads(gzip.decompress(file.read_bytes())) for file in folder.iterdir()}
    return {
        name: {k: v for k, v in fold.items() if "seconds" not in k} for name, fold in read.items()
    }


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_folds_made_at_the_same_time_are_those_made_in_turn(engine: str, tmp_path: Path) -> None:
    """Trained and fitted ones, in processes and on Ray; the next run trains nothing."""
    config = replace(CONFIG, methods=("mean", "forest", "small"), seeds=(0,))
    in_turn = arena(tmp_path / "turn", config)
    seen: list[int] = []
    together = arena(
        tmp_path / "both",
        config,
        processes=2,
        engine=engine,
        progress=lambda now: seen.append(now.folds_done),
    )
    assert said(together) == said(in_turn)
    assert _folds(tmp_path / "both" / "folds") == _folds(tmp_path / "turn" / "folds")
    assert seen[:3] == [0, 1, 2]


def test_folds_at_the_same_time_need_a_number_of_threads(tmp_path: Path) -> None:
    config = replace(CONFIG, threads=None)
    for options in ({"processes": 2}, {"engine": "ray"}):
        with pytest.raises(ConfigError, match="give --set threads=1 too"):
            arena(tmp_path, config, **options)
