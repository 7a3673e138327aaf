"""Training configuration: `TrainConfig`, and the presets.

    Preset = InputConfig (how inputs are built) + InspectorConfig (the model) + TrainConfig

Every field is a number, word or flag, so that the command line can set it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from driple.checks import check_choice, check_number, check_whole
from driple.codec import Json
from driple.errors import ConfigError
from driple.estimate import LEVEL
from driple.features.config import InputConfig
from driple.inspector.config import InspectorConfig
from driple.inspector.cost_prior import LAW_NAMES
from driple.inspector.intervals import NEAR_SHARE
from driple.training.cost_prior import RIDGE_LABELS
from driple.training.residuals import LENGTHS, RIDGES

__all__ = ["AUTHORS", "PAPER_EPOCHS", "PRESETS", "Preset", "TrainConfig", "preset_named"]

Loss = Literal["mse", "huber", "smape"]
Optimizer = Literal["adam", "adamw"]
Schedule = Literal["constant", "cosine", "plateau"]
InputScaling = Literal["identity", "standard"]
TargetScaling = Literal["max", "log"]
Start = Literal["usual", "pass"]
Base = Literal["none", "costs"]
ResidualsKind = Literal["none", "kernel"]

PAPER_EPOCHS = 400
RISE_SHARE = 0.6  # of the growth epochs, in which layers are added
# Left out of `to_dict` at their defaults: folders of runs from before they were added resume.
_LATER = ("start", "shared_rate_share", "growth_share")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig:
    """Configuration of one training; the defaults are those of the authors' code (`AUTHORS`).

    Attributes:
        loss: on scaled targets: mean squared error, or Huber's; `smape`: the symmetric relative
            error itself, on targets in their units, which needs `target_scaling` log.
        huber_delta: where Huber's loss turns from a square into a line, in scaled targets.
        optimizer: `adam` adds the weight decay to the gradient; `adamw` decays the weight.
        learning_rate: initial learning rate, after the warm-up.
        weight_decay: weight decay of the optimizer.
        schedule: `constant`; `cosine` falls to `final_rate_share` at `max_epochs`; `plateau`
            halves after `plateau_epochs` epochs without a better validation loss.
        warmup_epochs: epochs over which the rate rises in equal steps.
        final_rate_share: minimum of a schedule as a fraction of the learning rate.
        plateau_epochs: patience of the schedule `plateau`.
        clip_norm: maximum gradient norm; 0 disables clipping.
        batch_size: graphs per step.
        patience_epochs: training ends after this many epochs without a better validation loss.
        max_epochs: maximum number of epochs.
        input_scaling: features and context unscaled, or standardised by column.
        target_scaling: `max`: targets over their training maximum; `log`: standardised logarithms.
        base: output of the model: `none`: the targets; `costs`: their ratio to the cost prior,
            which is fitted first (`cost_prior.py`).
        residuals: correction after the model: `none`; `kernel`: kernel ridge regression on its
            training residuals, fitted last (`residuals.py`).
        family_folds: number of groups of model families that are left out in turn to estimate the
            error on unseen families; 0 disables that and the intervals.
        seed: random seed of weights, order of batches and dropout.
        start: initial weights: torch's, or `pass`: GRU gates that pass embeddings on almost
            unchanged, so that graphs differ after fifty layers (`start.py`).
        shared_rate_share: learning rate of a layer that is repeated, as a share of the others':
            its gradient is a sum over the repetitions.
        growth_share: share of `max_epochs`, at their beginning, in which the repeated layers keep
            their weights and are in closed form (`Inspector.shorten`), first few, then all; in the
            other epochs they take part, at a tenth of the learning rate. None of the former can be
            the best. Needs start `pass`.

    Raises:
        ConfigError: an invalid value; the message names the flag.
    """

    loss: Loss = "mse"
    huber_delta: float = 1.0
    optimizer: Optimizer = "adam"
    learning_rate: float = 0.003
    weight_decay: float = 1e-6
    schedule: Schedule = "constant"
    warmup_epochs: int = 0
    final_rate_share: float = 0.01
    plateau_epochs: int = 30
    clip_norm: float = 0.0
    batch_size: int = 32
    patience_epochs: int = 1000
    max_epochs: int = 100_000
    input_scaling: InputScaling = "identity"
    target_scaling: TargetScaling = "max"
    base: Base = "none"
    residuals: ResidualsKind = "none"
    family_folds: int = 0
    seed: int = 0
    start: Start = "usual"
    shared_rate_share: float = 1.0
    growth_share: float = 0.0

    def __post_init__(self) -> None:
        check_choice("loss", self.loss, get_args(Loss))
        check_choice("optimizer", self.optimizer, get_args(Optimizer))
        check_choice("schedule", self.schedule, get_args(Schedule))
        check_choice("input_scaling", self.input_scaling, get_args(InputScaling))
        check_choice("target_scaling", self.target_scaling, get_args(TargetScaling))
        check_choice("base", self.base, get_args(Base))
        check_choice("residuals", self.residuals, get_args(ResidualsKind))
        if self.base != "none" and self.target_scaling != "log":
            raise ConfigError("base costs is a ratio; it needs target_scaling log")
        if self.loss == "smape" and self.target_scaling != "log":
            raise ConfigError("loss smape is of logarithms; it needs target_scaling log")
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("huber_delta", self.huber_delta, above=0)
        check_choice("start", self.start, get_args(Start))
        check_number("shared_rate_share", self.shared_rate_share, above=0)
        check_number("growth_share", self.growth_share, least=0, below=1)
        if self.growth_share and self.start != "pass":
            raise ConfigError("growth_share is for layers that pass embeddings on; use start pass")
        check_number("weight_decay", self.weight_decay, least=0)
        check_number("clip_norm", self.clip_norm, least=0)
        check_number("final_rate_share", self.final_rate_share, least=0, most=1)
        check_whole("warmup_epochs", self.warmup_epochs, 0)
        check_whole("plateau_epochs", self.plateau_epochs, 1)
        check_whole("batch_size", self.batch_size, 1)
        check_whole("patience_epochs", self.patience_epochs, 1)
        check_whole("max_epochs", self.max_epochs, 1)
        check_whole("family_folds", self.family_folds, 0, 100)
        check_whole("seed", self.seed, 0)

    @property
    def growth_epochs(self) -> int:
        """Epochs with the repeated layers in closed form."""
        return int(self.growth_share * self.max_epochs)

    def num_passed(self, epoch: int, most: int) -> int | None:
        """Repeated layers in closed form in an epoch, counted from 1, of a model with `most`.

        None when they all take part themselves.
        """
        if epoch > self.growth_epochs:
            return None
        return round(most * min(1.0, epoch / (RISE_SHARE * self.growth_epochs)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """Everything, apart from the data set, that determines an inspector.

    Attributes:
        name: name, such as `paper`; a preset with changed fields should have another name.
        input: construction of inputs from graphs.
        inspector: the model. `num_features` and `num_context` are set from the inputs.
        train: configuration of the training.
    """

    name: str
    input: InputConfig = field(default_factory=InputConfig)
    inspector: InspectorConfig = field(default_factory=InspectorConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def to_dict(self) -> dict[str, Json]:
        """Nested fields for config.json, with the terms of the cost prior and the interval method.

        The latter two are not options, but they change between versions of Driple and affect the
        inspector. The number of servers comes from the data set. `residuals`, `start` and what
        changes with the depth are left out if unused.
        """
        train = asdict(self.train)
        if self.train.residuals == "none":
            del train["residuals"]
        usual = asdict(TrainConfig())
        train = {k: v for k, v in train.items() if k not in _LATER or v != usual[k]}
        fields: dict[str, Json] = {
            "name": self.name,
            "input": {k: v for k, v in asdict(self.input).items() if k != "num_servers"},
            "inspector": asdict(self.inspector),
            "train": train,
        }
        if "costs" in {self.input.features, self.input.context}:
            fields["sums"] = {
                "features": list(self.input.feature_names),
                "context": list(self.input.context_names),
                "law": [list(names) for names in LAW_NAMES] if self.train.base == "costs" else [],
                "ridge_labels": RIDGE_LABELS,
            }
        if self.train.residuals != "none":
            fields["residuals"] = {"lengths": list(LENGTHS), "ridges": list(RIDGES)}
        if self.train.family_folds:
            fields["intervals"] = {"level": LEVEL, "near_share": NEAR_SHARE, "families": "equal"}
        return fields

    def config_hash(self) -> str:
        """Hash of all fields but the name: equal hashes train equal inspectors."""
        fields = {key: value for key, value in self.to_dict().items() if key != "name"}
        return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def preset_named(name: str) -> Preset:
    """The preset of that name.

    Raises:
        ConfigError: no preset has this name.
    """
    check_choice("preset", name, PRESETS)
    return PRESETS[name]


# Preset `paper` as the authors' public code trains it, for their published weights and transfers.
AUTHORS = Preset(name="paper")

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        # The paper's inspector. It leaves scaling, initial weights, loss and learning rate open;
        # scripts/studies/paper_inspector has what each of these does.
        "paper": Preset(
            name="paper",
            input=InputConfig(features="log"),
            inspector=InspectorConfig(output="linear", set2set_steps=10),
            train=TrainConfig(
                loss="smape",
                schedule="cosine",
                warmup_epochs=2,
                clip_norm=1.0,
                batch_size=16,
                patience_epochs=PAPER_EPOCHS,
                max_epochs=PAPER_EPOCHS,
                input_scaling="standard",
                target_scaling="log",
                start="pass",
                shared_rate_share=0.2,
                growth_share=0.98,
            ),
        ),
        "default": Preset(
            name="default",
            input=InputConfig(num_groups=50, components="all", features="costs", context="costs"),
            inspector=InspectorConfig(
                update="residual",
                depth=2,
                hidden=32,
                readout="max",
                output="linear",
                dropout=0.05,
                members=5,
            ),
            train=TrainConfig(
                loss="huber",
                optimizer="adamw",
                learning_rate=0.002,
                weight_decay=0.1,
                schedule="cosine",
                warmup_epochs=5,
                clip_norm=1.0,
                batch_size=32,
                patience_epochs=300,
                max_epochs=300,
                input_scaling="standard",
                target_scaling="log",
                base="costs",
                residuals="kernel",
                family_folds=5,
            ),
        ),
    }
)
