"""TRAIN: data set + split + preset -> checkpoint, resumable to the bit (paper, section 3.3).

    Dataset, Split, Preset --prepare--> tensors --epochs--> best weights --score--> Checkpoint

Entry point: `train`. The random numbers of an epoch (order of the batches, dropout) depend on the
seed and the number of the epoch only, so a killed and resumed run gives the same weights and the
same log as an uninterrupted run, on the same machine with the same number of threads.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from driple.codec import Json
from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split
from driple.errors import CheckpointError
from driple.features import FEATURES_VERSION, Groupings
from driple.files import wrap_os_error
from driple.inspector.checkpoint import Checkpoint, save_checkpoint
from driple.inspector.ensemble import Ensemble, make_inspector
from driple.inspector.model import Inspector
from driple.inspector.predict import beyond_training
from driple.training.authors import read_authors_weights
from driple.training.config import Preset, Start
from driple.training.conformal import calibrate
from driple.training.loop import Progress, ProgressCallback
from driple.training.metrics import Scores, score
from driple.training.prepare import PreparedData, prepare, preset_for, split_examples
from driple.training.run import DIRECTNESS, Fitted, RunOptions, fit, metrics_of, trained_on_facts
from driple.training.runfiles import CHECKPOINT_FILE, EpochRecord, library_versions
from driple.training.start import start_passing
from driple.training.uncertainty import Uncertainty

__all__ = ["Progress", "ProgressCallback", "RunOptions", "TrainResult", "describe_data", "train"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainResult:
    """A finished run.

    Attributes:
        checkpoint: best weights, and everything needed to predict.
        history: one record per epoch.
        scores: errors on each part of the split, by its name.
        predictions: predictions by part, shape [n, 12], in the targets' units.
        workloads: workloads by part, names of the rows of `predictions`.
        best_epoch: epoch of the checkpoint's weights.
        stopped_by: `patience`, or `max_epochs` (training longer might have helped).
        uncertainty: intervals and warnings for the test workloads; None without intervals or test
            part.
    """

    checkpoint: Checkpoint
    history: tuple[EpochRecord, ...]
    scores: dict[str, Scores]
    predictions: dict[str, npt.NDArray[np.float64]]
    workloads: dict[str, tuple[str, ...]]
    best_epoch: int
    stopped_by: Literal["patience", "max_epochs"]
    uncertainty: Uncertainty | None

    @classmethod
    def of(cls, fitted: Fitted, checkpoint: Checkpoint) -> TrainResult:
        """The result of a fit, with its checkpoint."""
        return cls(
            checkpoint=checkpoint,
            history=fitted.history,
            scores=fitted.scores,
            predictions=fitted.predictions,
            workloads={name: part.workloads for name, part in fitted.prepared.parts.items()},
            best_epoch=fitted.best_epoch,
            stopped_by=fitted.stopped_by,
            uncertainty=_uncertainty(fitted, checkpoint),
        )

    @property
    def seconds(self) -> float:
        """Wall time of all epochs."""
        return sum(record.seconds for record in self.history)

    def test_scores(self, dataset: Dataset, train_rows: npt.NDArray[np.int64]) -> Scores:
        """Errors on the test part, with NRMSE scaled by the largest labels of given rows.

        This makes runs with different training rows comparable.

        Args:
            dataset: data set of the run.
            train_rows: rows whose largest labels scale NRMSE.
        """
        row_of = {name: i for i, name in enumerate(dataset.workloads)}
        rows = [row_of[name] for name in self.workloads["test"]]
        labels = dataset.targets()
        return score(
            self.predictions["test"],
            labels[rows],
            true_times_s=dataset.iteration_times_s()[rows],
            train_labels=labels[train_rows],
        )


def train(
    dataset: Dataset,
    split: Split,
    preset: Preset,
    out_dir: str | Path,
    *,
    options: RunOptions | None = None,
    groupings: Groupings | None = None,
    init: str | Path | None = None,
) -> TrainResult:
    """Train an inspector; write configuration, log, state and checkpoint into `out_dir`.

    Args:
        dataset: examples of one setting.
        split: its training, validation and test rows.
        preset: inputs, model and training.
        out_dir: folder of the run (`runfiles.py`); created if missing.
        options: resuming, progress and threads.
        groupings: cache of groupings, shared by runs on the same graphs.
        init: file with the authors' published weights as initial weights; random by default.

    Raises:
        CheckpointError: `init` does not fit the preset.
        ConfigError: another run is in `out_dir`, it cannot be written, or the loss is no longer
            a finite number.
        DatasetError: an empty training or validation part, or a target that is always 0.
        GraphError: a graph without nodes.
    """
    folder, options = Path(out_dir), options or RunOptions()
    groupings = groupings or Groupings()
    preset = preset_for(dataset, preset)
    mark = fingerprint(dataset)
    run = {"preset": preset.to_dict(), **describe_data(dataset, split, mark)}
    if init is not None:
        run["init"] = _file_hash(Path(init))
        # Check the weights before the folder is created.
        read_authors_weights(init, preset.inspector, preset.input.num_groups)
    fitted = fit(
        folder,
        run,
        preset.train,
        options,
        prepare=lambda: prepare(
            dataset, split, preset, progress=options.report_inputs, groupings=groupings
        ),
        make_model=lambda prepared: _model(prepared, init, preset.train.start),
    )
    examples = split_examples(dataset, split)["train"]
    facts = trained_on_facts(dataset, mark, examples, fitted)
    prepared = fitted.prepared
    intervals = None
    if preset.train.family_folds:
        intervals = calibrate(
            dataset, split, preset, fitted, folder, options=options, groupings=groupings
        )
    checkpoint = Checkpoint(
        weights={name: tensor.numpy().copy() for name, tensor in fitted.weights.items()},
        config=prepared.inspector,
        input_config=preset.input,
        num_groups=prepared.num_groups,
        op_type_table=prepared.op_type_table,
        law=prepared.law,
        residuals=fitted.residuals,
        intervals=intervals,
        input_scaler=prepared.input_scaler,
        target_scaler=prepared.target_scaler,
        setting=dataset.setting,
        provenance=max(facts.label_sources, key=DIRECTNESS.index),
        trained_on=replace(facts, seed=preset.train.seed, date=options.date),
        metrics=metrics_of(fitted.scores),
        preset=preset.name,
        versions=library_versions(),
        reader_version=dataset.reader_version,
        features_version=FEATURES_VERSION,
    )
    save_checkpoint(checkpoint, folder / CHECKPOINT_FILE)
    return TrainResult.of(fitted, checkpoint)


def _uncertainty(fitted: Fitted, checkpoint: Checkpoint) -> Uncertainty | None:
    """Intervals and warnings of the inspector for its test workloads."""
    part, intervals = fitted.prepared.parts.get("test"), checkpoint.intervals
    if part is None or intervals is None:
        return None
    distances = [intervals.distance(context) for context in part.batch.context.numpy()]
    warnings = [
        tuple(
            beyond_training(
                checkpoint.trained_on, intervals, facts, unknown, distance, num_ops=num_ops
            )
        )
        for facts, num_ops, unknown, distance in zip(
            part.facts, part.num_ops, part.unknown_op_types, distances, strict=True
        )
    ]
    return Uncertainty(
        level=intervals.level,
        near=tuple(intervals.near.tolist()),
        far=None if intervals.far is None else tuple(intervals.far.tolist()),
        threshold=intervals.threshold,
        reach=intervals.reach,
        distances=dict(zip(part.workloads, distances, strict=True)),
        warnings=dict(zip(part.workloads, warnings, strict=True)),
    )


def _model(prepared: PreparedData, init: str | Path | None, start: Start) -> Inspector | Ensemble:
    """The model before its first epoch."""
    model = make_inspector(prepared.inspector, prepared.num_groups)
    if start == "pass":
        start_passing(model)
    if init is not None:
        weights = read_authors_weights(init, prepared.inspector, prepared.num_groups)
        model.load_state_dict(weights)
    return model


def _file_hash(file: Path) -> str:
    with wrap_os_error(CheckpointError, f"read {file}", "give a file of weights"):
        return hashlib.sha256(file.read_bytes()).hexdigest()


def describe_data(dataset: Dataset, split: Split, mark: str) -> dict[str, Json]:
    """The data's part of everything that determines a result, as JSON.

    Args:
        dataset: the data set.
        split: its parts.
        mark: its fingerprint.
    """
    return {
        "data_set": {
            "name": dataset.name,
            "setting": dataset.setting,
            "fingerprint": mark,
        },
        "split": {
            name: [example.workload for example in part]
            for name, part in split_examples(dataset, split).items()
        },
    }
