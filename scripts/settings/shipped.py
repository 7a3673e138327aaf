"""Shipped data sets and checkpoints by setting, and the folders of trainings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from driple.cluster.setting import Setting
from driple.dataset.example import Dataset, Example
from driple.dataset.split import Split
from driple.dataset.store import read_datasets
from driple.errors import DripleError
from driple.evaluation import foldfiles
from driple.features import GroupedGraph
from driple.graph.opgraph import OpGraph
from driple.training.config import Preset

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DATASETS = ROOT / "datasets"
SETTINGS = DATASETS / "settings"
FOLDS = DATASETS / "runs" / "evaluation"  # of `driple evaluate`, whose trainings are in runs/
SIMULATED_CPU = SETTINGS / "simulated-cpu"  # the measured settings, simulated
FIRST = "CPU-P1w2/ho-200M"  # the setting with most workloads, from which transfers start
FIRST_SIMULATED = "V100-P1w2/ho-PCIe"  # the paper's, from which transfers start
# The paper's preset waits 1,000 epochs for a better one, which takes hours: where it is trained to
# be compared, or on 640 simulated workloads, it is given these.
SHORTER_PAPER = {"patience_epochs": 100, "max_epochs": 400}
_MEASURED, _SIMULATED = "CPU*/dataset.json", "[!C]*/dataset.json"


def measured_datasets(folder: Path = SETTINGS) -> list[Dataset]:
    """The data sets of all measured settings, the first setting first."""
    return read_datasets(_folders(folder, _MEASURED, FIRST).values())


def measured_folders() -> dict[str, Path]:
    """Folder of each measured setting's data set, the first setting first; nothing is read."""
    return _folders(SETTINGS, _MEASURED, FIRST)


def ops_of(example: Example) -> OpGraph:
    """The graph of ops of an example.

    Raises:
        DripleError: of its graph only the groups were published.
    """
    if isinstance(example.graph, GroupedGraph):
        raise DripleError(f"{example.workload} has groups only; a simulation needs its ops")
    return example.graph


def simulated_folders() -> dict[str, Path]:
    """Folder of each simulated setting's data set, the paper's first setting first."""
    return _folders(SETTINGS, _SIMULATED, FIRST_SIMULATED)


def _folders(folder: Path, pattern: str, first: str) -> dict[str, Path]:
    folders = {
        json.loads(file.read_bytes())["setting"]: file.parent
        for file in sorted(folder.glob(pattern))
    }
    if not folders:
        raise SystemExit(f"no data set {pattern} in {folder}; restore it from git")
    return dict(sorted(folders.items(), key=lambda item: item[0] != first))


def less_patient(paper: Preset) -> Preset:
    """Preset `paper` as it is trained where it is compared or has many labels."""
    shorter = replace(
        paper.train,
        patience_epochs=SHORTER_PAPER["patience_epochs"],
        max_epochs=SHORTER_PAPER["max_epochs"],
    )
    return replace(paper, train=shorter)


def inspector_file(setting: str, preset: str) -> Path:
    """File of the shipped inspector of a setting that was trained with a preset."""
    return ROOT / "checkpoints" / Setting.parse(setting).file_name / f"{preset}.safetensors"


def run_folder(dataset: Dataset, mark: str, split: Split, preset: Preset) -> Path:
    """Folder in which `driple evaluate` trains a preset on a split; nothing is trained twice.

    Args:
        dataset: what is learned.
        mark: its fingerprint.
        split: its parts.
        preset: as it is, or with another seed.
    """
    return foldfiles.run_folder(FOLDS, dataset, mark, split, preset)
