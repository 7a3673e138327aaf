"""Make docs/several-settings.md: what other settings teach of families that none has seen.

    python scripts/several_settings.py [--threads 1] [--families resnet,vgg] [--report-only]

Each family is held out on all measured settings at once. On five of them inspectors of the setting
alone (the folds of docs/accuracy.md) stand beside ones that were trained on the first setting,
where the family was held out too, and tuned; trees of the setting alone beside trees that were
given the labels of all settings, with their specs as features. What is not yet in
docs/several-settings/results.jsonl is run first; stop it at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from shipped import DOCS, FIRST, FOLDS, ROOT, markdown, measured_datasets

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split, family_splits
from driple.errors import DripleError
from driple.files import write_whole
from driple.inputs import Groupings
from driple.inspector.checkpoint import load_checkpoint
from driple.settings import Setting
from driple.training.arena import ArenaConfig
from driple.training.baselines import BASELINES, limited_threads
from driple.training.config import preset_named
from driple.training.evaluate import run_arena
from driple.training.fit import RunOptions
from driple.training.loop import train
from driple.training.metrics import score, time_errors_pct
from driple.training.runfiles import CHECKPOINT_FILE
from driple.training.summary import Summaries
from driple.training.transfer import transfer, transfer_config

HOME = DOCS / "several-settings"
RESULTS = HOME / "results.jsonl"
SEED = 0

TREES, TREES_OF_ALL = "trees, this setting alone", "trees, all settings and their specs"
ALONE, TUNED = "`default`, this setting alone", "`default`, first setting, then tuned on this one"
WAYS = (TREES, TREES_OF_ALL, ALONE, TUNED)
STORED = {"trees": TREES, "default": ALONE}  # folds of the arena

FloatArray = npt.NDArray[np.float64]
Row = dict[str, Any]


class Bench:
    """All measured settings, with each family's split of each."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.datasets = {dataset.setting: dataset for dataset in measured_datasets()}
        self.marks = {name: fingerprint(dataset) for name, dataset in self.datasets.items()}
        self.splits = {
            name: dict(family_splits(dataset.examples, SEED))
            for name, dataset in self.datasets.items()
        }
        self.groupings, self.summaries = Groupings(), Summaries()

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

    def tuned(self, family: str) -> Iterable[Row]:
        """Inspectors that come from the first setting, where the family was held out too."""
        options = RunOptions(resume=True, threads=self.threads)
        preset = preset_named("default")  # without intervals, for which nobody asks here
        preset = replace(preset, train=replace(preset.train, family_folds=0))
        first = self.datasets[FIRST]
        place = ROOT / "runs" / f"without-{family}-default"
        train(first, self.splits[FIRST][family], preset, place, options=options,
              groupings=self.groupings)  # fmt: skip
        checkpoint = load_checkpoint(place / CHECKPOINT_FILE)
        config = replace(transfer_config("default"), interval_folds=0)
        for target in self.targets:
            dataset, split = self.datasets[target], self.splits[target][family]
            with tempfile.TemporaryDirectory(prefix="driple-several-") as folder:
                result = transfer(checkpoint, dataset, split, config, folder,
                                  options=options, groupings=self.groupings)  # fmt: skip
            yield self._row(target, family, TUNED, result.predictions["test"])

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

    def alone(self) -> Iterable[Row]:
        """The arena's folds, which exist."""
        for target in self.targets:
            config = ArenaConfig(methods=tuple(STORED), split="family", seeds=(SEED,))
            found = run_arena(
                self.datasets[target], config, FOLDS, summaries=self.summaries, stored_only=True
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
            "marks": [self.marks[FIRST], self.marks[target]],
            "smape_pct": round(scores.mean_smape_pct, 3),
            "time_errors_pct": [round(float(error), 2) for error in errors],
        }


def run_missing(bench: Bench, families: Sequence[str]) -> None:
    """Run what is not in the file."""
    known = {(row["family"], row["way"]) for row in stored(bench)}
    for family in families:
        for way, run in ((TREES_OF_ALL, bench.trees_of_all), (TUNED, bench.tuned)):
            if (family, way) in known:
                continue
            rows = [*run(family)]
            HOME.mkdir(exist_ok=True)
            with RESULTS.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            error = np.mean([row["smape_pct"] for row in rows])
            print(f"{family}, {way}: SMAPE {error:.1f} %", flush=True)


def stored(bench: Bench) -> list[Row]:
    """What was run on the data sets as they are."""
    if not RESULTS.exists():
        return []
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    marks = {name: [bench.marks[FIRST], mark] for name, mark in bench.marks.items()}
    return [row for row in rows if row["marks"] == marks.get(row["target"])]


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
    rows = [row for row in [*bench.alone(), *stored(bench)] if row["family"] in families]
    for way in WAYS:
        missing = set(families) - {row["family"] for row in rows if row["way"] == way}
        if missing:
            raise SystemExit(f"{way}: {', '.join(sorted(missing))} are not run yet")
    lines = [
        "# Families that no setting has seen", "",
        "Made by `python scripts/several_settings.py`. A family is held out on every measured "
        f"setting at once ({len(families)} families, seed {SEED}); nothing that is compared has "
        "seen it anywhere. What is there to learn from the labels of other settings?", "",
        "SMAPE over the 12 targets, each family counting the same; after the semicolon the median "
        "error of the iteration time. All in percent; bold is the least SMAPE.", "",
        *table(rows, bench.targets), "",
        "By family, SMAPE over the five settings:", "", *by_family(rows, families),
    ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    write_whole(DOCS / "several-settings.md", text.encode(), error=DripleError)
    print("wrote docs/several-settings.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--families", help="run these only, and report nothing")
    parser.add_argument("--report-only", action="store_true")
    options = parser.parse_args()
    bench = Bench(options.threads)
    if not options.report_only:
        run_missing(bench, options.families.split(",") if options.families else bench.families)
    if not options.families:
        report(bench)


if __name__ == "__main__":
    main()
