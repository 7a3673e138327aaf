"""TRAIN: data set + split + preset -> checkpoint, resumable to the bit (paper, section 3.3).

    Dataset, Split, Preset --prepare--> tensors --epochs--> best weights --score--> Checkpoint

Entry point: `train`. The random numbers of an epoch (order of the batches, dropout) depend on the
seed and the number of the epoch only, so a run that is killed and resumed gives the same weights
and the same log as one that was left alone, on the same machine with the same number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split
from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.inputs import Groupings
from driple.inspector.checkpoint import Checkpoint, save_checkpoint
from driple.training.config import Preset
from driple.training.metrics import Scores, score
from driple.training.prepare import Prepared, prepare, split_examples
from driple.training.runfiles import (
    CHECKPOINT_FILE,
    EpochRecord,
    library_versions,
    load_state,
    open_run,
)
from driple.training.trainer import Progress, ProgressCallback, Trainer, predict_scaled

__all__ = ["Progress", "ProgressCallback", "TrainResult", "train"]

# Labels of a mixed data set are called what the least direct of them are.
DIRECTNESS = ("measured", "published", "simulated")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainResult:
    """A finished run.

    Attributes:
        checkpoint: best weights, and all that is needed to predict.
        history: one record per epoch.
        scores: errors on each part of the split, by its name.
        predictions: by part, shape [n, 12], in the targets' units.
        workloads: by part, names of the rows of `predictions`.
        best_epoch: epoch of the checkpoint's weights.
        stopped_by: `patience`, or `max_epochs` (training longer might have helped).
    """

    checkpoint: Checkpoint
    history: tuple[EpochRecord, ...]
    scores: dict[str, Scores]
    predictions: dict[str, npt.NDArray[np.float64]]
    workloads: dict[str, tuple[str, ...]]
    best_epoch: int
    stopped_by: Literal["patience", "max_epochs"]

    @property
    def seconds(self) -> float:
        """Wall time of all epochs."""
        return sum(record.seconds for record in self.history)


def train(
    dataset: Dataset,
    split: Split,
    preset: Preset,
    out_dir: str | Path,
    *,
    resume: bool = False,
    progress: ProgressCallback | None = None,
    threads: int | None = None,
    groupings: Groupings | None = None,
    save_every_s: float = 30.0,
    clock: Callable[[], float] = time.monotonic,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> TrainResult:
    """Train an inspector; write configuration, log, state and checkpoint into `out_dir`.

    Args:
        dataset: examples of one setting.
        split: its training, validation and test rows.
        preset: how inputs are built, the model, and how it is trained.
        out_dir: folder of the run (`runfiles.py`); made if need be.
        resume: go on with the run in `out_dir`, if there is one.
        progress: called after every graph and every epoch.
        threads: CPU threads of torch while this runs; None leaves them as they are.
        groupings: those of other runs on the same graphs, to which this one's are added.
        save_every_s: seconds between saved states; the last epoch's is always saved.
        clock: seconds from any start, for durations.
        now: date of the checkpoint.

    Raises:
        ConfigError: another run is in `out_dir`, it cannot be written, or the loss is no longer
            a finite number.
        DatasetError: an empty training or validation part, or a target that is always 0.
        GraphError: a graph without nodes.
    """
    report = progress or (lambda _: None)
    folder = Path(out_dir)
    run = _describe_run(dataset, split, preset)
    record = {"versions": library_versions(), "threads": threads, "date": _date(now)}
    open_run(folder, run, record, resume=resume)
    state = load_state(folder) if resume else None
    with _torch_settings(threads):
        prepared = prepare(
            dataset,
            split,
            preset,
            progress=lambda done, total: report(Progress(stage="inputs", done=done, total=total)),
            groupings=groupings,
        )
        trainer = Trainer(prepared, preset.train, folder, state)
        try:
            trainer.run(report, clock, save_every_s)
        finally:
            trainer.log.close()
        predictions = {
            name: prepared.target_scaler.inverse(predict_scaled(trainer.best_model(), part.batch))
            for name, part in prepared.parts.items()
        }
    scores = _scores(prepared, predictions)
    checkpoint = _checkpoint(
        dataset,
        preset,
        prepared,
        trainer,
        graphs=[example.graph for example in split_examples(dataset, split)["train"]],
        scores=scores,
        run=run,
        date=_date(now),
    )
    save_checkpoint(checkpoint, folder / CHECKPOINT_FILE)
    return TrainResult(
        checkpoint=checkpoint,
        history=tuple(trainer.log.records),
        scores=scores,
        predictions=predictions,
        workloads={name: part.workloads for name, part in prepared.parts.items()},
        best_epoch=trainer.best_epoch,
        stopped_by="patience" if trainer.out_of_patience else "max_epochs",
    )


def _scores(
    prepared: Prepared, predictions: dict[str, npt.NDArray[np.float64]]
) -> dict[str, Scores]:
    train_labels = prepared.parts["train"].labels
    return {
        name: score(
            predictions[name], part.labels, true_times_s=part.times_s, train_labels=train_labels
        )
        for name, part in prepared.parts.items()
    }


def _checkpoint(
    dataset: Dataset,
    preset: Preset,
    prepared: Prepared,
    trainer: Trainer,
    *,
    graphs: Sequence[OpGraph],
    scores: dict[str, Scores],
    run: dict[str, Any],
    date: str,
) -> Checkpoint:
    metrics = {}
    for name, part in scores.items():
        metrics[f"{name}_nrmse"] = part.mean_nrmse
        metrics[f"{name}_smape_pct"] = part.mean_smape_pct
        metrics[f"{name}_iteration_time_mape_pct"] = part.iteration_time_mape_pct
    sources = {example.label_source for example in dataset.examples}
    return Checkpoint(
        weights={name: tensor.numpy().copy() for name, tensor in trainer.best.items()},
        config=prepared.inspector,
        input_config=preset.input,
        num_groups=prepared.num_groups,
        op_type_table=prepared.op_type_table,
        input_scaler=prepared.input_scaler,
        target_scaler=prepared.target_scaler,
        setting=dataset.setting,
        provenance=max(sources, key=DIRECTNESS.index),
        trained_on={
            "data_set": dataset.name,
            "fingerprint": run["data_set"]["fingerprint"],
            "num_workloads": len(dataset.examples),
            "num_train": len(prepared.parts["train"].workloads),
            "label_sources": sorted(sources),
            "range": {
                "num_nodes": _range([graph.num_nodes for graph in graphs]),
                "tensor_bytes": _range([int(graph.tensor_bytes.sum()) for graph in graphs]),
            },
            "seed": preset.train.seed,
            "epochs": trainer.epoch,
            "best_epoch": trainer.best_epoch,
            "date": date,
        },
        metrics=metrics,
        preset=preset.name,
        versions=library_versions(),
    )


def _describe_run(dataset: Dataset, split: Split, preset: Preset) -> dict[str, Any]:
    """All that decides the result, as JSON."""
    return {
        "preset": preset.to_dict(),
        "data_set": {
            "name": dataset.name,
            "setting": dataset.setting,
            "fingerprint": fingerprint(dataset),
        },
        "split": {
            name: [example.workload for example in part]
            for name, part in split_examples(dataset, split).items()
        },
    }


def _range(values: list[int]) -> list[int]:
    """Least and most."""
    return [min(values), max(values)]


def _date(now: Callable[[], datetime]) -> str:
    return now().date().isoformat()


@contextmanager
def _torch_settings(threads: int | None) -> Iterator[None]:
    """Use so many threads, and leave torch's threads and random generator as they were."""
    if threads is not None and threads < 1:
        raise ConfigError(f"--threads must be at least 1, got {threads}")
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        try:
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            torch.set_num_threads(before)
