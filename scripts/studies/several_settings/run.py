"""Errors on families that no setting has seen, of what learned from one setting or from several.

    python -m scripts.studies.several_settings.run [--threads 1] [--folds FOLDER]

Each family is held out on all measured settings at once. On five of them inspectors of the setting
alone stand beside ones that were trained on the first setting, where the family was held out too,
and fine-tuned (methods `default` and `transferred` of study accuracy, whose folds are read: see
datasets/README.md); trees of the setting alone beside trees with the labels of all settings and
their specifications as features; those are fitted here, which takes some minutes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset
from driple.dataset.split import Split, family_splits
from driple.errors import ConfigError
from driple.evaluation.baselines import BASELINES, limited_threads
from driple.evaluation.benchmark import BenchmarkConfig
from driple.evaluation.evaluate import run_benchmark
from driple.evaluation.summary import Summaries
from driple.files import atomic_write
from driple.training.metrics import score, time_errors_pct
from scripts.settings.shipped import FIRST, FOLDS, measured_datasets
from scripts.studies.kit.results import Row

RESULTS = Path(__file__).parent / "results.jsonl"
SEED = 0

TREES, TREES_OF_ALL = "trees, this setting alone", "trees, all settings and their specs"
ALONE, TUNED = "`default`, this setting alone", "`default`, first setting, then tuned on this one"
WAYS = (TREES, TREES_OF_ALL, ALONE, TUNED)
STORED = {"trees": TREES, "default": ALONE, "transferred": TUNED}  # folds of the arena

FloatArray = npt.NDArray[np.float64]


class Bench:
    """All measured settings, with each family's split of each."""

    def __init__(self, threads: int, folds: Path) -> None:
        self.threads = threads
        self.stored = folds
        self.datasets = {dataset.setting: dataset for dataset in measured_datasets()}
        self.splits = {
            name: dict(family_splits(dataset.examples, SEED))
            for name, dataset in self.datasets.items()
        }
        self.summaries = Summaries()

    @property
    def targets(self) -> list[str]:
        """All settings but the first."""
        return [name for name in self.datasets if name != FIRST]

    @property
    def families(self) -> list[str]:
        """Those that every setting measured."""
        return [
            family
            for family in self.splits[FIRST]
            if all(family in splits for splits in self.splits.values())
        ]

    def trees_of_all(self, family: str) -> Iterable[Row]:
        """Trees that learn from the training parts of all settings."""
        seen, labels = [], []
        for name, dataset in self.datasets.items():
            rows = sorted(self.splits[name][family].train, key=dataset.workloads.__getitem__)
            seen.append(self._features(dataset)[rows])
            labels.append(dataset.targets()[rows])
        with limited_threads(self.threads):
            predict = BASELINES["trees"](np.concatenate(seen), np.concatenate(labels))
            for target in self.targets:
                dataset = self.datasets[target]
                predicted = predict(self._features(dataset)[self.splits[target][family].test])
                yield self._row(target, family, TREES_OF_ALL, predicted)

    def _features(self, dataset: Dataset) -> FloatArray:
        """Summaries of the graphs, with the setting's specs at their end."""
        setting = Setting.parse(dataset.setting)
        specs = [float(setting.device != "CPU"), setting.num_servers, setting.num_workers,
                 setting.homogeneous, (setting.bits_per_s or 0.0) / 1e6]  # fmt: skip
        summaries = self.summaries.of(dataset.examples)
        return np.hstack([summaries, np.tile(np.array(specs), (len(summaries), 1))])

    def folds(self) -> Iterable[Row]:
        """The arena's folds, which exist."""
        for target in self.targets:
            config = BenchmarkConfig(methods=tuple(STORED), split="family", seeds=(SEED,))
            result = run_benchmark(
                self.datasets[target],
                config,
                self.stored,
                source=self.datasets[FIRST],
                summaries=self.summaries,
                stored_only=True,
            )
            for fold in result.folds:
                if fold.family in self.families:
                    split = self.splits[target][fold.family]
                    names = [self.datasets[target].workloads[i] for i in split.test]
                    predicted = np.array([fold.predictions[name] for name in names])
                    yield self._row(target, fold.family, STORED[fold.method], predicted)

    def _row(self, target: str, family: str, way: str, predicted: FloatArray) -> Row:
        dataset = self.datasets[target]
        split: Split = self.splits[target][family]
        labels, times_s = dataset.targets(), dataset.iteration_times_s()
        scores = score(
            predicted,
            labels[split.test],
            true_times_s=times_s[split.test],
            train_labels=labels[split.train],
        )
        errors = time_errors_pct(predicted, times_s[split.test])
        return {
            "target": target,
            "family": family,
            "way": way,
            "smape_pct": round(scores.mean_smape_pct, 3),
            "time_errors_pct": [round(float(error), 2) for error in errors],
        }


def main() -> None:
    """Write all errors."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folds", type=Path, default=FOLDS, help="folder of finished folds")
    options = parser.parse_args()
    bench = Bench(options.threads, options.folds)
    rows = [row for row in bench.folds() if row["family"] in bench.families]
    for way in STORED.values():
        missing = set(bench.families) - {row["family"] for row in rows if row["way"] == way}
        if missing:
            raise SystemExit(f"{way}: no fold of {', '.join(sorted(missing))} in {options.folds}")
    for family in bench.families:
        rows += bench.trees_of_all(family)
        print(f"{family}, {TREES_OF_ALL}", flush=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    atomic_write(RESULTS, text.encode(), error=ConfigError)


if __name__ == "__main__":
    main()
