"""Common part of training and transfer: prepared tensors + a model -> best weights.

    Prepared, model --epochs (resumable)--> best weights --predict, score--> Fitted

Entry point: `fit`. The caller decides the inputs and the trainable weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from driple.codec import Json
from driple.dataset.example import Dataset, Example
from driple.errors import ConfigError
from driple.inspector.residuals import Residuals
from driple.inspector.trained_on import TrainedOn
from driple.locks import locked
from driple.training.config import TrainConfig
from driple.training.loop import Progress, ProgressCallback, Trainer, predict_scaled
from driple.training.metrics import Scores, check_scale, score
from driple.training.prepare import PreparedData
from driple.training.residuals import fit_residuals
from driple.training.runfiles import (
    LOCK_FILE,
    EpochRecord,
    library_versions,
    load_state,
    make_folder,
    open_run,
)

FloatArray = npt.NDArray[np.float64]

__all__ = ["DIRECTNESS", "Fitted", "RunOptions", "fit", "metrics_of", "trained_on_facts"]

# The provenance of a mixed data set is that of its least direct labels.
DIRECTNESS = ("measured", "published", "simulated")


def _ignore(_: Progress) -> None:
    """Progress callback that does nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions:
    """Options of a run that do not change its result.

    Attributes:
        resume: continue the run in the folder, if there is one.
        progress: called after every graph and every epoch.
        threads: CPU threads of torch during the run; None keeps torch's setting.
        save_every_s: seconds between saved states; the last epoch's is always saved.
        clock: seconds from any start, for durations.
        now: date of the checkpoint.
    """

    resume: bool = False
    progress: ProgressCallback = _ignore
    threads: int | None = None
    save_every_s: float = 30.0
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    @property
    def date(self) -> str:
        """Today, as the checkpoint records it."""
        return self.now().date().isoformat()

    def report_inputs(self, done: int, total: int) -> None:
        """Report the number of built graphs."""
        self.progress(Progress(stage="inputs", done=done, total=total))


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """A finished run, before it becomes a checkpoint.

    Attributes:
        prepared: tensors of the training and the scores.
        weights: best weights, by name.
        residuals: correction of the model's outputs; None without one.
        history: one record per epoch.
        scores: errors on each part of the split, by its name.
        predictions: predictions by part, shape [n, 12], in the targets' units.
        best_epoch: epoch of the weights.
        stopped_by: `patience`, or `max_epochs` (training longer might have helped).
    """

    prepared: PreparedData
    weights: dict[str, Tensor]
    residuals: Residuals | None
    history: tuple[EpochRecord, ...]
    scores: dict[str, Scores]
    predictions: dict[str, npt.NDArray[np.float64]]
    best_epoch: int
    stopped_by: Literal["patience", "max_epochs"]


def fit(
    folder: Path,
    run: Mapping[str, Json],
    config: TrainConfig,
    options: RunOptions,
    *,
    prepare: Callable[[], PreparedData],
    make_model: Callable[[PreparedData], nn.Module],
) -> Fitted:
    """Run a training in its folder, or continue it.

    Args:
        folder: folder of the run (`runfiles.py`); created if missing.
        run: everything that determines the result, as JSON.
        config: configuration of the training.
        options: options without effect on the result.
        prepare: builds inputs and targets.
        make_model: builds the model from batches to scaled targets [B, 12]; parameters without
            gradient are frozen. Called with the seed set.

    Raises:
        ConfigError: the folder holds or runs another training, it cannot be written, or the loss is
            not finite.
    """
    make_folder(folder)
    held = f"another training is at work in {folder}; wait for it to end, or use another folder"
    with locked(folder / LOCK_FILE, error=ConfigError, held=held):
        return _fit(folder, run, config, options, prepare=prepare, make_model=make_model)


def _fit(
    folder: Path,
    run: Mapping[str, Json],
    config: TrainConfig,
    options: RunOptions,
    *,
    prepare: Callable[[], PreparedData],
    make_model: Callable[[PreparedData], nn.Module],
) -> Fitted:
    """`fit` with the folder locked."""
    # Weights depend on the number of threads: sums in another order differ in their last bits.
    threads = torch.get_num_threads() if options.threads is None else options.threads
    versions: dict[str, Json] = dict(library_versions())
    record: dict[str, Json] = {"versions": versions, "threads": threads, "date": options.date}
    open_run(folder, run, record, resume=options.resume)
    state = load_state(folder) if options.resume else None
    with _torch_settings(options.threads):
        prepared = prepare()
        check_scale(prepared.parts["train"].labels.max(axis=0))
        trainer = Trainer(prepared, config, folder, state, make_model=lambda: make_model(prepared))
        try:
            trainer.run(options.progress, options.clock, options.save_every_s)
        finally:
            trainer.log.close()
        model = trainer.best_model()
        outputs = {
            name: predict_scaled(model, part.batch).astype(np.float64)
            for name, part in prepared.parts.items()
        }
    residuals = _residuals(prepared, outputs) if config.residuals == "kernel" else None
    predictions = {}
    for name, part in prepared.parts.items():
        scaled = outputs[name]
        if residuals is not None:
            scaled = scaled + residuals.at(part.batch.context.numpy())
        predictions[name] = prepared.target_scaler.inverse(scaled, part.base)
    return Fitted(
        prepared=prepared,
        weights=trainer.best,
        residuals=residuals,
        history=tuple(trainer.log.records),
        scores=_scores(prepared, predictions),
        predictions=predictions,
        best_epoch=trainer.best_epoch,
        stopped_by="patience" if trainer.out_of_patience else "max_epochs",
    )


def metrics_of(scores: dict[str, Scores]) -> dict[str, float]:
    """Errors for the checkpoint: of each part, over all twelve targets."""
    metrics = {}
    for name, part in scores.items():
        metrics[f"{name}_nrmse"] = part.mean_nrmse
        metrics[f"{name}_smape_pct"] = part.mean_smape_pct
        metrics[f"{name}_iteration_time_mape_pct"] = part.iteration_time_mape_pct
    return metrics


def trained_on_facts(
    dataset: Dataset, mark: str, examples: list[Example], fitted: Fitted
) -> TrainedOn:
    """Record of the training data for a checkpoint: set, sizes, sources, range of the graphs.

    For simulated labels it includes the simulator's error on published iteration times.

    Args:
        dataset: the data set.
        mark: its fingerprint.
        examples: the training part.
        fitted: the run.
    """
    facts = fitted.prepared.parts["train"].facts
    common = set.intersection(*(set(some) for some in facts))
    ranges = {name: [some[name] for some in facts] for name in sorted(common)}
    simulated_by = (dataset.about.calibration or {}).get("fitted")
    return TrainedOn(
        data_set=dataset.name,
        fingerprint=mark,
        num_workloads=len(dataset.examples),
        num_train=len(examples),
        label_sources=tuple(sorted({example.label_source for example in dataset.examples})),
        range={name: (min(values), max(values)) for name, values in ranges.items()},
        epochs=len(fitted.history),
        best_epoch=fitted.best_epoch,
        label_error=dataset.about.iteration_time_error,
        labels_fitted=simulated_by if isinstance(simulated_by, str) else None,
    )


def _residuals(prepared: PreparedData, outputs: dict[str, FloatArray]) -> Residuals | None:
    """Kernel ridge regression of the model's training residuals on the context."""
    arrays = []
    for name in ("train", "validation"):
        part = prepared.parts[name]
        arrays += [part.batch.context.numpy(), part.scaled.numpy() - outputs[name]]
    return fit_residuals(*arrays)


def _scores(
    prepared: PreparedData, predictions: dict[str, npt.NDArray[np.float64]]
) -> dict[str, Scores]:
    train_labels = prepared.parts["train"].labels
    return {
        name: score(
            predictions[name], part.labels, true_times_s=part.times_s, train_labels=train_labels
        )
        for name, part in prepared.parts.items()
    }


@contextmanager
def _torch_settings(threads: int | None) -> Iterator[None]:
    """Use this many threads, and restore torch's threads and random generator afterwards."""
    if threads is not None and threads < 1:
        raise ConfigError(f"--set threads must be at least 1, got {threads}")
    before = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        try:
            if threads is not None:
                torch.set_num_threads(threads)
            yield
        finally:
            torch.set_num_threads(before)
