"""Files of a fold and its training, under a hash of everything that decides it.

data set, split, method, what the method depends on --fold_key--> folds/KEY.json.gz, runs/KEY

A finished fold is a gzipped JSON object: hundreds of them lie in a checkout.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from driple.codec import from_json, json_field, to_dict
from driple.dataset.example import Dataset
from driple.dataset.split import Split
from driple.errors import ConfigError
from driple.training.config import Preset
from driple.training.metrics import ScoresRecord
from driple.training.runfiles import write_file
from driple.training.uncertainty import Uncertainty

__all__ = ["FORMAT", "FoldRecord", "fold_file", "fold_key", "read_fold", "run_folder", "write_fold"]

FORMAT = 1  # of a fold's file; raise it when the same fold would come out otherwise
MOST_BYTES = 64 * 2**20  # of a fold, unpacked; ours have less than 0.1 MB
_ADVICE = "delete it, and run again"


@dataclass(frozen=True, kw_only=True, slots=True)
class FoldRecord:
    """A finished fold as its file holds it; the attributes are those of `benchmark.Fold`.

    Attributes:
        fold: family that was held out, and seed, in words.
        test: errors on the test part.
        epochs: number of epochs trained.
        versions: versions of what made it, by name.
        format: number of the format.
    """

    method: str
    fold: str
    test: ScoresRecord
    validation: ScoresRecord | None
    train_seconds: float
    epochs: int
    best_epoch: int
    stopped_by: str
    predictions: dict[str, list[float]]
    # Files from before there were intervals lack it.
    sureness: Uncertainty | None = field(default=None, metadata=json_field(may_lack=True))
    versions: Mapping[str, str]
    format: int = FORMAT


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
    """Folder in which a preset is trained on a split, so that nothing is trained twice.

    Args:
        work_dir: working folder of the benchmark.
        dataset: what is learned.
        mark: its fingerprint.
        split: its parts.
        preset: as it is, or with another seed.
    """
    key = fold_key(dataset, mark, split, preset.name, preset.config_hash())
    return work_dir / "runs" / key


def fold_file(work_dir: Path, key: str) -> Path:
    """File of a finished fold."""
    return work_dir / "folds" / f"{key}.json.gz"


def write_fold(file: Path, fold: FoldRecord) -> None:
    """Write a finished fold; the same one gives the same bytes.

    Raises:
        ConfigError: it cannot be written; nothing is left half-written.
    """
    write_file(file, gzip.compress(json.dumps(to_dict(fold)).encode() + b"\n", mtime=0))


def read_fold(file: Path) -> FoldRecord | None:
    """A finished fold; None if it has to be made.

    Raises:
        ConfigError: the file holds no fold, is damaged, or swells beyond all folds.
    """
    if not file.exists():
        return None
    try:
        with gzip.open(file) as stream:
            unpacked = stream.read(MOST_BYTES + 1)
        if len(unpacked) > MOST_BYTES:
            raise ValueError(f"it unpacks to more than {MOST_BYTES} bytes")
        fold = json.loads(unpacked)
        if not isinstance(fold, dict):
            raise ValueError("it holds no JSON object")
    except (OSError, EOFError, ValueError, RecursionError, zlib.error) as error:
        raise ConfigError(f"{file} is damaged ({error}); {_ADVICE}") from error
    return from_json(FoldRecord, fold, where=f"{file} is damaged", advice=_ADVICE)
