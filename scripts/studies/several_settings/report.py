"""Make page.md: what other settings teach of families that none has seen.

    python -m scripts.studies.several_settings.report [--threads 1]

Each family is held out on all measured settings at once. On five of them inspectors of the setting
alone stand beside ones that were trained on the first setting, where the family was held out too,
and tuned (methods `default` and `transferred` of scripts/studies/accuracy/page.md, whose folds are read); trees of
the setting alone beside trees that were given the labels of all settings, with their specs as
features; those are fitted here, which takes some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.dataset.example import Dataset
from driple.dataset.split import Split, family_splits
from driple.errors import DripleError
from driple.files import write_whole
from driple.settings import Setting
from driple.training.arena import ArenaConfig
from driple.training.baselines import BASELINES, limited_threads
from driple.training.evaluate import run_arena
from driple.training.metrics import score, time_errors_pct
from driple.training.summary import Summaries
from scripts.shipped import DOCS, FIRST, FOLDS, measured_datasets
from scripts.studies.kit.tables import markdown

SEED = 0

TREES, TREES_OF_ALL = "trees, this setting alone", "trees, all settings and their specs"
ALONE, TUNED = "`default`, this setting alone", "`default`, first setting, then tuned on this one"
WAYS = (TREES, TREES_OF_ALL, ALONE, TUNED)
STORED = {"trees": TREES, "default": ALONE, "transferred": TUNED}  # folds of the arena

FloatArray = npt.NDArray[np.float64]
Row = dict[str, Any]


class Bench:
    """All measured settings, with each family's split of each."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
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
            rows = sorted(self.splits[name][family].train, key=lambda i, d=dataset: d.workloads[i])
            seen.append(self._features(dataset)[rows])
            labels.append(dataset.targets()[rows])
        with limited_threads(self.threads):
            predict = BASELINES["trees"](np.concatenate(seen), np.concatenate(labels))
            for target in self.targets:
                dataset = self.datasets[target]
                found = predict(self._features(dataset)[self.splits[target][family].test])
                yield self._row(target, family, TREES_OF_ALL, found)

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
            config = ArenaConfig(methods=tuple(STORED), split="family", seeds=(SEED,))
            found = run_arena(
                self.datasets[target],
                config,
                FOLDS,
                source=self.datasets[FIRST],
                summaries=self.summaries,
                stored_only=True,
            )
            for fold in found.folds:
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


def table(rows: Sequence[Row], targets: Sequence[str]) -> list[str]:
    """SMAPE, each family counting the same, and the median error of the iteration time."""
    lines, best = [], {}
    values: dict[tuple[str, str], tuple[float, float]] = {}
    for target in targets:
        for way in WAYS:
            mine = [row for row in rows if (row["target"], row["way"]) == (target, way)]
            times = np.concatenate([row["time_errors_pct"] for row in mine])
            values[way, target] = (float(np.mean([row["smape_pct"] for row in mine])),
                                   float(np.median(times)))  # fmt: skip
        best[target] = min(WAYS, key=lambda way, t=target: values[way, t][0])
    for way in WAYS:
        cells = [way]
        for target in targets:
            smape, time = values[way, target]
            text = f"{smape:.1f} ; {time:.1f}"
            cells.append(f"**{text}**" if best[target] == way else text)
        mean = np.mean([values[way, target] for target in targets], axis=0)
        lines.append([*cells, f"{mean[0]:.1f} ; {mean[1]:.1f}"])
    return markdown(["learned from", *targets, "mean"], lines)


def by_family(rows: Sequence[Row], families: Sequence[str]) -> list[str]:
    """SMAPE of each family, over the settings."""
    lines = []
    for way in WAYS:
        cells = [way]
        for family in families:
            mine = [row["smape_pct"] for row in rows
                    if (row["family"], row["way"]) == (family, way)]  # fmt: skip
            cells.append(f"{np.mean(mine):.1f}")
        lines.append(cells)
    return markdown(["learned from", *families], lines)


def report(bench: Bench) -> None:
    """Write the page."""
    families = bench.families
    rows = [row for row in bench.folds() if row["family"] in families]
    for family in families:
        rows += bench.trees_of_all(family)
        print(f"{family}, {TREES_OF_ALL}", flush=True)
    for way in WAYS:
        missing = set(families) - {row["family"] for row in rows if row["way"] == way}
        if missing:
            raise SystemExit(f"{way}: {', '.join(sorted(missing))} are not run yet")
    lines = [
        "# Families that no setting has seen", "",
        "Made by `python -m scripts.studies.several_settings.report`. A family is held out on every measured "
        f"setting at once ({len(families)} families, seed {SEED}); nothing that is compared has "
        "seen it anywhere. What is there to learn from the labels of other settings?", "",
        "SMAPE over the 12 targets, each family counting the same; after the semicolon the median "
        "error of the iteration time. All in percent; bold is the least SMAPE.", "",
        *table(rows, bench.targets), "",
        "By family, SMAPE over the five settings:", "", *by_family(rows, families),
    ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    write_whole(DOCS / "several-settings.md", text.encode(), error=DripleError)
    print("wrote page.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", type=int, default=1)
    report(Bench(parser.parse_args().threads))


if __name__ == "__main__":
    main()
