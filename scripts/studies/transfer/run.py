"""Train inspectors on measured settings anew and by transfer, and write down their errors.

    python -m scripts.studies.transfer.run [--threads 1] [--presets default,paper] [--targets S,S]

Experiments that are in results.jsonl are not run again, one line each; stop it at any time, the
same command goes on; several may run at once, with different targets. All errors are on the test
part of the target setting; NRMSE is over the largest label of the whole training part, so that
sizes compare.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import limited_split, random_split
from driple.dataset.store import read_dataset
from driple.evaluation.transferred import trained_once
from driple.features import Groupings
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.training.config import Preset, preset_named
from driple.training.metrics import Scores
from driple.training.train import RunOptions, train
from driple.training.transfer import transfer, transfer_config
from scripts.settings.shipped import (
    FIRST,
    SHORTER_PAPER,
    inspector_file,
    measured_datasets,
    measured_folders,
    run_folder,
)
from scripts.studies.kit.results import add_result, read_results

HOME = Path(__file__).parent
RESULTS = HOME / "results.jsonl"
SIZES = (20, 40, 80)
SEEDS = (0, 1, 2, 3, 4)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
LAYERS = (
    ("mlp",),
    ("phi_r",),
    ("phi_r", "gru"),
    ("phi_r", "mlp"),
    ("phi_r", "gru", "mlp"),
    ("phi_f", "phi_r", "gru", "readout", "mlp"),
)
# Intervals are left out: nothing here asks for them, and finding them takes trainings of its own.
# So are residuals, here and in transfers: what tuning does to networks is compared.
ANEW: dict[str, dict[str, Any]] = {
    "paper": SHORTER_PAPER,
    "default": {"family_folds": 0, "residuals": "none"},
}
# What `driple transfer` does with each preset.
MOVED: dict[str, dict[str, object]] = {
    name: {"layers": config.layers, "share": config.tuned_share, "aligned": config.align}
    for name in ("default", "paper")
    if (config := transfer_config(name))
}
PAPERS = ("phi_r", "mlp")  # tuned in the paper (section 4.2.2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """One training.

    Attributes:
        target: setting that is learned.
        preset: `paper` or `default`.
        layers: what is tuned; empty: an inspector is trained anew.
        share: of the repeated graph layers that are tuned.
        aligned: whether targets are put on the new level first.
        size: workloads to learn from; 0 for all of the 80 % that are not tested on.
        seed: of split, weights and batches.
    """

    target: str
    preset: str
    layers: tuple[str, ...]
    share: float
    aligned: bool
    size: int = 0
    seed: int = 0


def experiments(targets: list[str], num_seeds: int = len(SEEDS)) -> Iterable[Experiment]:
    """All that the figures need: every seed of one before the next, the cheap preset first."""
    for preset in ("default", "paper"):
        for seed in SEEDS[:num_seeds]:
            for target in targets:
                same: dict[str, Any] = {"target": target, "preset": preset, "seed": seed}
                usual: dict[str, Any] = MOVED[preset]
                for size in (*SIZES, 0):
                    yield Experiment(**same, **usual, size=size)
                    yield Experiment(**same, layers=(), share=0.0, aligned=False, size=size)
                    if usual["aligned"]:
                        yield Experiment(**same, **{**usual, "aligned": False}, size=size)
                for layers in LAYERS:
                    yield Experiment(**same, **{**usual, "layers": layers})
                for share in SHARES:
                    yield Experiment(**same, **{**usual, "layers": PAPERS, "share": share})


def run(
    experiment: Experiment,
    dataset: Dataset,
    mark: str,
    groupings: Groupings,
    threads: int,
    *,
    source: Path | None = None,
) -> dict[str, object]:
    """Train, score, and say what it took.

    With one thread, seconds are those of the processor: others that use it do not count.

    Args:
        experiment: what to train.
        dataset: the labels of its target.
        mark: their fingerprint.
        groupings: those of other experiments on the same graphs.
        threads: of torch.
        source: checkpoint that is transferred; by default the first setting's of the same seed.
    """
    if experiment.layers:  # before the clock starts: it may have to be trained
        checkpoint = (
            load_checkpoint(source)
            if source
            else pretrained(experiment.preset, experiment.seed, threads)
        )
    began = time.perf_counter(), time.process_time()
    split = random_split(dataset.workloads, experiment.seed)
    part = (
        limited_split(split, dataset.workloads, experiment.size, experiment.seed)
        if experiment.size
        else split
    )
    if experiment.layers:
        config = transfer_config(
            experiment.preset,
            tuned_share=experiment.share,
            layers=experiment.layers,
            align=experiment.aligned,
        )
        train_config = replace(config.train, seed=experiment.seed, residuals="none")
        config = replace(config, train=train_config, interval_folds=0)
        with tempfile.TemporaryDirectory(prefix="driple-transfer-") as folder:
            options = RunOptions(threads=threads)
            result = transfer(
                checkpoint, dataset, part, config, folder, options=options, groupings=groupings
            )
    else:
        preset = anew(experiment.preset, experiment.seed)
        place = run_folder(dataset, mark, part, preset)
        options = RunOptions(resume=True, threads=threads)
        result = train(dataset, part, preset, place, options=options, groupings=groupings)
    passed, used = time.perf_counter() - began[0], time.process_time() - began[1]
    seconds = result.seconds * (min(used / passed, 1.0) if threads == 1 else 1.0)
    scores = result.test_scores(dataset, split.train)
    return {
        **asdict(experiment),
        **({"source_seed": experiment.seed} if experiment.layers else {}),
        **errors_of(scores),
        "seconds": seconds,
        "threads": threads,
        "epochs": len(result.history),
        "best_epoch": result.best_epoch,
        "stopped_by": result.stopped_by,
    }


def anew(name: str, seed: int) -> Preset:
    """A preset as it is trained anew here."""
    preset = preset_named(name)
    return replace(preset, train=replace(preset.train, seed=seed, **ANEW[name]))


@cache
def pretrained(name: str, seed: int, threads: int) -> Checkpoint:
    """The first measured setting's inspector of a seed, trained unless it is there.

    A workload's place in a split is a hash of its name and the seed, so what the target tests the
    source of the same seed has not learned. That of seed 0 is shipped.
    """
    if seed == 0:
        return load_checkpoint(inspector_file(FIRST, name))
    dataset = read_dataset(measured_folders()[FIRST])
    split, preset = random_split(dataset.workloads, seed), anew(name, seed)
    return trained_once(
        dataset,
        split,
        preset,
        run_folder(dataset, fingerprint(dataset), split, preset),
        options=RunOptions(resume=True, threads=threads),
        groupings=Groupings(),
    )


def errors_of(scores: Scores) -> dict[str, float]:
    """The errors that an experiment writes down."""
    return {
        "nrmse": scores.mean_nrmse,
        "smape_pct": scores.mean_smape_pct,
        "iteration_time_mape_pct": scores.iteration_time_mape_pct,
    }


def key_of(fields: dict[str, object], marks: dict[str, str]) -> str:
    """Key of an experiment, as one string; `marks` are the fingerprints of the data sets."""
    names = Experiment.__dataclass_fields__
    return json.dumps([marks[str(fields["target"])], {name: fields[name] for name in names}])


def load_results(marks: dict[str, str]) -> dict[str, dict[str, object]]:
    """Finished experiments on the data sets as they are now."""
    # Lines that do not name their threads were run with --threads 1.
    lines = [{"threads": 1, **line} for line in read_results(RESULTS)]
    known = [line for line in lines if marks.get(line["target"]) == line["fingerprint"]]
    return {key_of(line, marks): line for line in known}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--presets", default="default,paper", help="run these only")
    parser.add_argument("--targets", help="run these settings only")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="run the first ones only")
    arguments = parser.parse_args()
    datasets = {item.setting: item for item in measured_datasets() if item.setting != FIRST}
    targets = arguments.targets.split(",") if arguments.targets else list(datasets)
    if unknown := set(targets) - set(datasets):
        raise SystemExit(f"--targets: {', '.join(unknown)} is none of {', '.join(datasets)}")
    marks = {setting: fingerprint(data) for setting, data in datasets.items()}
    groupings = Groupings()
    wanted = [
        item
        for item in experiments(targets, arguments.seeds)
        if item.preset in arguments.presets.split(",")
    ]
    wanted.sort(key=lambda item: bool(item.layers))  # what waits for no source first
    for i, experiment in enumerate(wanted):
        if key_of(json.loads(json.dumps(asdict(experiment))), marks) in load_results(marks):
            continue  # read anew: another process may have run it
        result = run(
            experiment,
            datasets[experiment.target],
            marks[experiment.target],
            groupings,
            arguments.threads,
        )
        add_result(RESULTS, {**result, "fingerprint": marks[experiment.target]})
        words = f"{experiment.preset} {experiment.target} {result['nrmse']:.4f}"
        print(f"{i + 1}/{len(wanted)} {words}", flush=True)


if __name__ == "__main__":
    main()
