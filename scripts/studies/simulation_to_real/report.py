"""Make page.md: what an inspector of simulated labels is worth on measured ones.

    python -m scripts.studies.simulation_to_real.report [--threads 2] [--targets S,S]

Every measured setting was simulated too (datasets/simulated-cpu). An inspector of preset `default`
is trained on the simulated labels and tuned on 20, 40 or 80 measured ones, beside an inspector that
is trained on these alone and ones that come from other settings. Experiments that are not yet in
results.jsonl are run first; stop it at any time, the same command goes on.
With --targets some settings are run alone, and nothing is written but their results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import pyplot as plt

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import random_split
from driple.dataset.store import read_datasets
from driple.errors import DripleError
from driple.files import write_whole
from driple.inputs import Groupings
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.predict import predict
from driple.settings import Setting
from driple.training.config import preset_named
from driple.training.loop import RunOptions, train
from driple.training.metrics import score
from driple.training.runfiles import CHECKPOINT_FILE
from scripts.shipped import (
    DOCS,
    FIRST,
    FIRST_SIMULATED,
    OLD_NUMBERS,
    ROOT,
    SIMULATED_CPU,
    inspector_file,
    measured_datasets,
)
from scripts.studies.kit.pictures import plain, save
from scripts.studies.kit.tables import markdown
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

HOME = DOCS / "simulation-to-real"
RESULTS = HOME / "results.jsonl"
PRESET = "default"

# Where predictions come from; all but the first two are tuned on measured labels.
SIMULATOR = "the simulator itself"
ANEW = "measured labels alone"
SAME = "pre-trained: this setting, simulated"
OTHER = "pre-trained: V100-P1w2, simulated"
MEASURED = "pre-trained: another setting, measured"
COLOURS = {ANEW: "#999999", OTHER: "#e0b050", SAME: "#c8612c", MEASURED: "#3b6ea8"}

ERRORS = ("nrmse", "smape_pct", "iteration_time_mape_pct")
Row = dict[str, Any]


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

    def errors(self, item: Row, mark: str) -> Row:
        """Run one of them."""
        if not item["size"]:
            return self._untuned(item["way"], item["seed"])
        source = None  # of another measured setting it is that of the seed
        if item["way"] == SAME:
            source = self._pretrained()
        elif item["way"] == OTHER:
            source = inspector_file(FIRST_SIMULATED, PRESET)
        usual: Row = MOVED[PRESET]
        if item["way"] == ANEW:
            usual = {"layers": (), "share": 0.0, "aligned": False}
        same = {name: item[name] for name in ("target", "size", "seed")}
        experiment = Experiment(**same, preset=PRESET, **usual)
        if item["way"] in {
            ANEW,
            MEASURED,
        }:  # scripts/studies/transfer/page.md may have asked the same
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
            told = {item.workload: item.targets for item in self.simulated.examples}
            found = [told[item.workload] for item in some]
        else:
            inspector = load_checkpoint(self._pretrained())
            found = [predict(item.graph, inspector).targets for item in some]
        labels = self.measured.targets()
        scores = score(
            np.array([targets.flat for targets in found]),
            labels[split.test],
            true_times_s=self.measured.iteration_times_s()[split.test],
            train_labels=labels[split.train],
        )
        return errors_of(scores)


def done() -> list[Row]:
    """Finished experiments."""
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def key_of(row: Row) -> str:
    """What an experiment is, as one string."""
    return json.dumps([row[name] for name in ("target", "way", "size", "seed", "marks")])


def run_missing(bench: Bench) -> list[Row]:
    """Run what is not in the file; all rows of the setting."""
    marks = bench.marks()
    known = {key_of(row): row for row in done()}
    rows = []
    for item in bench.wanted():
        key = key_of({**item, "marks": marks})
        if key not in known:
            found = bench.errors(item, marks[0])
            known[key] = {**item, "marks": marks, **{name: found[name] for name in ERRORS}}
            with RESULTS.open("a") as file:
                file.write(json.dumps(known[key]) + "\n")
            words = ", ".join(str(value) for value in item.values())
            print(f"{words}: NRMSE {found['nrmse']:.4f}", flush=True)
        rows.append(known[key])
    return rows


def pick(rows: Sequence[Row], name: str, **fields: object) -> npt.NDArray[np.float64]:
    """One error of the rows with these fields."""
    return np.array([row[name] for row in rows if all(row[k] == v for k, v in fields.items())])


def seeds_of(rows: Sequence[Row]) -> int:
    """How many seeds were run."""
    return len({row["seed"] for row in rows})


def table(rows: Sequence[Row], targets: Sequence[str], name: str, digits: int) -> list[str]:
    """Means over seeds by setting, and over all settings."""
    made = []
    chosen = [(SIMULATOR, 0), (SAME, 0)]
    chosen += [(way, size) for size in SIZES for way in COLOURS]
    for way, size in chosen:
        found = [pick(rows, name, way=way, size=size, target=target) for target in targets]
        cells = [f"{values.mean():.{digits}f}" if len(values) else "-" for values in found]
        whole = [values.mean() for values in found if len(values)]
        cells.append(f"{np.mean(whole):.{digits}f}" if len(whole) == len(targets) else "-")
        made.append([way, str(size), *cells])
    return markdown(["", "measured labels", *targets, "mean"], made)


def mean_over(
    rows: Sequence[Row], targets: Sequence[str], name: str, *, way: str, **fields: object
) -> float:
    """Mean over settings of one error's mean over seeds."""
    found = [pick(rows, name, way=way, target=target, **fields).mean() for target in targets]
    return float(np.mean(found))


def curves(rows: Sequence[Row], targets: Sequence[str], path: Path) -> None:
    """Error against measured labels, on the settings that every way has."""
    drawn, axes = plt.subplots(1, 2, figsize=(10, 3.8))
    for axis, name, words in (
        (axes[0], "nrmse", "average NRMSE"),
        (axes[1], "iteration_time_mape_pct", "error of the iteration time (%)"),
    ):
        for way, colour in COLOURS.items():
            sizes = (0, *SIZES) if way == SAME else SIZES
            means = [mean_over(rows, targets, name, way=way, size=n) for n in sizes]
            axis.plot(sizes, means, color=colour, marker="o", markersize=4, label=way)
        alone = mean_over(rows, targets, name, way=SIMULATOR)
        axis.axhline(alone, color="#c8612c", linewidth=0.8, linestyle="--", label=SIMULATOR)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("measured labels to learn from", fontsize=8)
        axis.set_ylabel(words, fontsize=8)
        plain(axis)
    axes[1].legend(fontsize=7, frameon=False, loc="lower left")
    drawn.suptitle(f"mean over the settings other than {FIRST}, {seeds_of(rows)} seeds", fontsize=9)
    drawn.tight_layout()
    save(drawn, path)


def times_in_notes(rows: Sequence[Row], targets: Sequence[str]) -> dict[str, float]:
    """Errors of the iteration time that the notes name, mean over settings, percent."""
    ways = {"simulator": SIMULATOR, "same": SAME, "alone": ANEW, "measured": MEASURED}
    places = (("simulator", 0), ("same", 0), ("same", 20), ("same", 40), ("alone", 20),
              ("alone", 40), ("measured", 20))  # fmt: skip
    error = "iteration_time_mape_pct"
    return {
        f"{name}_{size}": mean_over(rows, targets, error, way=ways[name], size=size)
        for name, size in places
    }


def report(rows: Sequence[Row], targets: Sequence[str]) -> None:
    """Write page and picture."""
    others = [target for target in targets if target != FIRST]
    curves(rows, others, HOME / "sizes.png")
    notes = (HOME / "notes.md").read_text().rstrip().format(**times_in_notes(rows, others))
    lines = [
        "# From simulated to measured labels",
        "",
        OLD_NUMBERS,
        "",
        "Made by `python -m scripts.studies.simulation_to_real.report` from `datasets/`: the measured settings, "
        f"and the same settings simulated (`datasets/simulated-cpu`). Preset {PRESET}; means over "
        f"{seeds_of(rows)} seeds of split, weights and batches; errors on the measured test "
        "workloads. Pre-training on a setting's simulated labels uses all of its workloads, those "
        "of the test part too: their simulated labels are to be had without running them.",
        "",
        notes,
        "",
        "![error against labels](simulation-to-real/sizes.png)",
        "",
        "## Average NRMSE",
        "",
        *table(rows, targets, "nrmse", 4),
        "",
        "## Error of the iteration time (MAPE, %)",
        "",
        *table(rows, targets, "iteration_time_mape_pct", 1),
        "",
    ]
    page = DOCS / "simulation-to-real.md"
    write_whole(page, "\n".join(lines).encode(), error=DripleError)


def main() -> None:
    """Run what is missing, then write the report."""
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
    HOME.mkdir(parents=True, exist_ok=True)
    if arguments.targets:
        for bench in benches:
            if bench.measured.setting in arguments.targets.split(","):
                run_missing(bench)
        return
    rows = [row for bench in benches for row in run_missing(bench)]
    report(rows, [item.setting for item in measured])


if __name__ == "__main__":
    main()
