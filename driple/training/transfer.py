"""TRANSFER: checkpoint of one setting + small data set of another -> its checkpoint (section 4).

    checkpoint -> phi_f, phi_r^s (frozen) -> embeddings, computed once
               -> last layer of the MLP, aligned with the new labels (preset `default`)
               -> phi_r^FT (a copy of phi_r), readout, MLP -> tuned on the new labels -> checkpoint

Entry point: `transfer`. The outputs of frozen layers are computed once. Op-type table and input
scaler stay those of the checkpoint, since its weights depend on them. The target scaler is fitted
to the new labels, and so is the cost prior if the settings are dissimilar (`cost_prior_selection`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import nn

from driple.codec import to_dict
from driple.dataset.example import Dataset, fingerprint
from driple.dataset.split import Split
from driple.errors import ConfigError, DatasetError
from driple.features import Groupings
from driple.features.op_names import op_type_names
from driple.features.pregrouped import AnyGraph
from driple.graph.opgraph import OpGraph
from driple.inspector.checkpoint import Checkpoint, save_checkpoint
from driple.inspector.trained_on import Source
from driple.training.align import align_layer, aligned_lines
from driple.training.config import Preset
from driple.training.conformal import carried_over, folds_of
from driple.training.cost_prior_selection import best_law
from driple.training.fine_tuning import Tuned, tuned_model
from driple.training.loop import EVALUATION_BATCH_SIZE, predict_scaled
from driple.training.prepare import (
    Encoding,
    PreparedData,
    PreparedPart,
    input_config_for,
    prepare,
    select,
    split_examples,
)
from driple.training.run import DIRECTNESS, Fitted, RunOptions, fit, metrics_of, trained_on_facts
from driple.training.runfiles import CHECKPOINT_FILE, library_versions
from driple.training.train import TrainResult, describe_data
from driple.training.transfer_config import TransferConfig, transfer_config

__all__ = ["LEAST_LABELS", "TransferConfig", "transfer", "transfer_config", "unknown_op_types"]

_ALIGNABLE = ("log", "linear")
# Minimum number of labels, including the test part. With fewer, the validation part has under four
# workloads, and its choice of the epoch is random. Folds and learning curves train on fewer.
LEAST_LABELS = 20
# Graphs of an unseen family are accepted: of the shipped families NMT has the most unknown op
# types, 39 % of its nodes after training on all others, 49 % after LeNet only. Above one half,
# graphs come from another framework or are renamed.
MOST_UNKNOWN = 0.5


def transfer(
    checkpoint: Checkpoint,
    dataset: Dataset,
    split: Split,
    config: TransferConfig,
    out_dir: str | Path,
    *,
    options: RunOptions | None = None,
    groupings: Groupings | None = None,
) -> TrainResult:
    """Fine-tune a trained inspector on the data set of another setting; writes the files of
    `train`.

    Args:
        checkpoint: the pre-trained inspector.
        dataset: examples of the new setting.
        split: its training, validation and test rows.
        config: tuned layers, and training.
        out_dir: folder of the run; created if missing.
        options: resuming, progress and threads.
        groupings: cache of groupings, shared by runs on the same graphs.

    Raises:
        ConfigError: another run is in `out_dir`, it cannot be written, nothing is left to tune,
            the outputs cannot be aligned, or the loss is no longer a finite number.
        DatasetError: fewer than 20 labels, or the checkpoint lacks the op types of half of the
            nodes.
    """
    _check_data(checkpoint, dataset)
    if config.align and (checkpoint.target_scaler.kind, checkpoint.config.output) != _ALIGNABLE:
        raise ConfigError(
            f"--set align=on needs an inspector with linear outputs on log targets, and preset "
            f"{checkpoint.preset} has others; give --set align=off"
        )
    folder, options = Path(out_dir), options or RunOptions()
    groupings = groupings or Groupings()
    preset = _preset_of(checkpoint, dataset, config)
    mark, source = fingerprint(dataset), _identity(checkpoint)

    def tune(part: Split, place: Path) -> Fitted:
        model = tuned_model(checkpoint, config)
        run = {
            "transfer": {"from": to_dict(source), **asdict(config)},
            **describe_data(dataset, part, mark),
        }
        return fit(
            place,
            run,
            preset.train,
            options,
            prepare=lambda: _prepared(
                dataset,
                part,
                model,
                checkpoint=checkpoint,
                preset=preset,
                config=config,
                options=options,
                groupings=groupings,
            ),
            make_model=lambda _: model,
        )

    fitted = tune(split, folder)
    intervals = None
    if config.interval_folds and checkpoint.intervals is not None:
        left_out = [
            tune(part, folder / name)
            for name, part in folds_of(split, config.interval_folds, config.train.seed)
        ]
        intervals = carried_over(checkpoint.intervals, left_out)
    examples = split_examples(dataset, split)["train"]
    facts = trained_on_facts(dataset, mark, examples, fitted)
    transferred = replace(
        checkpoint,
        weights={
            name.replace("inspector.", "", 1): tensor.numpy().copy()
            for name, tensor in fitted.weights.items()
        },
        input_config=preset.input,
        target_scaler=fitted.prepared.target_scaler,
        law=fitted.prepared.law,
        residuals=fitted.residuals,
        setting=dataset.setting,
        provenance=max(facts.label_sources, key=DIRECTNESS.index),
        trained_on=replace(
            facts, seed=config.train.seed, date=options.date, transferred_from=source
        ),
        metrics=metrics_of(fitted.scores),
        intervals=intervals,
        versions=library_versions(),
        num_tuned=config.num_tuned(checkpoint.config.num_layers(checkpoint.num_groups)),
        # The frozen weights keep the checkpoint's versions, so the older version of the two is
        # recorded.
        reader_version=min(checkpoint.reader_version, dataset.reader_version),
    )
    save_checkpoint(transferred, folder / CHECKPOINT_FILE)
    return TrainResult.of(fitted, transferred)


def _with_kept_layers(prepared: PreparedData, model: Tuned) -> PreparedData:
    """The same parts with the outputs of the frozen layers."""
    model.eval()
    return replace(
        prepared, parts={name: _kept(part, model) for name, part in prepared.parts.items()}
    )


def _kept(part: PreparedPart, model: Tuned) -> PreparedPart:
    with torch.no_grad():
        rows = torch.split(torch.arange(len(part.scaled)), EVALUATION_BATCH_SIZE)
        done = torch.cat([model.kept(select(part.batch, some)).x for some in rows])
    return replace(part, batch=replace(part.batch, x=done))


def _started(
    prepared: PreparedData, model: Tuned, checkpoint: Checkpoint, config: TransferConfig
) -> PreparedData:
    """The inspector with the best cost prior, and last layers aligned with the labels."""
    if not config.align:
        return prepared
    part = prepared.parts["train"]
    members = [
        (member, predict_scaled(member, batch).astype(np.float64))
        for member, batch in model.parts(part.batch)
    ]
    if checkpoint.law is not None:
        law = best_law(
            checkpoint.law,
            np.mean([outputs for _, outputs in members], axis=0),
            part.contexts,
            part.labels,
            scaler=checkpoint.target_scaler,
            context_names=checkpoint.input_config.context_names,
            seed=config.train.seed,
        )
        prepared = prepared.with_law(law)
    labels = prepared.parts["train"].scaled.numpy().astype(np.float64)
    for member, outputs in members:
        lines = aligned_lines(outputs, labels, checkpoint.target_scaler, prepared.target_scaler)
        align_layer(cast(nn.Linear, member.inspector.mlp[-1]), *lines)
    return prepared


def _prepared(
    dataset: Dataset,
    split: Split,
    model: Tuned,
    *,
    checkpoint: Checkpoint,
    preset: Preset,
    config: TransferConfig,
    options: RunOptions,
    groupings: Groupings | None,
) -> PreparedData:
    """Inputs after the frozen layers; the model's last layers aligned, if configured."""
    encoding = Encoding(
        op_type_table=checkpoint.op_type_table,
        law=checkpoint.law,
        input_scaler=checkpoint.input_scaler,
    )
    prepared = prepare(
        dataset,
        split,
        preset,
        progress=options.report_inputs,
        groupings=groupings,
        encoding=encoding,
    )
    return _started(_with_kept_layers(prepared, model), model, checkpoint, config)


def _preset_of(checkpoint: Checkpoint, dataset: Dataset, config: TransferConfig) -> Preset:
    """Preset: the checkpoint's inputs and scalings, the data set's servers, this training.

    Without a context (pregrouped graphs) there is no distance between graphs.
    """
    return Preset(
        name=checkpoint.preset,
        input=input_config_for(dataset, checkpoint.input_config),
        inspector=checkpoint.config,
        train=replace(
            config.train,
            input_scaling=checkpoint.input_scaler.kind,
            target_scaling=checkpoint.target_scaler.kind,
            residuals=config.train.residuals if checkpoint.config.num_context else "none",
        ),
    )


def _identity(checkpoint: Checkpoint) -> Source:
    """Identity of a pre-trained inspector."""
    digest = hashlib.sha256()
    for name in sorted(checkpoint.weights):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(checkpoint.weights[name], dtype="<f4").tobytes())
    return Source(
        setting=checkpoint.setting,
        preset=checkpoint.preset,
        weights=digest.hexdigest()[:16],
        data_set=checkpoint.trained_on.data_set,
        num_workloads=checkpoint.trained_on.num_workloads,
    )


def _check_data(checkpoint: Checkpoint, dataset: Dataset) -> None:
    if len(dataset.examples) < LEAST_LABELS:
        raise DatasetError(
            f"data set {dataset.name} has {len(dataset.examples)} labels, a transfer needs "
            f"{LEAST_LABELS} or more; measure more workloads"
        )
    if dataset.is_grouped and not checkpoint.op_type_table:
        return  # both have pregrouped graphs
    num_nodes = sum(len(example.graph.op_types) for example in dataset.examples)
    unknown = unknown_op_types(checkpoint, dataset)
    if unknown.total() > MOST_UNKNOWN * num_nodes or not num_nodes:
        raise DatasetError(
            f"the checkpoint of {checkpoint.setting} does not know the op types of "
            f"{unknown.total()} of the {num_nodes} nodes in data set {dataset.name}, and at most "
            f"half may be unknown; its feature table is of other graphs, train an inspector anew"
        )


def unknown_op_types(checkpoint: Checkpoint, dataset: Dataset) -> Counter[str]:
    """Op types of the data set's graphs that the checkpoint lacks, with their number of nodes."""
    counts = Counter(name for example in dataset.examples for name in _names_of(example.graph))
    return Counter({name: n for name, n in counts.items() if name not in checkpoint.op_type_table})


def _names_of(graph: AnyGraph) -> tuple[str, ...]:
    return op_type_names(graph) if isinstance(graph, OpGraph) else ()
