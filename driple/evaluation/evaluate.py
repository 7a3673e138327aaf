"""The benchmark: every method on every fold of a data set, by the same rules.

    Dataset + split + methods  ->  folds  --train, score-->  one JSON per fold  ->  BenchmarkResult

Entry point: `run_benchmark`. A method is one of `methods.py`; simulated values are passed in as
labels, since this layer does not simulate. A finished fold is stored in `WORK/folds/` under a hash
of everything that determines it, and is read instead of trained again; a killed fold resumes
(`WORK/runs/`). Methods with a fast fit are not stored. Several processes, or nodes of Ray, may make
different folds at the same time.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.lookup import StoredLabels
from driple.engine.engine import Engine, open_engine
from driple.errors import ConfigError
from driple.evaluation.baselines import BASELINES, ON_SUMMARIES, SETTINGS, limited_threads
from driple.evaluation.benchmark import BenchmarkConfig, BenchmarkResult, Fold
from driple.evaluation.foldfiles import (
    fold_file,
    fold_key,
    read_fold,
    write_fold,
)
from driple.evaluation.methods import SIMULATOR, TRANSFERRED, choose_methods
from driple.evaluation.places import FoldPlace, places_of
from driple.evaluation.summary import Summaries
from driple.evaluation.transferred import TransferredMethod
from driple.features import Groupings
from driple.training.config import PRESETS, Preset
from driple.training.loop import Progress
from driple.training.metrics import Scores, score
from driple.training.runfiles import library_versions, make_folder
from driple.training.train import RunOptions, TrainResult, train

__all__ = ["BenchmarkProgress", "run_benchmark"]

FloatArray = npt.NDArray[np.float64]

# Fitted in less time than a file takes to read.
_INSTANT = frozenset({"mean", "knn", SIMULATOR})


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkProgress:
    """Progress of a benchmark: the fold, and the progress of its training."""

    method: str
    fold: str
    folds_done: int
    num_folds: int
    training: Progress | None


def run_benchmark(
    dataset: Dataset,
    config: BenchmarkConfig,
    work_dir: str | Path,
    *,
    presets: Mapping[str, Preset] = PRESETS,
    simulated: StoredLabels | None = None,
    source: Dataset | None = None,
    summaries: Summaries | None = None,
    stored_only: bool = False,
    processes: int = 1,
    engine: str = "local",
    progress: Callable[[BenchmarkProgress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> BenchmarkResult:
    """Train and score every method on every fold, or read finished folds.

    Args:
        dataset: examples of one setting.
        config: split, methods and overrides.
        work_dir: folder of finished and unfinished folds; created if missing.
        presets: presets by method name.
        simulated: simulated labels of the workloads, for the method `simulator`.
        source: labels of the setting that the method `transferred` starts from.
        summaries: cache of summaries, shared by benchmarks on the same graphs.
        stored_only: train nothing; leave out seeds with a missing fold.
        processes: how many folds are made at the same time.
        engine: `local` or `ray`.
        progress: called before and after each fold, and while it trains.
        clock: seconds from any start, for durations.

    Raises:
        ConfigError: a method that is unknown or does not apply, a folder that cannot be written, a
            training that diverged.
        DatasetError: too few workloads or families for the split.
        EngineError: workers die over and over.
    """
    if (processes > 1 or engine != "local") and config.threads is None:
        raise ConfigError(
            "folds that are made at the same time need a number of threads, on which the weights "
            "of an inspector depend; give --set threads=1 too"
        )
    choose_methods(
        dataset, ",".join(config.methods), simulated=simulated, source=source, presets=presets
    )
    benchmark = _Benchmark(
        dataset=dataset,
        config=config,
        folder=Path(work_dir),
        presets=_presets(config, presets),
        simulated=simulated,
        source=source,
        summarised=summaries or Summaries(),
        clock=clock,
    )
    make_folder(benchmark.folder / "folds")
    report = progress or (lambda _: None)
    places = list(places_of(dataset, config))
    total = len(places) * len(config.methods)
    if not stored_only and (processes > 1 or engine != "local"):
        with open_engine(engine, workers=processes) as running:
            _make_together(benchmark, places, running, report)
    folds: list[Fold] = []
    done = 0
    for method in config.methods:
        for seed in config.seeds:
            all_folds: list[Fold | None] = []
            for place in places:
                if place.seed != seed:
                    continue
                inform = _informer(report, method, place.name, done, total)
                inform(None)
                all_folds.append(benchmark.fold(method, place, inform, stored_only=stored_only))
                done += 1
            complete = [fold for fold in all_folds if fold is not None]
            if len(complete) == len(all_folds):
                folds += complete
    report(BenchmarkProgress(method="", fold="", folds_done=total, num_folds=total, training=None))
    return BenchmarkResult(
        config=config,
        dataset=dataset,
        fingerprint=benchmark.mark,
        folds=tuple(folds),
        presets=benchmark.presets,
    )


def _make_together(
    benchmark: _Benchmark,
    places: Sequence[FoldPlace],
    engine: Engine,
    report: Callable[[BenchmarkProgress], None],
) -> None:
    """Make and store all folds that are missing and take long, several at a time."""
    wanted = [(m, p) for m in benchmark.config.methods if m not in _INSTANT for p in places]
    todo = [task for task in wanted if benchmark.stored(*task) is None]
    done, total = len(wanted) - len(todo), len(wanted)
    inform = partial(BenchmarkProgress, method="", fold="", num_folds=total, training=None)
    report(inform(folds_done=done))
    for task, fold in zip(todo, engine.stream(_made, benchmark, todo), strict=True):
        benchmark.store(*task, fold)
        done += 1
        report(inform(folds_done=done))


def _made(benchmark: _Benchmark, task: tuple[str, FoldPlace]) -> Fold:
    """A fold, in a worker."""
    return benchmark.made(*task, lambda _: None)


def _presets(config: BenchmarkConfig, presets: Mapping[str, Preset]) -> dict[str, Preset]:
    """The presets among the methods, overrides applied."""
    chosen = {}
    for method in config.methods:
        if method in presets:
            changed = config.overridden(presets[method].train)
            chosen[method] = replace(presets[method], train=changed)
    return chosen


@dataclass(kw_only=True)
class _Benchmark:
    """Data that all folds share."""

    dataset: Dataset
    config: BenchmarkConfig
    folder: Path
    presets: dict[str, Preset]
    simulated: StoredLabels | None
    source: Dataset | None
    summarised: Summaries
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self.mark = fingerprint(self.dataset)
        self.groupings = Groupings()  # the same in every fold
        self.labels = self.dataset.targets()
        self.times_s = self.dataset.iteration_times_s()

    @cached_property
    def summaries(self) -> FloatArray:
        """Shape [num_examples, F]; made when the first method asks for them."""
        return self.summarised.of(self.dataset.examples)

    def fold(
        self,
        method: str,
        place: FoldPlace,
        inform: Callable[[Progress | None], None],
        *,
        stored_only: bool,
    ) -> Fold | None:
        """A finished fold, trained if needed; None if it is missing and `stored_only` is set."""
        if method in _INSTANT:
            return self._fitted(method, place)
        done = self.stored(method, place)
        if done is not None or stored_only:
            return done
        self.store(method, place, self.made(method, place, inform))
        return self.stored(method, place)  # with the digits that the next run reads

    def stored(self, method: str, place: FoldPlace) -> Fold | None:
        """A fold that is done; None if it has to be made."""
        return self._read(self._file(method, place), method, place)

    def made(
        self, method: str, place: FoldPlace, inform: Callable[[Progress | None], None]
    ) -> Fold:
        """A fold, trained or fitted."""
        if method in {*self.presets, TRANSFERRED}:
            run = self.folder / "runs" / self._key(method, place)
            return self._trained(method, place, run, inform)
        return self._fitted(method, place)

    def store(self, method: str, place: FoldPlace, fold: Fold) -> None:
        """Write a fold for the next time."""
        write_fold(self._file(method, place), fold.record(library_versions()))

    def _file(self, method: str, place: FoldPlace) -> Path:
        return fold_file(self.folder, self._key(method, place))

    def _key(self, method: str, place: FoldPlace) -> str:
        decides = self._decides(method, place)
        return fold_key(self.dataset, self.mark, place.split, method, decides)

    def _read(self, file: Path, method: str, place: FoldPlace) -> Fold | None:
        """A fold that is done; errors on its test part are made of its predictions anew.

        Those on the validation part stay as they were stored, and compare epochs alone.
        """
        fold = _read_fold(file, method, place)
        if fold is None:
            return None
        wanted = [self.dataset.workloads[i] for i in place.split.test]
        if sorted(wanted) != sorted(fold.predictions):
            raise ConfigError(f"{file} is of other workloads; delete it, and run again")
        rows = np.array([fold.predictions[name] for name in wanted], dtype=np.float64)
        return replace(fold, scores=self._scores(rows, place))

    def _scores(self, predicted: FloatArray, place: FoldPlace) -> Scores:
        """Errors on the test part of a fold."""
        test = place.split.test
        return score(
            predicted,
            self.labels[test],
            true_times_s=self.times_s[test],
            train_labels=self.labels[place.split.train],
        )

    @cached_property
    def transferred(self) -> TransferredMethod:
        """Inspectors of the other setting."""
        if self.source is None:  # choose_methods has refused the method
            raise ConfigError(f"{TRANSFERRED} starts from another setting; give its data set")
        return TransferredMethod(
            source=self.source,
            preset=PRESETS["default"],
            config=self.config,
            work_dir=self.folder,
            groupings=self.groupings,
        )

    def _decides(self, method: str, place: FoldPlace) -> str:
        """Everything that determines a method's folds, apart from the data set and the split."""
        if method == TRANSFERRED:
            return self.transferred.decides(place.seed, place.family)
        if method in self.presets:
            return self.presets[method].config_hash()
        # Rounded: logarithms differ in the last digit between machines.
        rows = zip(self.dataset.workloads, self.summaries, strict=True)
        seen = sorted([name, [f"{value:.6g}" for value in row]] for name, row in rows)
        decides = json.dumps([method, dict(SETTINGS[method]), seen])
        return hashlib.sha256(decides.encode()).hexdigest()

    def _fitted(self, method: str, place: FoldPlace) -> Fold:
        """A fold of a baseline or of the simulator."""
        test, seconds = place.split.test, 0.0
        if method == SIMULATOR and self.simulated is not None:
            known = self.simulated.targets
            predicted = np.array([known[self.dataset.workloads[i]] for i in test])
        else:
            with limited_threads(self.config.threads):
                # By name: the order of a data set's rows changes nothing.
                rows = sorted(place.split.train, key=lambda i: self.dataset.workloads[i])
                seen = self.summaries if method in ON_SUMMARIES else self.labels[:, :0]
                started = self.clock()
                predict = BASELINES[method](seen[rows], self.labels[rows])
                seconds = self.clock() - started
                predicted = predict(seen[test])
        return Fold(
            method=method,
            seed=place.seed,
            family=place.family,
            scores=self._scores(predicted, place),
            validation=None,
            train_seconds=seconds,
            num_epochs=0,
            best_epoch=0,
            stopped_by="fit",
            predictions=_rounded((self.dataset.workloads[i] for i in test), predicted),
        )

    def _trained(
        self,
        method: str,
        place: FoldPlace,
        run: Path,
        inform: Callable[[Progress | None], None],
    ) -> Fold:
        options = RunOptions(
            resume=True, progress=inform, threads=self.config.threads, clock=self.clock
        )
        result = self._result(method, place, run, options)
        return Fold(
            method=method,
            seed=place.seed,
            family=place.family,
            scores=result.scores["test"],
            validation=result.scores["validation"],
            train_seconds=result.seconds,
            num_epochs=len(result.history),
            best_epoch=result.best_epoch,
            stopped_by=result.stopped_by,
            predictions=_rounded(result.workloads["test"], result.predictions["test"]),
            uncertainty=result.uncertainty,
        )

    def _result(self, method: str, place: FoldPlace, run: Path, options: RunOptions) -> TrainResult:
        data, split = self.dataset, place.split
        if method == TRANSFERRED:
            return self.transferred.fold(
                data, split, run, seed=place.seed, family=place.family, options=options
            )
        preset = self.presets[method]
        return train(data, split, preset, run, options=options, groupings=self.groupings)


def _rounded(workloads: Iterable[str], predicted: FloatArray) -> dict[str, list[float]]:
    """Predictions by workload, to the six digits that are stored."""
    return {
        name: [float(f"{value:.6g}") for value in row]
        for name, row in zip(workloads, predicted, strict=True)
    }


def _read_fold(file: Path, method: str, place: FoldPlace) -> Fold | None:
    """A finished fold; None if it has to be made."""
    stored = read_fold(file)
    if stored is None:
        return None
    fold = Fold.of_record(stored, seed=place.seed, family=place.family)
    return replace(fold, method=method)


def _informer(
    report: Callable[[BenchmarkProgress], None], method: str, fold: str, done: int, total: int
) -> Callable[[Progress | None], None]:
    """A callback for one fold's training."""

    def inform(training: Progress | None) -> None:
        report(
            BenchmarkProgress(
                method=method, fold=fold, folds_done=done, num_folds=total, training=training
            )
        )

    return inform
