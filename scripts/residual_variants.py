"""What may follow the network of preset `default`: nothing, kernels on its residuals, trees.

    python scripts/residual_variants.py [--settings ...] [--splits random,family] [--threads 1]

Trains the network of each fold (seed 0), fits every variant to its residuals, and prints tables of
errors for decision 0019. Networks stay in runs/, and the same command goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from shipped import ROOT, markdown, measured_folders, simulated_folders
from sklearn.ensemble import ExtraTreesRegressor

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split, family_splits, random_split
from driple.dataset.store import read_dataset
from driple.inputs import Groupings
from driple.inspector.ensemble import make_inspector
from driple.training.config import PRESETS, Preset
from driple.training.fit import Fitted, RunOptions, fit
from driple.training.loop import describe_data
from driple.training.metrics import score, time_errors_pct
from driple.training.prepare import Part, prepare, preset_for
from driple.training.residuals import LENGTHS, RIDGES, fit_residuals

SEED = 0
NUM_TREES = 300
SETTINGS = ("V100-P1w2/ho-PCIe", "CPU-P1w3/ho-200M", "CPU25-P1w2/ho-200M")
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a variant is fitted to, and where it is asked.

    Attributes:
        contexts: of `train`, `validation` and `test`, scaled, shape [n, C].
        residuals: of `train` and `validation`, scaled labels less scaled outputs, shape [n, 12].
    """

    contexts: dict[str, FloatArray]
    residuals: dict[str, FloatArray]


Variant = Callable[[Known], FloatArray]


def nothing(known: Known) -> FloatArray:
    """The network alone."""
    return np.zeros((len(known.contexts["test"]), known.residuals["train"].shape[1]))


def taken(known: Known) -> FloatArray:
    """As the preset has it: Laplace's kernel, length and ridge by the validation part."""
    x, y = known.contexts, known.residuals
    found = fit_residuals(x["train"], y["train"], x["validation"], y["validation"])
    return nothing(known) if found is None else found.at(x["test"])


def euclidean(known: Known) -> FloatArray:
    """The same with exp(-root mean square / length)."""

    def near(some: FloatArray, length: float) -> FloatArray:
        others = known.contexts["train"]
        squares = np.stack([np.square(others - row).mean(axis=1) for row in some])
        return np.exp(-np.sqrt(squares) / length)

    y, best, least = known.residuals, nothing(known), np.abs(known.residuals["validation"]).mean()
    for length in LENGTHS:
        among = near(known.contexts["train"], length)
        across = near(known.contexts["validation"], length)
        for ridge in RIDGES:
            found = np.linalg.solve(among + ridge * np.eye(len(among)), y["train"])
            left = np.abs(y["validation"] - across @ found).mean()
            if left < least:
                best, least = near(known.contexts["test"], length) @ found, left
    return best


def trees(leaf: int) -> Variant:
    """Extremely randomised trees on the residuals, with so many graphs in a leaf or more."""

    def told(known: Known) -> FloatArray:
        model = ExtraTreesRegressor(
            NUM_TREES, min_samples_leaf=leaf, max_features=0.5, random_state=SEED
        )
        model.fit(known.contexts["train"], known.residuals["train"])
        added: FloatArray = model.predict(known.contexts["test"])
        return added

    return told


VARIANTS: dict[str, Variant] = {
    "the network alone": nothing,
    "taken: Laplace's kernel": taken,
    "kernel of the Euclidean distance": euclidean,
    "extra trees, one graph a leaf": trees(1),
    "extra trees, three graphs a leaf": trees(3),
}


def network(
    dataset: Dataset, split: Split, preset: Preset, groupings: Groupings, threads: int
) -> Fitted:
    """The network of a fold, without residuals, trained unless it is in runs/."""
    run = {"preset": preset.to_dict(), **describe_data(dataset, split, fingerprint(dataset))}
    name = hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:16]
    options = RunOptions(threads=threads, resume=True)
    return fit(
        ROOT / "runs" / f"residuals-{name}",
        run,
        preset.train,
        options,
        prepare=lambda: prepare(
            dataset, split, preset, progress=options.report_inputs, groupings=groupings
        ),
        make_model=lambda made: make_inspector(made.inspector, made.num_groups),
    )


def with_variants(fitted: Fitted) -> dict[str, tuple[float, FloatArray]]:
    """SMAPE, and errors of all iteration times, of each variant on the test part."""
    made = fitted.prepared
    scaled = {
        name: made.target_scaler.transform(fitted.predictions[name], part.base)
        for name, part in made.parts.items()
    }
    known = Known(
        contexts={name: _context(part) for name, part in made.parts.items()},
        residuals={
            name: made.parts[name].scaled.numpy() - scaled[name] for name in ("train", "validation")
        },
    )
    test, found = made.parts["test"], {}
    for name, variant in VARIANTS.items():
        predicted = made.target_scaler.inverse(scaled["test"] + variant(known), test.base)
        scores = score(
            predicted,
            test.labels,
            true_times_s=test.times_s,
            train_labels=made.parts["train"].labels,
        )
        found[name] = (scores.mean_smape_pct, time_errors_pct(predicted, test.times_s))
    return found


def main() -> None:
    """Train what is missing, then print a table for each setting and split."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--splits", default="random,family")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    folders = {**measured_folders(), **simulated_folders()}
    base, groupings = PRESETS["default"], Groupings()
    for setting in arguments.settings.split(","):
        dataset = read_dataset(folders[setting])
        train = replace(base.train, residuals="none", family_folds=0)
        preset = preset_for(dataset, replace(base, train=train))
        for kind in arguments.splits.split(","):
            splits = [("", random_split(dataset.workloads, SEED))]
            if kind == "family":
                splits = family_splits(dataset.examples, SEED)
            found = []
            for family, split in splits:
                fitted = network(dataset, split, preset, groupings, arguments.threads)
                found.append(with_variants(fitted))
                print(f"{setting}, {kind} {family}", flush=True)
            head = [f"{setting}, {kind} split", "SMAPE", "iteration time, mean / median"]
            print("\n".join(markdown(head, [_row(name, found) for name in VARIANTS])))


def _row(name: str, folds: list[dict[str, tuple[float, FloatArray]]]) -> list[str]:
    """Means over the folds, and the median over all workloads, of one variant."""
    times = [fold[name][1] for fold in folds]
    mean, median = np.mean([some.mean() for some in times]), np.median(np.concatenate(times))
    smape = np.mean([fold[name][0] for fold in folds])
    return [name, f"{smape:.1f} %", f"{mean:.1f} / {median:.1f} %"]


def _context(part: Part) -> FloatArray:
    context: FloatArray = part.batch.context.numpy().astype(np.float64)
    return context


if __name__ == "__main__":
    main()
