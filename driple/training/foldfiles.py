"""Where the arena keeps a fold and its training: under a hash of all that decides it.

data set, split, method, what the method depends on --fold_key--> folds/KEY.json, runs/KEY
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from driple.dataset.example import Dataset
from driple.dataset.split import Split
from driple.training.config import Preset

__all__ = ["FORMAT", "fold_key", "run_folder"]

FORMAT = 1  # of a fold's file; raise it when the same fold would come out otherwise


def fold_key(dataset: Dataset, mark: str, split: Split, method: str, decides: str) -> str:
    """Name of a fold's file and run: method, and a hash of all that decides the fold.

    Args:
        dataset: what is learned.
        mark: its fingerprint.
        split: its rows, which count by workload.
        method: name of the method.
        decides: hash of a preset with overrides applied, or what else a method depends on.
    """
    workloads = dataset.workloads
    parts = [
        sorted(workloads[i] for i in rows) for rows in (split.train, split.validation, split.test)
    ]
    digest = hashlib.sha256(json.dumps([FORMAT, mark, parts, decides]).encode()).hexdigest()
    return f"{method}-{digest[:16]}"


def run_folder(work_dir: Path, dataset: Dataset, mark: str, split: Split, preset: Preset) -> Path:
    """Where the arena trains a preset on a split, so that nothing is trained twice.

    Args:
        work_dir: of the arena.
        dataset: what is learned.
        mark: its fingerprint.
        split: its parts.
        preset: as it is, or with another seed.
    """
    key = fold_key(dataset, mark, split, preset.name, preset.config_hash())
    return work_dir / "runs" / key
