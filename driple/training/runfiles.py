"""The folder of a training run, from which a killed run resumes with the same result.

    config.json             preset, data set, split and versions; written at the start
    log.jsonl               one line per epoch
    state.safetensors       weights, optimizer and best weights after some epoch, in one file
    checkpoint.safetensors  the result

The log is always written before the state. Best epoch, patience and schedule follow from the log,
and the random numbers of an epoch from the seed and the epoch's number.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from driple.codec import Json
from driple.errors import ConfigError
from driple.files import atomic_write, wrap_os_error
from driple.storedfiles import parse_json, read_json

__all__ = [
    "CHECKPOINT_FILE",
    "LOCK_FILE",
    "EpochRecord",
    "LogWriter",
    "TrainState",
    "library_versions",
    "load_state",
    "make_folder",
    "open_run",
    "save_state",
    "write_file",
]

CONFIG_FILE = "config.json"
LOG_FILE = "log.jsonl"
STATE_FILE = "state.safetensors"
CHECKPOINT_FILE = "checkpoint.safetensors"
LOCK_FILE = "run.lock"  # locked while a process trains here; the file may remain

FORMAT = 1
METADATA_KEY = "driple"


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochRecord:
    """One line of the log.

    Attributes:
        epoch: number of the epoch, from 1.
        train_loss: mean loss over the training part during the epoch, on scaled targets.
        val_loss: loss on the validation part after the epoch.
        lr: learning rate of the epoch.
        seconds: wall time of the epoch, the only field that differs between repetitions.
    """

    epoch: int
    train_loss: float
    val_loss: float
    lr: float
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainState:
    """The part of a run's state that cannot be recomputed.

    Attributes:
        epoch: epochs done.
        model: weights by name.
        best: weights of the epoch with the lowest validation loss.
        optimizer: for each weight, by its position, the optimizer's tensors by name.
    """

    epoch: int
    model: dict[str, Tensor]
    best: dict[str, Tensor]
    optimizer: list[dict[str, Tensor]]


def open_run(
    folder: Path, run: Mapping[str, Json], record: Mapping[str, Json], *, resume: bool
) -> None:
    """Start a run in the folder, or check that the run in it is the same.

    Args:
        folder: folder of the run; created if missing.
        run: everything that determines the result: configuration, data set, split. Must match to
            resume.
        record: additional facts: versions, date, threads.
        resume: whether to continue an existing run.

    Raises:
        ConfigError: the folder holds another run, or holds one and `resume` is false.
    """
    file = folder / CONFIG_FILE
    run = json.loads(json.dumps(run))
    if not file.exists():
        make_folder(folder)
        text = json.dumps({"format": FORMAT, "run": run, **record}, indent=2)
        write_file(file, text.encode() + b"\n")
        return
    if not resume:
        raise ConfigError(
            f"{folder} already holds a training run; resume it, or give another folder"
        )
    try:
        stored = read_json(file)["run"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{file} cannot be read ({error}); delete the folder and train anew"
        ) from error
    if stored != run:
        differing = _first_difference(stored, run)
        raise ConfigError(
            f"the run in {folder} cannot be continued: it differs in {differing}; give the same "
            "options, or another folder"
        )


def save_state(folder: Path, state: TrainState) -> None:
    """Replace the state atomically."""
    tensors = {f"model/{name}": tensor for name, tensor in state.model.items()}
    tensors |= {f"best/{name}": tensor for name, tensor in state.best.items()}
    for i, slots in enumerate(state.optimizer):
        tensors |= {f"optimizer/{i}/{name}": tensor for name, tensor in slots.items()}
    # Copies: tensors of a file must not share memory.
    tensors = {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
    facts = {"format": FORMAT, "epoch": state.epoch, "num_slots": len(state.optimizer)}
    data = safetensors.torch.save(tensors, metadata={METADATA_KEY: json.dumps(facts)})
    write_file(folder / STATE_FILE, data)


def load_state(folder: Path) -> TrainState | None:
    """The last state of the run; None without one.

    Raises:
        ConfigError: the file is damaged, or of a newer format.
    """
    file = folder / STATE_FILE
    if not file.exists():
        return None
    try:
        with safetensors.safe_open(file, framework="pt") as opened:
            facts = parse_json((opened.metadata() or {})[METADATA_KEY].encode())
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  # no dict
        optimizer: list[dict[str, Tensor]] = [{} for _ in range(facts["num_slots"])]
        for name, tensor in tensors.items():
            if name.startswith("optimizer/"):
                _, position, slot = name.split("/")
                optimizer[int(position)][slot] = tensor
        epoch, number = int(facts["epoch"]), int(facts["format"])
    except (SafetensorError, OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise ConfigError(
            f"{file} is damaged ({error}); delete the folder and train anew"
        ) from error
    if number > FORMAT:
        raise ConfigError(f"{file} has format {number}, this Driple reads {FORMAT}; update Driple")
    return TrainState(
        epoch=epoch,
        model=_with_prefix(tensors, "model/"),
        best=_with_prefix(tensors, "best/"),
        optimizer=optimizer,
    )


class LogWriter:
    """Appends epochs to the log of a run."""

    def __init__(self, folder: Path, *, keep_epochs: int) -> None:
        """Keep the first `keep_epochs` lines of the log and drop later ones of a killed run.

        Raises:
            ConfigError: the log has fewer lines.
        """
        self._file = folder / LOG_FILE
        self.records = self._read(keep_epochs) if keep_epochs else []
        text = "".join(_log_line(record) for record in self.records)
        write_file(self._file, text.encode())
        self._stream = self._file.open("a", encoding="utf-8")

    def append(self, record: EpochRecord) -> None:
        """Add one line, flushed to the operating system."""
        self.records.append(record)
        self._stream.write(_log_line(record))
        self._stream.flush()

    def sync(self) -> None:
        """Flush the lines to disk, before a state that depends on them is written."""
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _read(self, keep_epochs: int) -> list[EpochRecord]:
        names = {field.name for field in fields(EpochRecord)}
        records: list[EpochRecord] = []
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
            for line in lines[:keep_epochs]:
                stored = json.loads(line)
                records.append(EpochRecord(**{name: stored[name] for name in names}))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigError(
                f"{self._file} is damaged ({error}); delete the folder and train anew"
            ) from error
        if [record.epoch for record in records] != list(range(1, keep_epochs + 1)):
            raise ConfigError(
                f"{self._file} does not hold the epochs 1 to {keep_epochs}, which the run has "
                "done; delete the folder and train anew"
            )
        return records


def write_file(target: Path, data: bytes) -> None:
    """Write a file of a run atomically.

    Raises:
        ConfigError: it cannot be written; the target is unchanged.
    """
    atomic_write(target, data, error=ConfigError, advice="free some space, or give another folder")


def make_folder(folder: Path) -> None:
    """Create the folder and its parents.

    Raises:
        ConfigError: the folder cannot be created.
    """
    with wrap_os_error(ConfigError, f"make folder {folder}", "give another folder"):
        folder.mkdir(parents=True, exist_ok=True)


def library_versions() -> dict[str, str]:
    """Versions of the libraries that affect the numbers, by name."""
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    for name in ("driple", "numpy", "category_encoders"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def _log_line(record: EpochRecord) -> str:
    return json.dumps(asdict(record)) + "\n"


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _first_difference(stored: Any, wanted: Any, path: Sequence[str] = ()) -> str:
    """First difference of two nested configurations, as `preset.train.seed (0, now 1)`."""
    if isinstance(stored, dict) and isinstance(wanted, dict):
        for key in sorted({*stored, *wanted}):
            if stored.get(key) != wanted.get(key):
                return _first_difference(stored.get(key), wanted.get(key), (*path, key))
    if isinstance(stored, list) or isinstance(wanted, list):
        return ".".join(path)
    return f"{'.'.join(path)} ({stored}, now {wanted})"
