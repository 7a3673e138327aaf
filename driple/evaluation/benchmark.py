"""The benchmark's results: folds, means over seeds, the table, the JSON.

    BenchmarkConfig  ->  Fold, Fold, ...  ->  BenchmarkResult  ->  rows of a table, JSON

`evaluate.py` fills these in. Pure: no files, no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from driple.checks import check_choice
from driple.dataset.example import Dataset
from driple.errors import ConfigError
from driple.evaluation.foldfiles import FoldRecord
from driple.trace.targets import TARGET_NAMES
from driple.training.config import Preset, TrainConfig
from driple.training.metrics import Scores, mean_scores, time_errors_pct
from driple.training.uncertainty import Coverage, Uncertainty, coverage_of

if TYPE_CHECKING:
    from driple.evaluation.json_types import BenchmarkJson, BenchmarkMethodJson, ScoreTableJson

__all__ = [
    "ALL",
    "NRMSE",
    "SMAPE",
    "TIME",
    "TRAINING",
    "BenchmarkConfig",
    "BenchmarkResult",
    "Fold",
    "ScoreSpread",
    "SeedScores",
    "SplitKind",
    "TableRow",
]

SplitKind = Literal["random", "family"]

# Sections of the table, and the rows over all targets.
NRMSE, SMAPE, TIME, TRAINING = "NRMSE", "SMAPE %", "iteration time error %", "training"
ALL = "all 12"
_DIGITS = {NRMSE: 4, SMAPE: 1, TIME: 1, TRAINING: 1}


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkConfig:
    """Configuration of a benchmark: methods and splits.

    Attributes:
        methods: names of baselines or presets, `simulator`, or `transferred`.
        split: `random`: one fold per seed; `family`: one fold per seed and model family.
        seeds: seeds of the splits; each method keeps its own seed for weights and batches.
        max_epochs: overrides the presets' own, to save time; shown in the result.
        patience_epochs: likewise.
        threads: CPU threads of training; None keeps torch's setting.

    Raises:
        ConfigError: an invalid value; the message names the flag.
    """

    methods: tuple[str, ...]
    split: SplitKind = "random"
    seeds: tuple[int, ...] = (0,)
    max_epochs: int | None = None
    patience_epochs: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        check_choice("--split", self.split, get_args(SplitKind))
        for flag, values in (("--set seeds", self.seeds), ("--against", self.methods)):
            if not values or len(set(values)) != len(values):
                raise ConfigError(f"{flag} needs one value or more, each once, got {values!r}")

    def overridden(self, settings: TrainConfig) -> TrainConfig:
        """Training configuration, with the benchmark's replacements."""
        if self.max_epochs is not None:
            settings = replace(settings, max_epochs=self.max_epochs)
        if self.patience_epochs is not None:
            settings = replace(settings, patience_epochs=self.patience_epochs)
        return settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Fold:
    """Result of one method on one fold, for the test part unless noted.

    Attributes:
        method: name of the baseline or preset, or `simulator`.
        seed: random seed of the split.
        family: held-out family; empty on random splits.
        scores: errors on the test part.
        validation: errors on the validation part; None for methods that do not use it.
        train_seconds: wall time of training.
        num_epochs: epochs trained; 0 for methods without.
        best_epoch: epoch of the weights that were scored.
        stopped_by: `patience`, `max_epochs`, or `fit` for methods without epochs.
        predictions: targets by workload, in the order of `TARGET_NAMES`.
        uncertainty: intervals and warnings of its predictions; None for methods without intervals.
    """

    method: str
    seed: int
    family: str
    scores: Scores
    validation: Scores | None
    train_seconds: float
    num_epochs: int
    best_epoch: int
    stopped_by: str
    predictions: dict[str, list[float]]
    uncertainty: Uncertainty | None = None

    @property
    def name(self) -> str:
        """Family that was held out, and seed."""
        return f"{self.family}, seed {self.seed}" if self.family else f"seed {self.seed}"

    def record(self, versions: Mapping[str, str]) -> FoldRecord:
        """Form that is stored.

        Args:
            versions: versions of what made it, by name.
        """
        return FoldRecord(
            method=self.method,
            fold=self.name,
            test=self.scores.record(),
            validation=None if self.validation is None else self.validation.record(),
            train_seconds=self.train_seconds,
            epochs=self.num_epochs,
            best_epoch=self.best_epoch,
            stopped_by=self.stopped_by,
            predictions=self.predictions,
            sureness=None if self.uncertainty is None else self.uncertainty.rounded(),
            versions=versions,
        )

    @classmethod
    def of_record(cls, stored: FoldRecord, *, seed: int, family: str) -> Fold:
        """The inverse of `record`, of a fold whose place is known."""
        return cls(
            method=stored.method,
            seed=seed,
            family=family,
            scores=stored.test.scores(),
            validation=None if stored.validation is None else stored.validation.scores(),
            train_seconds=stored.train_seconds,
            num_epochs=stored.epochs,
            best_epoch=stored.best_epoch,
            stopped_by=stored.stopped_by,
            predictions=stored.predictions,
            uncertainty=stored.sureness,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SeedScores:
    """One method on all folds of one seed.

    Attributes:
        seed: random seed of the split.
        scores: mean over the seed's folds, each fold counting the same.
        time_median_pct: median absolute error of the iteration time over all tested workloads.
        train_seconds: seconds of one training, mean over the folds.
    """

    seed: int
    scores: Scores
    time_median_pct: float
    train_seconds: float

    def numbers(self) -> dict[tuple[str, str], float]:
        """Cells of the table, by section and name."""
        nrmse, smape_pct = self.scores.nrmse.tolist(), self.scores.smape_pct.tolist()
        return {
            **{(NRMSE, name): error for name, error in zip(TARGET_NAMES, nrmse, strict=True)},
            (NRMSE, ALL): self.scores.mean_nrmse,
            **{(SMAPE, name): error for name, error in zip(TARGET_NAMES, smape_pct, strict=True)},
            (SMAPE, ALL): self.scores.mean_smape_pct,
            (TIME, "mean"): self.scores.iteration_time_mape_pct,
            (TIME, "median"): self.time_median_pct,
            (TRAINING, "seconds"): self.train_seconds,
        }


@dataclass(frozen=True, slots=True)
class ScoreSpread:
    """A number over the seeds.

    Attributes:
        mean: over the seeds.
        std: standard deviation (n - 1); None with a single seed.
    """

    mean: float
    std: float | None

    @classmethod
    def of(cls, values: list[float]) -> ScoreSpread:
        """Mean and deviation of one value or more."""
        std = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), std)

    def to_text(self, digits: int) -> str:
        """Text such as `12.3 ± 0.4`."""
        spread = "" if self.std is None else f" ± {self.std:.{digits}f}"
        return f"{self.mean:.{digits}f}{spread}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One line of the table: what is compared, and each method's number.

    Attributes:
        section: `NRMSE`, `SMAPE %`, `iteration time error %` or `training`.
        name: target, `all 12`, `mean`, `median` or `seconds`.
        by_seed: errors by method and seed; the smaller the better.
    """

    section: str
    name: str
    by_seed: dict[str, dict[int, float]]

    @property
    def values(self) -> dict[str, ScoreSpread]:
        """Results by method, over all its seeds."""
        return {method: self._over(method, seeds) for method, seeds in self.by_seed.items()}

    @property
    def best(self) -> str | None:
        """The method with the smallest mean; None where no two methods share a seed.

        Methods with the most seeds come first; one with fewer takes over if it is better than the
        best so far on the seeds that both have, and a tie leaves the first. Training time is not
        what methods are judged by, so it has no best.
        """
        if self.section == TRAINING or len(self.by_seed) < 2:
            return None
        best, *others = sorted(self.by_seed, key=lambda method: -len(self.by_seed[method]))
        compared = False
        for method in others:
            shared = [seed for seed in self.by_seed[method] if seed in self.by_seed[best]]
            if shared:
                compared = True
                if self._over(method, shared).mean < self._over(best, shared).mean:
                    best = method
        return best if compared else None

    def _over(self, method: str, seeds: Iterable[int]) -> ScoreSpread:
        return ScoreSpread.of([self.by_seed[method][seed] for seed in seeds])

    def to_text(self, method: str) -> str:
        """A method's number and its spread."""
        return self._over(method, self.by_seed[method]).to_text(_DIGITS[self.section])


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkResult:
    """All folds of all methods.

    Attributes:
        config: configuration of the benchmark.
        dataset: name of the data set.
        fingerprint: hash of its contents.
        folds: method by method, seed by seed, fold by fold; seeds that are there are complete.
        presets: the presets as they were trained, overrides applied.
    """

    config: BenchmarkConfig
    dataset: Dataset
    fingerprint: str
    folds: tuple[Fold, ...]
    presets: dict[str, Preset]

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods with folds, in the order asked for."""
        there = {fold.method for fold in self.folds}
        return tuple(method for method in self.config.methods if method in there)

    def folds_of(self, method: str) -> tuple[Fold, ...]:
        """All folds of one method."""
        return tuple(fold for fold in self.folds if fold.method == method)

    def seeds_of(self, method: str) -> tuple[int, ...]:
        """Seeds with folds of one method."""
        return tuple(dict.fromkeys(fold.seed for fold in self.folds_of(method)))

    def common_seeds(self, methods: Iterable[str]) -> tuple[int, ...]:
        """Seeds that all of these methods have, and on which they can be compared."""
        seeds = [self.seeds_of(method) for method in methods]
        return tuple(seed for seed in self.config.seeds if seeds and all(seed in s for s in seeds))

    def by_seed(self, method: str) -> list[SeedScores]:
        """Errors of one method on each seed."""
        times_s = {item.workload: item.iteration_time_s for item in self.dataset.examples}
        folds = self.folds_of(method)
        scores = []
        for seed in self.seeds_of(method):
            mine = [fold for fold in folds if fold.seed == seed]
            rows = {name: row for fold in mine for name, row in fold.predictions.items()}
            errors = time_errors_pct(
                np.array(list(rows.values()), dtype=np.float64),
                np.array([times_s[name] for name in rows]),
            )
            scores.append(
                SeedScores(
                    seed=seed,
                    scores=mean_scores([fold.scores for fold in mine]),
                    time_median_pct=float(np.median(errors)),
                    train_seconds=float(np.mean([fold.train_seconds for fold in mine])),
                )
            )
        return scores

    def coverage(self, method: str) -> Coverage | None:
        """Share of a method's intervals that contained the label; None if a fold of it has none."""
        folds = [(fold.uncertainty, fold.predictions) for fold in self.folds_of(method)]
        known = [(uncertainty, rows) for uncertainty, rows in folds if uncertainty is not None]
        if not known or len(known) < len(folds):
            return None
        return coverage_of(
            known,
            {item.workload: item.targets.flat for item in self.dataset.examples},
            {item.workload: item.iteration_time_s for item in self.dataset.examples},
            {item.workload: item.family for item in self.dataset.examples},
        )

    def summary(self, method: str) -> Scores:
        """Mean errors of one method over its seeds, each seed counting the same."""
        return mean_scores([seed.scores for seed in self.by_seed(method)])

    def rows(self) -> list[TableRow]:
        """The table: NRMSE and SMAPE of each target and of all, iteration time, training time."""
        seeds = {
            method: {seed.seed: seed.numbers() for seed in self.by_seed(method)}
            for method in self.methods
        }
        places = next((numbers for there in seeds.values() for numbers in there.values()), {})
        return [
            TableRow(
                section=section,
                name=name,
                by_seed={
                    method: {seed: numbers[section, name] for seed, numbers in there.items()}
                    for method, there in seeds.items()
                },
            )
            for section, name in places
        ]

    def to_json_dict(self) -> BenchmarkJson:
        """The comparison, the table by method, then the folds without their predictions."""
        rows = self.rows()
        return {
            "data_set": self.dataset.name,
            "setting": self.dataset.setting,
            "fingerprint": self.fingerprint,
            "split": self.config.split,
            "seeds": self.config.seeds,
            "common_seeds": self.common_seeds(self.methods),
            "overrides": {
                "max_epochs": self.config.max_epochs,
                "patience_epochs": self.config.patience_epochs,
            },
            "methods": {method: self._method_json(method, rows) for method in self.methods},
        }

    def _method_json(self, method: str, rows: list[TableRow]) -> BenchmarkMethodJson:
        preset, coverage = self.presets.get(method), self.coverage(method)
        return {
            "seeds": self.seeds_of(method),
            "mean": _nested({(row.section, row.name): row.values[method].mean for row in rows}),
            "std_over_seeds": _nested(
                {(row.section, row.name): row.values[method].std for row in rows}
            ),
            "best_in": [f"{row.section}: {row.name}" for row in rows if row.best == method],
            "intervals": coverage,
            "config": preset.to_dict() if preset else None,
            "folds": [
                {
                    "method": fold.method,
                    "fold": fold.name,
                    "test": fold.scores.record(),
                    "validation": None if fold.validation is None else fold.validation.record(),
                    "train_seconds": fold.train_seconds,
                    "epochs": fold.num_epochs,
                    "best_epoch": fold.best_epoch,
                    "stopped_by": fold.stopped_by,
                }
                for fold in self.folds_of(method)
            ],
        }


def _nested(numbers: Mapping[tuple[str, str], float | None]) -> ScoreTableJson:
    """The table's numbers of one method for JSON; a deviation over a single seed is None."""
    return {
        "nrmse": numbers[NRMSE, ALL],
        "smape_pct": numbers[SMAPE, ALL],
        "iteration_time_mape_pct": numbers[TIME, "mean"],
        "iteration_time_median_pct": numbers[TIME, "median"],
        "train_seconds": numbers[TRAINING, "seconds"],
        "nrmse_by_target": {name: numbers[NRMSE, name] for name in TARGET_NAMES},
        "smape_pct_by_target": {name: numbers[SMAPE, name] for name in TARGET_NAMES},
    }
