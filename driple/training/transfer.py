"""TRANSFER: checkpoint of one setting + small data set of another -> its checkpoint (section 4).

    checkpoint -> phi_f, phi_r^s (frozen) -> embeddings, computed once
               -> last layer of the MLP, aligned with the new labels (preset `default`)
               -> phi_r^FT (a copy of phi_r), readout, MLP -> tuned on the new labels -> checkpoint

Entry point: `transfer`. What the frozen layers make of a graph cannot change, so no epoch runs
them. Op-type table and input scaler stay those of the checkpoint, since its weights were made for
them; the target scaler is fitted on the new labels, whose magnitudes are the setting's own.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn

from driple.checks import check_choice, check_number
from driple.dataset.example import Dataset
from driple.dataset.split import Split
from driple.errors import ConfigError, DatasetError
from driple.inputs import Groupings
from driple.inspector.batch import GroupBatch
from driple.inspector.checkpoint import Checkpoint, save_checkpoint
from driple.inspector.model import Inspector
from driple.training.align import align_layer, aligned_lines
from driple.training.config import Preset, TrainConfig, preset_named
from driple.training.fit import DIRECTNESS, RunOptions, fit, metrics_of, trained_on_facts
from driple.training.loop import TrainResult, describe_data
from driple.training.prepare import Encoding, Part, Prepared, prepare, select, split_examples
from driple.training.runfiles import CHECKPOINT_FILE, library_versions
from driple.training.trainer import EVALUATION_BATCH_SIZE, predict_scaled

__all__ = ["LEAST_LABELS", "TransferConfig", "transfer", "transfer_config"]

TunedLayers = Literal["phi_f", "phi_r", "gru", "readout", "mlp"]

# What a transfer changes of the training of a preset: it starts near its end. Measured in
# docs/decisions/0008-transfer.md.
_SHORTER: dict[str, dict[str, Any]] = {
    "paper": {"learning_rate": 0.001, "patience_epochs": 15, "max_epochs": 45},
    "default": {"learning_rate": 0.0005, "patience_epochs": 30, "max_epochs": 150},
}
_OURS: dict[str, dict[str, Any]] = {"paper": {}, "default": {"layers": ("mlp",), "align": True}}
_ALIGNABLE = ("log", "linear")
# Below this the validation part has under four workloads, and picks its epoch by luck.
LEAST_LABELS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferConfig:
    """How a trained inspector is adapted to a new setting (paper, section 4.2).

    Attributes:
        tuned_share: share of the repeated graph layers (phi_r) that get weights of their own and
            are tuned, counted from the last and rounded up.
        layers: what is tuned: `phi_f` (the first graph layer), `phi_r` (the share above), `gru`
            (the updates after the tuned graph layers; LayerNorm where there is no GRU), `readout`,
            `mlp`. The paper's choice is phi_r and the MLP (section 4.2.2).
        align: first put every target on the new setting's level, in closed form (`align.py`).
        train: how the tuned weights are found; scalings are those of the checkpoint.

    Raises:
        ConfigError: a value that makes no sense; the message names the flag.
    """

    tuned_share: float = 0.5
    layers: tuple[TunedLayers, ...] = ("phi_r", "mlp")
    align: bool = False
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_number("--tuned-share", self.tuned_share, least=0, most=1)
        for name in self.layers:
            check_choice("--layers", name, get_args(TunedLayers))
        if not self.layers or len(set(self.layers)) != len(self.layers):
            raise ConfigError(f"--layers needs one kind or more, each once, got {self.layers!r}")

    def num_tuned(self, num_layers: int) -> int:
        """How many of the K graph layers are tuned copies; phi_f is not among them."""
        if not {"phi_r", "gru"} & set(self.layers):
            return 0
        return math.ceil(self.tuned_share * (num_layers - 1))


def transfer_config(preset: str, **changed: Any) -> TransferConfig:
    """The choice for a preset's checkpoints: the paper's for its own, the quicker for `default`.

    Args:
        preset: that the checkpoint was trained with.
        changed: fields of `TransferConfig` to set otherwise.

    Raises:
        ConfigError: there is no such preset.
    """
    train = replace(preset_named(preset).train, **_SHORTER[preset])
    return TransferConfig(**{"train": train, **_OURS[preset], **changed})


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
    """Tune a trained inspector on the data set of another setting; writes what `train` writes.

    Args:
        checkpoint: the pre-trained inspector.
        dataset: examples of the new setting.
        split: its training, validation and test rows.
        config: what is tuned, and how.
        out_dir: folder of the run; made if need be.
        options: how the run goes: resuming, progress, threads.
        groupings: those of other runs on the same graphs, to which this one's are added.

    Raises:
        ConfigError: another run is in `out_dir`, it cannot be written, nothing is left to tune,
            the outputs cannot be aligned, or the loss is no longer a finite number.
        DatasetError: fewer than 20 labels, or graphs of which the checkpoint knows no op type.
    """
    _check_data(checkpoint, dataset)
    if config.align and (checkpoint.target_scaler.kind, checkpoint.config.output) != _ALIGNABLE:
        raise ConfigError(
            f"--align needs an inspector with linear outputs on log targets, and preset "
            f"{checkpoint.preset} has others; give --no-align"
        )
    folder, options = Path(out_dir), options or RunOptions()
    preset = _preset_of(checkpoint, config)
    model = tuned_model(checkpoint, config)
    run = {
        "transfer": {"from": _identity(checkpoint), **asdict(config)},
        **describe_data(dataset, split),
    }
    fitted = fit(
        folder,
        run,
        preset.train,
        options,
        prepare=lambda: _started(
            _with_kept_layers(
                prepare(
                    dataset,
                    split,
                    preset,
                    progress=options.report_inputs,
                    groupings=groupings,
                    encoding=Encoding(
                        op_type_table=checkpoint.op_type_table,
                        input_scaler=checkpoint.input_scaler,
                    ),
                ),
                model,
            ),
            model,
            checkpoint,
            config,
        ),
        make_model=lambda _: model,
    )
    examples = split_examples(dataset, split)["train"]
    facts = trained_on_facts(dataset, run["data_set"]["fingerprint"], examples, fitted)
    made = replace(
        checkpoint,
        weights={
            name.removeprefix("inspector."): tensor.numpy().copy()
            for name, tensor in fitted.weights.items()
        },
        target_scaler=fitted.prepared.target_scaler,
        setting=dataset.setting,
        provenance=max(facts["label_sources"], key=DIRECTNESS.index),
        trained_on={
            **facts,
            "seed": config.train.seed,
            "date": options.date,
            "transferred_from": _identity(checkpoint),
        },
        metrics=metrics_of(fitted.scores),
        versions=library_versions(),
        num_tuned=config.num_tuned(checkpoint.config.num_layers(checkpoint.num_groups)),
    )
    save_checkpoint(made, folder / CHECKPOINT_FILE)
    return TrainResult.of(fitted, made)


class TunedInspector(nn.Module):
    """A pre-trained inspector of which some layers may move.

    Its input is a batch with the frozen layers done (`kept`): x is [B, M, H], or [B, 1, width] if
    the readout is frozen too and no graph layer is tuned.
    """

    def __init__(self, inspector: Inspector, config: TransferConfig) -> None:
        super().__init__()
        self.inspector = inspector
        self.whole = "phi_f" in config.layers
        self.read = not self.whole and not inspector.num_tuned and "readout" not in config.layers
        for name, weight in inspector.named_parameters():
            weight.requires_grad_(_moves(name, config.layers))
        if not any(weight.requires_grad for weight in inspector.parameters()):
            raise ConfigError(
                f"--layers {','.join(config.layers)} with --tuned-share {config.tuned_share:g} "
                "leaves nothing to tune; add mlp, or give a larger share"
            )

    def kept(self, batch: GroupBatch) -> GroupBatch:
        """The batch after all layers that cannot change."""
        if self.whole:
            return batch
        done = self.inspector.kept_layers(batch)
        if not self.read:
            return done
        return replace(done, x=self.inspector.read_out(done).unsqueeze(1))

    def forward(self, batch: GroupBatch) -> Tensor:
        """Scaled targets, shape [B, 12], of what `kept` gave."""
        inspector = self.inspector
        if self.whole:
            out: Tensor = inspector(batch)
            return out
        read = batch.x.squeeze(1) if self.read else inspector.read_out(batch)
        return inspector.head(read, batch)


def tuned_model(checkpoint: Checkpoint, config: TransferConfig) -> TunedInspector:
    """The checkpoint's inspector with a copy of phi_r for the tuned layers."""
    num_layers = checkpoint.config.num_layers(checkpoint.num_groups)
    num_tuned = config.num_tuned(num_layers)
    inspector = Inspector(checkpoint.config, checkpoint.num_groups, num_tuned=num_tuned)
    weights = {name: torch.from_numpy(array.copy()) for name, array in checkpoint.weights.items()}
    if checkpoint.num_tuned not in (0, num_tuned):
        raise ConfigError(
            f"the checkpoint of {checkpoint.setting} was transferred itself, with "
            f"{checkpoint.num_tuned} tuned layers, not {num_tuned}; start from the pre-trained one"
        )
    # An inspector that was itself transferred hands on what its last layers have learned.
    last = "tuned." if checkpoint.num_tuned else "shared."
    wanted = inspector.state_dict()
    for name in wanted:
        source = name.replace("tuned.", last, 1) if name.startswith("tuned.") else name
        wanted[name] = weights[source]
    inspector.load_state_dict(wanted)
    return TunedInspector(inspector, config)


def _moves(name: str, layers: tuple[str, ...]) -> bool:
    """Whether the weight of this name is tuned."""
    part, _, rest = name.partition(".")
    if part in {"mlp", "readout"}:
        return part in layers
    if part == "first":
        return "phi_f" in layers and (rest.startswith("conv") or "gru" in layers)
    if part == "tuned":
        return ("phi_r" if rest.startswith("conv") else "gru") in layers
    return False


def _with_kept_layers(prepared: Prepared, model: TunedInspector) -> Prepared:
    """The same parts, with the frozen layers done once for all."""
    model.eval()
    return replace(
        prepared, parts={name: _kept(part, model) for name, part in prepared.parts.items()}
    )


def _kept(part: Part, model: TunedInspector) -> Part:
    with torch.no_grad():
        rows = torch.split(torch.arange(len(part.scaled)), EVALUATION_BATCH_SIZE)
        done = torch.cat([model.kept(select(part.batch, some)).x for some in rows])
    return replace(part, batch=replace(part.batch, x=done))


def _started(
    prepared: Prepared, model: TunedInspector, checkpoint: Checkpoint, config: TransferConfig
) -> Prepared:
    """The same parts; the model's last layer aligned with the training labels, if wanted."""
    if config.align:
        part = prepared.parts["train"]
        outputs = predict_scaled(model, part.batch).astype(np.float64)
        labels = part.scaled.numpy().astype(np.float64)
        scalers = checkpoint.target_scaler, prepared.target_scaler
        align_layer(
            cast(nn.Linear, model.inspector.mlp[-1]), *aligned_lines(outputs, labels, *scalers)
        )
    return prepared


def _preset_of(checkpoint: Checkpoint, config: TransferConfig) -> Preset:
    """Inputs and scalings as the checkpoint has them, training as the transfer wants it."""
    return Preset(
        name=checkpoint.preset,
        input=checkpoint.input_config,
        inspector=checkpoint.config,
        train=replace(
            config.train,
            input_scaling=checkpoint.input_scaler.kind,
            target_scaling=checkpoint.target_scaler.kind,
        ),
    )


def _identity(checkpoint: Checkpoint) -> dict[str, Any]:
    """What tells one pre-trained inspector from another."""
    digest = hashlib.sha256()
    for name in sorted(checkpoint.weights):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(checkpoint.weights[name], dtype="<f4").tobytes())
    return {
        "setting": checkpoint.setting,
        "preset": checkpoint.preset,
        "weights": digest.hexdigest()[:16],
        "data_set": checkpoint.trained_on.get("data_set"),
        "num_workloads": checkpoint.trained_on.get("num_workloads"),
    }


def _check_data(checkpoint: Checkpoint, dataset: Dataset) -> None:
    if len(dataset.examples) < LEAST_LABELS:
        raise DatasetError(
            f"data set {dataset.name} has {len(dataset.examples)} labels, a transfer needs "
            f"{LEAST_LABELS} or more; measure more workloads"
        )
    known = set(checkpoint.op_type_table)
    if dataset.is_grouped and not known:
        return  # both are of grouped graphs
    if not any(known & set(example.graph.op_types) for example in dataset.examples):
        raise DatasetError(
            f"the checkpoint of {checkpoint.setting} knows no op type of data set {dataset.name}; "
            "its feature table is of other graphs, train an inspector anew"
        )
