"""Train and tune inspectors of simulated labels, and write their errors on measured ones.

    python -m scripts.studies.simulation_to_real.run [--threads 2] [--targets S,S]

Every measured setting was simulated too (datasets/settings/simulated-cpu). An inspector of preset
`default` is trained on the simulated labels and tuned on 20, 40 or 80 measured ones, beside an
inspector that is trained on these alone and ones that come from other settings. Experiments that
are in results.jsonl are not run again; stop it at any time, the same command goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import random_split
from driple.dataset.store import read_datasets
from driple.features import Groupings
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.predict import predict
from driple.training.config import preset_named
from driple.training.metrics import score
from driple.training.runfiles import CHECKPOINT_FILE
from driple.training.train import RunOptions, train
from scripts.settings.shipped import (
    FIRST,
    FIRST_SIMULATED,
    ROOT,
    SIMULATED_CPU,
    inspector_file,
    measured_datasets,
)
from scripts.studies.kit.results import Row, add_result, read_results
from scripts.studies.transfer.run import (
    MOVED,
    SEEDS,
    SIZES,
    Experiment,
    errors_of,
    load_results,
    run,
)
from scripts.studies.transfer.run import key_of as key_of_transfer

RESULTS = Path(__file__).parent / "results.jsonl"
PRESET = "default"

# Where predictions come from; all but the first two are tuned on measured labels.
SIMULATOR = "the simulator itself"
ANEW = "measured labels alone"
SAME = "pre-trained: this setting, simulated"
OTHER = "pre-trained: V100-P1w2, simulated"
MEASURED = "pre-trained: another setting, measured"

ERRORS = ("nrmse", "smape_pct", "iteration_time_mape_pct")


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One measured setting, and all that is tried on it."""

    measured: Dataset
    simulated: Dataset
    threads: int
    num_seeds: int
    groupings: Groupings = field(default_factory=Groupings)

    def marks(self) -> list[str]:
        """Fingerprints of both data sets."""
        return [fingerprint(self.measured), fingerprint(self.simulated)]

    def wanted(self) -> Iterable[Row]:
        """All experiments; size 0 stands for no measured label."""
        ways = [ANEW, SAME, OTHER] + ([MEASURED] if self.measured.setting != FIRST else [])
        for seed in SEEDS[: self.num_seeds]:
            for way in (SIMULATOR, SAME):
                yield {"target": self.measured.setting, "way": way, "size": 0, "seed": seed}
            for size in SIZES:
                for way in ways:
                    yield {"target": self.measured.setting, "way": way, "size": size, "seed": seed}

    def errors(self, row: Row, mark: str) -> Row:
        """Run one of them."""
        if not row["size"]:
            return self._untuned(row["way"], row["seed"])
        source = None  # of another measured setting it is that of the seed
        if row["way"] == SAME:
            source = self._pretrained()
        elif row["way"] == OTHER:
            source = inspector_file(FIRST_SIMULATED, PRESET)
        usual: Row = MOVED[PRESET]
        if row["way"] == ANEW:
            usual = {"layers": (), "share": 0.0, "aligned": False}
        same = {name: row[name] for name in ("target", "size", "seed")}
        experiment = Experiment(**same, preset=PRESET, **usual)
        if row["way"] in {ANEW, MEASURED}:  # study transfer may have asked the same
            marks = {self.measured.setting: mark}
            known = load_results(marks)
            key = key_of_transfer(json.loads(json.dumps(asdict(experiment))), marks)
            if key in known:
                return known[key]
        return run(experiment, self.measured, mark, self.groupings, self.threads, source=source)

    def _pretrained(self) -> Path:
        """The inspector of all simulated labels of the setting: they cost nothing."""
        name = Setting.parse(self.simulated.setting).file_name
        folder = ROOT / "runs" / f"simulated-{name}-{PRESET}"
        preset = preset_named(PRESET)  # without intervals and residuals, as the transfers
        train(
            self.simulated,
            random_split(self.simulated.workloads, 0),
            replace(preset, train=replace(preset.train, family_folds=0, residuals="none")),
            folder,
            options=RunOptions(resume=True, threads=self.threads),
            groupings=self.groupings,
        )
        return folder / CHECKPOINT_FILE

    def _untuned(self, way: str, seed: int) -> Row:
        """Errors of what has seen no measured label."""
        split = random_split(self.measured.workloads, seed)
        some = [self.measured.examples[i] for i in split.test]
        if way == SIMULATOR:
            simulated = {item.workload: item.targets for item in self.simulated.examples}
            predictions = [simulated[item.workload] for item in some]
        else:
            inspector = load_checkpoint(self._pretrained())
            predictions = [predict(item.graph, inspector).targets for item in some]
        labels = self.measured.targets()
        scores = score(
            np.array([targets.flat for targets in predictions]),
            labels[split.test],
            true_times_s=self.measured.iteration_times_s()[split.test],
            train_labels=labels[split.train],
        )
        return errors_of(scores)


def key_of(row: Row) -> str:
    """Key of an experiment, as one string."""
    return json.dumps([row[name] for name in ("target", "way", "size", "seed", "marks")])


def run_missing(bench: Bench) -> None:
    """Run what is not in the file."""
    marks = bench.marks()
    known = {key_of(row): row for row in read_results(RESULTS)}
    for experiment in bench.wanted():
        key = key_of({**experiment, "marks": marks})
        if key not in known:
            errors = bench.errors(experiment, marks[0])
            known[key] = {**experiment, "marks": marks, **{name: errors[name] for name in ERRORS}}
            add_result(RESULTS, known[key])
            words = ", ".join(str(value) for value in experiment.values())
            print(f"{words}: NRMSE {errors['nrmse']:.4f}", flush=True)


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--targets", help="run these settings only")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="the first ones only")
    arguments = parser.parse_args()
    measured = measured_datasets()
    folders = [SIMULATED_CPU / Setting.parse(item.setting).file_name for item in measured]
    benches = [
        Bench(measured=item, simulated=twin, threads=arguments.threads, num_seeds=arguments.seeds)
        for item, twin in zip(measured, read_datasets(folders), strict=True)
    ]
    for bench in benches:
        if not arguments.targets or bench.measured.setting in arguments.targets.split(","):
            run_missing(bench)


if __name__ == "__main__":
    main()
