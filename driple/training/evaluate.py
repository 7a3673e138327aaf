"""The arena: every method on every fold of a data set, by the same rules.

    Dataset + split + methods  ->  folds  --train, score-->  one JSON per fold  ->  ArenaResult

Entry point: `run_arena`. A method is a baseline (`baselines.BASELINES`) or a preset. A fold that is
done lies in `WORK/folds/` under a hash of all that decides it, and is read instead of trained
again; a fold that was killed goes on where it was (`WORK/runs/`). Several processes may share
a folder, as long as no two of them work on the same fold.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split, family_splits, random_split
from driple.errors import ConfigError
from driple.inputs import Groupings
from driple.training.arena import ArenaConfig, ArenaResult, Fold
from driple.training.baselines import BASELINES, Baseline
from driple.training.config import PRESETS, Preset
from driple.training.loop import RunOptions, train
from driple.training.metrics import score
from driple.training.runfiles import library_versions, make_folder, write_file
from driple.training.trainer import Progress

__all__ = ["ArenaProgress", "fold_key", "run_arena"]

FORMAT = 1  # of a fold's file; raise it when the same fold would come out otherwise


@dataclass(frozen=True, kw_only=True, slots=True)
class ArenaProgress:
    """How far the arena is: which fold, and how far the training of that fold."""

    method: str
    fold: str
    folds_done: int
    num_folds: int
    training: Progress | None


def run_arena(
    dataset: Dataset,
    config: ArenaConfig,
    work_dir: str | Path,
    *,
    presets: Mapping[str, Preset] = PRESETS,
    progress: Callable[[ArenaProgress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ArenaResult:
    """Train and score every method on every fold, or read what is done already.

    Args:
        dataset: examples of one setting.
        config: split, methods and overrides.
        work_dir: finished and unfinished folds; made if need be.
        presets: presets by method name.
        progress: called before and after each fold, and while it trains.
        clock: seconds from any start, for durations.

    Raises:
        ConfigError: an unknown method, a folder that cannot be written, a training that diverged.
        DatasetError: too few workloads or families for the split.
    """
    chosen = _presets(config, presets)
    mark = fingerprint(dataset)
    report = progress or (lambda _: None)
    folder = Path(work_dir)
    make_folder(folder / "folds")
    splits = list(_splits(dataset, config))
    total = len(splits) * len(config.methods)
    groupings = Groupings()  # the same in every fold
    folds: list[Fold] = []
    for method in config.methods:
        for name, split in splits:
            inform = _informer(report, method, name, len(folds), total)
            inform(None)
            key = fold_key(dataset, mark, split, method, chosen.get(method))
            done = _read_fold(folder / "folds" / f"{key}.json", method)
            if done is None:
                if method in chosen:
                    done = _train_fold(
                        dataset,
                        split,
                        chosen[method],
                        name=name,
                        run=folder / "runs" / key,
                        threads=config.threads,
                        groupings=groupings,
                        inform=inform,
                        clock=clock,
                    )
                else:
                    done = _baseline_fold(dataset, split, method, name, clock)
                stored = {**done.to_json_dict(), "versions": library_versions(), "format": FORMAT}
                text = json.dumps(stored, indent=1)
                write_file(folder / "folds" / f"{key}.json", text.encode() + b"\n")
            folds.append(replace(done, name=name))
    report(ArenaProgress(method="", fold="", folds_done=total, num_folds=total, training=None))
    return ArenaResult(
        config=config,
        data_set=dataset.name,
        setting=dataset.setting,
        fingerprint=mark,
        folds=tuple(folds),
        presets=chosen,
    )


def _presets(config: ArenaConfig, presets: Mapping[str, Preset]) -> dict[str, Preset]:
    """The presets among the methods, overrides applied."""
    chosen = {}
    for method in config.methods:
        if method in presets:
            settings = presets[method].train
            if config.max_epochs is not None:
                settings = replace(settings, max_epochs=config.max_epochs)
            if config.patience_epochs is not None:
                settings = replace(settings, patience_epochs=config.patience_epochs)
            chosen[method] = replace(presets[method], train=settings)
        elif method not in BASELINES:
            known = ", ".join([*BASELINES, *presets])
            raise ConfigError(f"--methods: {method!r} is none of {known}")
    return chosen


def _splits(dataset: Dataset, config: ArenaConfig) -> Iterator[tuple[str, Split]]:
    """Name and rows of each fold."""
    for seed in config.seeds:
        if config.split == "random":
            yield f"seed {seed}", random_split(dataset.workloads, seed)
        else:
            for family, split in family_splits(dataset.examples, seed):
                yield family if len(config.seeds) == 1 else f"{family}, seed {seed}", split


def fold_key(dataset: Dataset, mark: str, split: Split, method: str, preset: Preset | None) -> str:
    """Name of a fold's file and run: method, and a hash of all that decides the fold.

    Args:
        dataset: what is learned.
        mark: its fingerprint.
        split: its rows, which count by workload.
        method: baseline or preset.
        preset: with overrides applied; None for a baseline.
    """
    workloads = dataset.workloads
    parts = [
        sorted(workloads[i] for i in rows) for rows in (split.train, split.validation, split.test)
    ]
    decides = [FORMAT, mark, parts, preset.config_hash() if preset else method]
    digest = hashlib.sha256(json.dumps(decides).encode()).hexdigest()
    return f"{method}-{digest[:16]}"


def _read_fold(file: Path, method: str) -> Fold | None:
    """A finished fold; None if it has to be made."""
    if not file.exists():
        return None
    try:
        return replace(Fold.from_json_dict(json.loads(file.read_bytes())), method=method)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{file} is damaged ({error}); delete it, and run again") from error


def _train_fold(
    dataset: Dataset,
    split: Split,
    preset: Preset,
    *,
    name: str,
    run: Path,
    threads: int | None,
    groupings: Groupings,
    inform: Callable[[Progress | None], None],
    clock: Callable[[], float],
) -> Fold:
    result = train(
        dataset,
        split,
        preset,
        run,
        options=RunOptions(resume=True, progress=inform, threads=threads, clock=clock),
        groupings=groupings,
    )
    tested = zip(result.workloads["test"], result.predictions["test"], strict=True)
    return Fold(
        method=preset.name,
        name=name,
        scores=result.scores["test"],
        validation=result.scores["validation"],
        train_seconds=result.seconds,
        num_epochs=len(result.history),
        best_epoch=result.best_epoch,
        stopped_by=result.stopped_by,
        predictions={workload: row.tolist() for workload, row in tested},
    )


def _baseline_fold(
    dataset: Dataset, split: Split, method: str, name: str, clock: Callable[[], float]
) -> Fold:
    started = clock()
    baseline: Baseline = BASELINES[method]([dataset.examples[i] for i in split.train])
    seconds = clock() - started
    tested = [dataset.examples[i] for i in split.test]
    predicted = baseline.predict(tested)
    labels = dataset.targets()
    scores = score(
        predicted,
        labels[split.test],
        true_times_s=dataset.iteration_times_s()[split.test],
        train_labels=labels[split.train],
    )
    rows = zip(tested, predicted, strict=True)
    return Fold(
        method=method,
        name=name,
        scores=scores,
        validation=None,
        train_seconds=seconds,
        num_epochs=0,
        best_epoch=0,
        stopped_by="fit",
        predictions={example.workload: row.tolist() for example, row in rows},
    )


def _informer(
    report: Callable[[ArenaProgress], None], method: str, fold: str, done: int, total: int
) -> Callable[[Progress | None], None]:
    """A callback for one fold's training."""

    def inform(training: Progress | None) -> None:
        report(
            ArenaProgress(
                method=method, fold=fold, folds_done=done, num_folds=total, training=training
            )
        )

    return inform
