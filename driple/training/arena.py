"""What the arena compares and what comes out of it: folds, means, the table, the JSON.

    ArenaConfig  ->  Fold, Fold, ...  ->  ArenaResult  ->  rows of a table, JSON

`evaluate.py` fills these in. Pure: no files, no torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from driple.checks import check_choice
from driple.errors import ConfigError
from driple.targets import TARGET_NAMES
from driple.training.config import Preset
from driple.training.metrics import Scores, mean_scores

__all__ = ["ArenaConfig", "ArenaResult", "Fold", "SplitKind", "TableRow"]

SplitKind = Literal["random", "family"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArenaConfig:
    """What is compared on what.

    Attributes:
        split: `random`: one fold per seed; `family`: one fold per seed and model family.
        seeds: of the splits; each preset keeps its own seed for weights and batches.
        methods: names of baselines or presets.
        max_epochs: replaces the presets' own, to save time; shown in the result.
        patience_epochs: likewise.
        threads: CPU threads while training; None leaves them as they are.

    Raises:
        ConfigError: a value that makes no sense; the message names the flag.
    """

    split: SplitKind = "random"
    seeds: tuple[int, ...] = (0,)
    methods: tuple[str, ...] = ("mean", "paper", "default")
    max_epochs: int | None = None
    patience_epochs: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        check_choice("--split", self.split, get_args(SplitKind))
        for flag, values in (("--seeds", self.seeds), ("--methods", self.methods)):
            if not values or len(set(values)) != len(values):
                raise ConfigError(f"{flag} needs one value or more, each once, got {values!r}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fold:
    """One method on one fold; everything is of the test part unless it says otherwise.

    Attributes:
        method: name of the baseline or preset.
        name: `seed 0`, or the family that was held out and the seed.
        scores: errors on the test part.
        validation: errors on the validation part; None for baselines, which do not use it.
        train_seconds: wall time of training.
        num_epochs: epochs trained; 0 for baselines.
        best_epoch: epoch of the weights that were scored.
        stopped_by: `patience`, `max_epochs`, or `fit` for baselines.
        predictions: targets by workload, in the order of `TARGET_NAMES`.
    """

    method: str
    name: str
    scores: Scores
    validation: Scores | None
    train_seconds: float
    num_epochs: int
    best_epoch: int
    stopped_by: str
    predictions: dict[str, list[float]]

    def to_json_dict(self) -> dict[str, Any]:
        """All fields, as stored."""
        return {
            "method": self.method,
            "fold": self.name,
            "test": self.scores.to_json_dict(),
            "validation": self.validation.to_json_dict() if self.validation else None,
            "train_seconds": self.train_seconds,
            "epochs": self.num_epochs,
            "best_epoch": self.best_epoch,
            "stopped_by": self.stopped_by,
            "predictions": self.predictions,
        }

    @classmethod
    def from_json_dict(cls, stored: dict[str, Any]) -> Fold:
        """The inverse of `to_json_dict`."""
        validation = stored["validation"]
        return cls(
            method=stored["method"],
            name=stored["fold"],
            scores=Scores.from_json_dict(stored["test"]),
            validation=Scores.from_json_dict(validation) if validation else None,
            train_seconds=stored["train_seconds"],
            num_epochs=stored["epochs"],
            best_epoch=stored["best_epoch"],
            stopped_by=stored["stopped_by"],
            predictions=stored["predictions"],
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One line of the table: a target (or `all`, or the iteration time) and each method's errors.

    Attributes:
        name: target, `all 12`, or `iteration_time`.
        nrmse: by method; None where it is not defined.
        smape_pct: by method, percent; for `iteration_time` the mean absolute percentage error.
    """

    name: str
    nrmse: dict[str, float | None]
    smape_pct: dict[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class ArenaResult:
    """All folds of all methods.

    Attributes:
        config: what was asked for.
        data_set: name of the data set.
        setting: its cluster setting.
        fingerprint: hash of its contents.
        folds: method by method, fold by fold.
        presets: the presets as they were trained, overrides applied.
    """

    config: ArenaConfig
    data_set: str
    setting: str
    fingerprint: str
    folds: tuple[Fold, ...]
    presets: dict[str, Preset]

    def folds_of(self, method: str) -> tuple[Fold, ...]:
        """Folds of one method."""
        return tuple(fold for fold in self.folds if fold.method == method)

    def summary(self, method: str) -> Scores:
        """Mean errors of one method over its folds, each fold counting the same."""
        return mean_scores([fold.scores for fold in self.folds_of(method)])

    def rows(self) -> list[TableRow]:
        """The table: each target, all of them, and the iteration time."""
        means = {method: self.summary(method) for method in self.config.methods}
        rows = [
            TableRow(
                name=target,
                nrmse={method: float(mean.nrmse[i]) for method, mean in means.items()},
                smape_pct={method: float(mean.smape_pct[i]) for method, mean in means.items()},
            )
            for i, target in enumerate(TARGET_NAMES)
        ]
        rows.append(
            TableRow(
                name="all 12",
                nrmse={method: mean.mean_nrmse for method, mean in means.items()},
                smape_pct={method: mean.mean_smape_pct for method, mean in means.items()},
            )
        )
        rows.append(
            TableRow(
                name="iteration_time",
                nrmse=dict.fromkeys(means),
                smape_pct={method: mean.iteration_time_mape_pct for method, mean in means.items()},
            )
        )
        return rows

    def to_json_dict(self) -> dict[str, Any]:
        """What was compared, means by method, then the folds without their predictions."""
        return {
            "data_set": self.data_set,
            "setting": self.setting,
            "fingerprint": self.fingerprint,
            "split": self.config.split,
            "seeds": list(self.config.seeds),
            "overrides": {
                "max_epochs": self.config.max_epochs,
                "patience_epochs": self.config.patience_epochs,
            },
            "methods": {method: self._method_json(method) for method in self.config.methods},
        }

    def _method_json(self, method: str) -> dict[str, Any]:
        folds = self.folds_of(method)
        nrmse = [fold.scores.mean_nrmse for fold in folds]
        preset = self.presets.get(method)
        return {
            "mean": self.summary(method).to_json_dict(),
            "nrmse_std_over_folds": float(np.std(nrmse)),
            "train_seconds": sum(fold.train_seconds for fold in folds),
            "config": preset.to_dict() if preset else None,
            "folds": [
                {key: value for key, value in fold.to_json_dict().items() if key != "predictions"}
                for fold in folds
            ],
        }
