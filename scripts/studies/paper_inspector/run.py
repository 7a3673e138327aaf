"""Measure what limits preset `paper`: labels, depth at initialisation, scaling and initial gates.

    python -m scripts.studies.paper_inspector.run             # labels and depth, a minute
    python -m scripts.studies.paper_inspector.run --train     # and two trainings, 7 minutes each
    python -m scripts.studies.paper_inspector.run --of FOLDER --name "preset paper"
                                      # only the result of `driple train -o FOLDER`

Appends to results.jsonl. Trainings run on one thread and resume from runs/paper_inspector.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from driple.dataset.example import Dataset
from driple.dataset.split import random_split
from driple.dataset.store import read_datasets
from driple.inspector.checkpoint import load_checkpoint
from driple.inspector.ensemble import make_inspector
from driple.inspector.model import Inspector
from driple.training.config import AUTHORS, Preset
from driple.training.metrics import smape_pct
from driple.training.prepare import PARTS, PreparedData, prepare, preset_for
from driple.training.run import RunOptions, fit
from driple.training.runfiles import CHECKPOINT_FILE, CONFIG_FILE, LOG_FILE
from scripts.settings.shipped import ROOT, inspector_file, measured_folders, simulated_folders
from scripts.studies.kit.results import Row, add_result

RESULTS = Path(__file__).with_name("results.jsonl")
SETTINGS = ("V100-P1w2/ho-PCIe", "CPU-P1w2/ho-200M")
LAYERS = (1, 2, 6, 15, 25, 35, 50)
SMALLEST_LABEL = 1e-9
OPEN_GATE = -2.0  # bias of the reset and update gates: most of h passes each layer
GATE_WEIGHT_SHARE = 0.3
FloatArray = npt.NDArray[np.float64]


def scaled_paper(max_epochs: int) -> Preset:
    """The authors' settings with inputs and targets as standardised logarithms."""
    paper = AUTHORS
    return replace(
        paper,
        input=replace(paper.input, features="log"),
        inspector=replace(paper.inspector, output="linear"),
        train=replace(
            paper.train,
            input_scaling="standard",
            target_scaling="log",
            clip_norm=1.0,
            schedule="cosine",
            max_epochs=max_epochs,
        ),
    )


def open_gates(model: Inspector) -> Inspector:
    """Initial gates that pass h on: the new gate's input weights are the identity."""
    width = model.config.hidden
    for stage in (model.first, cast(nn.Module, model.shared)):
        gru = cast(nn.GRUCell, stage.gru)
        with torch.no_grad():
            gru.weight_ih[2 * width :] = torch.eye(width)
            gru.weight_ih[width : 2 * width] *= GATE_WEIGHT_SHARE
            gru.weight_hh[width : 2 * width] *= GATE_WEIGHT_SHARE
            gru.bias_ih[: 2 * width] = OPEN_GATE
            gru.bias_ih[2 * width :] = 0
            gru.bias_hh.zero_()
    return model


def labels(setting: str, prepared: PreparedData) -> Row:
    """SMAPE of constants, and of the median label of each distinct input."""
    groups: dict[bytes, list[int]] = {}
    rows = 0
    for part in prepared.parts.values():
        for x, adjacency in zip(part.batch.x, part.batch.adjacency, strict=True):
            groups.setdefault(x.numpy().tobytes() + adjacency.numpy().tobytes(), []).append(rows)
            rows += 1
    values = np.concatenate([part.labels for part in prepared.parts.values()])
    best = np.empty_like(values)
    for members in groups.values():
        best[members] = log_median(values[members])
    train, test = prepared.parts["train"].labels, prepared.parts["test"].labels
    shipped = load_checkpoint(inspector_file(setting, "paper"))
    return {
        "what": "labels",
        "setting": setting,
        "workloads": rows,
        "inputs": len(groups),
        "shared": sum(len(some) for some in groups.values() if len(some) > 1),
        "least_pct": mean_smape_pct(best, values),
        "median_pct": mean_smape_pct(np.broadcast_to(log_median(train), test.shape), test),
        "mean_pct": mean_smape_pct(np.broadcast_to(train.mean(axis=0), test.shape), test),
        "shipped_train_pct": shipped.metrics["train_smape_pct"],
        "shipped_test_pct": shipped.metrics["test_smape_pct"],
        "shipped_epochs": shipped.trained_on.epochs,
        "shipped_best_epoch": shipped.trained_on.best_epoch,
    }


def log_median(values: FloatArray) -> FloatArray:
    """Exponential of the median logarithm of each target, shape [12]."""
    logs = np.log(np.maximum(values, SMALLEST_LABEL))
    result: FloatArray = np.exp(np.median(logs, axis=0))
    return result


def mean_smape_pct(predicted: FloatArray, true: FloatArray) -> float:
    """SMAPE over the twelve targets."""
    return float(smape_pct(predicted, true).mean())


def spread(setting: str, prepared: PreparedData) -> Row:
    """Standard deviation between graphs of the mean embedding, by layer, of an untrained model."""
    torch.manual_seed(0)
    model = Inspector(prepared.inspector, prepared.num_groups).eval()
    batch = prepared.parts["train"].batch
    between, done = [], 1
    with torch.no_grad():
        structure = model._structure(batch)
        h = model.first(batch.x, structure)
        for layer in LAYERS:
            h = model._repeated(model.shared, h, structure, layer - done)
            done = layer
            between.append(float(h.mean(dim=1).std(dim=0).mean()))
        outputs = model.head(model.readout(h, batch.mask), batch)
    return {
        "what": "spread",
        "setting": setting,
        "layers": list(LAYERS),
        "between": between,
        "outputs": float(outputs.std(dim=0).mean()),
    }


def training(
    name: str,
    prepared: PreparedData,
    preset: Preset,
    setting: str,
    start: Callable[[Inspector], Inspector],
) -> Row:
    """Train a variant; its losses by epoch and its errors."""

    def model(data: PreparedData) -> nn.Module:
        return start(cast(Inspector, make_inspector(data.inspector, data.num_groups)))

    fitted = fit(
        ROOT / "runs" / "paper_inspector" / name,
        {"variant": name, "preset": preset.to_dict(), "setting": setting},
        preset.train,
        RunOptions(resume=True, threads=1),
        prepare=lambda: prepared,
        make_model=model,
    )
    return {
        "what": "training",
        "setting": setting,
        "variant": name,
        "epochs": len(fitted.history),
        "planned_epochs": preset.train.max_epochs,
        "seconds_per_epoch": float(np.median([record.seconds for record in fitted.history])),
        "train_loss": [record.train_loss for record in fitted.history],
        "val_loss": [record.val_loss for record in fitted.history],
        **{f"{part}_pct": scores.mean_smape_pct for part, scores in fitted.scores.items()},
    }


def of_folder(folder: Path, name: str) -> Row:
    """The same of a finished run of `driple train`."""
    lines = (folder / LOG_FILE).read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    checkpoint = load_checkpoint(folder / CHECKPOINT_FILE)
    preset = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))["run"]["preset"]
    return {
        "what": "training",
        "setting": checkpoint.setting,
        "variant": name,
        "epochs": len(records),
        "planned_epochs": preset["train"]["max_epochs"],
        "growth_share": preset["train"].get("growth_share", 0),
        "best_epoch": checkpoint.trained_on.best_epoch,
        "seconds_per_epoch": float(np.median([record["seconds"] for record in records])),
        "seconds": sum(record["seconds"] for record in records),
        "train_loss": [record["train_loss"] for record in records],
        "val_loss": [record["val_loss"] for record in records],
        **{f"{part}_pct": checkpoint.metrics[f"{part}_smape_pct"] for part in PARTS},
    }


def prepared_for(dataset: Dataset, preset: Preset) -> PreparedData:
    """Inputs and targets of the random split of seed 0."""
    split = random_split(dataset.workloads, 0)
    return prepare(dataset, split, preset_for(dataset, preset), progress=lambda done, total: None)


def main() -> None:
    """Write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true", help="the two trainings too")
    parser.add_argument("--of", type=Path, help="folder of a finished `driple train`")
    parser.add_argument("--name", default="preset paper", help="variant of that row")
    arguments = parser.parse_args()
    if arguments.of is not None:
        add_result(RESULTS, of_folder(arguments.of, arguments.name))
        return
    folders = measured_folders() | simulated_folders()
    for setting in SETTINGS:
        dataset = read_datasets([folders[setting]])[0]
        prepared = prepared_for(dataset, scaled_paper(1))
        add_result(RESULTS, labels(setting, prepared))
        add_result(RESULTS, spread(setting, prepared))
    if arguments.train:  # on the last setting, the measured one
        variants = {"scaled": (150, lambda model: model), "open gates": (110, open_gates)}
        for name, (epochs, start) in variants.items():
            row = training(name, prepared, scaled_paper(epochs), setting, start)
            add_result(RESULTS, row)


if __name__ == "__main__":
    main()
