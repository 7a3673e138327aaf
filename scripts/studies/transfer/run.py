"""The trainings behind page.md: what is trained, on what, and what came of it."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import limited_split, random_split
from driple.dataset.store import read_dataset
from driple.inputs import Groupings
from driple.inspector.checkpoint import Checkpoint, load_checkpoint
from driple.training.config import Preset, preset_named
from driple.training.loop import RunOptions, train
from driple.training.metrics import Scores
from driple.training.moved import trained_once
from driple.training.transfer import transfer, transfer_config
from scripts.shipped import FIRST, SHORTER_PAPER, inspector_file, measured_folders, run_folder

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
    name: {"layers": made.layers, "share": made.tuned_share, "aligned": made.align}
    for name in ("default", "paper")
    if (made := transfer_config(name))
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
    item: Experiment,
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
        item: what to train.
        dataset: the labels of its target.
        mark: their fingerprint.
        groupings: those of other experiments on the same graphs.
        threads: of torch.
        source: checkpoint that is transferred; by default the first setting's of the same seed.
    """
    if item.layers:  # before the clock starts: it may have to be trained
        checkpoint = (
            load_checkpoint(source) if source else pretrained(item.preset, item.seed, threads)
        )
    began = time.perf_counter(), time.process_time()
    split = random_split(dataset.workloads, item.seed)
    part = limited_split(split, dataset.workloads, item.size, item.seed) if item.size else split
    if item.layers:
        config = transfer_config(
            item.preset, tuned_share=item.share, layers=item.layers, align=item.aligned
        )
        train_config = replace(config.train, seed=item.seed, residuals="none")
        config = replace(config, train=train_config, interval_folds=0)
        with tempfile.TemporaryDirectory(prefix="driple-transfer-") as folder:
            options = RunOptions(threads=threads)
            result = transfer(
                checkpoint, dataset, part, config, folder, options=options, groupings=groupings
            )
    else:
        preset = anew(item.preset, item.seed)
        place = run_folder(dataset, mark, part, preset)
        options = RunOptions(resume=True, threads=threads)
        result = train(dataset, part, preset, place, options=options, groupings=groupings)
    passed, used = time.perf_counter() - began[0], time.process_time() - began[1]
    seconds = result.seconds * (min(used / passed, 1.0) if threads == 1 else 1.0)
    scores = result.test_scores(dataset, split.train)
    return {
        **asdict(item),
        **({"source_seed": item.seed} if item.layers else {}),
        **errors_of(scores),
        "seconds": seconds,
        "threads": threads,
        "epochs": len(result.history),
        "best_epoch": result.best_epoch,
        "stopped_by": result.stopped_by,
    }


def anew(name: str, seed: int) -> Preset:
    """A preset as it is trained anew here."""
    made = preset_named(name)
    return replace(made, train=replace(made.train, seed=seed, **ANEW[name]))


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
    """What an experiment is, as one string; `marks` are the fingerprints of the data sets."""
    names = Experiment.__dataclass_fields__
    return json.dumps([marks[str(fields["target"])], {name: fields[name] for name in names}])


def load_results(marks: dict[str, str]) -> dict[str, dict[str, object]]:
    """Finished experiments on the data sets as they are now."""
    if not RESULTS.exists():
        return {}
    # Lines that do not tell their threads were run with --threads 1.
    lines = ({"threads": 1, **json.loads(line)} for line in RESULTS.read_text().splitlines())
    known = [line for line in lines if marks.get(line["target"]) == line["fingerprint"]]
    return {key_of(line, marks): line for line in known}


def to_best_s(seconds: float, best_epoch: int, epochs: int) -> float:
    """Seconds up to the best epoch: epochs take the same time and count from 1."""
    return seconds * best_epoch / max(epochs, 1)


class Results:
    """Finished experiments, to be picked by their fields.

    `seconds_to_best` is made here of what was measured.
    """

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.rows = [
            {
                **row,
                "layers": tuple(row["layers"]),
                "seconds_to_best": to_best_s(row["seconds"], row["best_epoch"], row["epochs"]),
            }
            for row in rows
        ]

    def pick(self, **fields: object) -> list[dict[str, Any]]:
        """Those whose fields are these."""
        return [row for row in self.rows if all(row[k] == v for k, v in fields.items())]


def mean(rows: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """Mean and standard deviation over seeds."""
    values = np.array([row[name] for row in rows], dtype=float)
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
