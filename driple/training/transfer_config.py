"""Configuration of a transfer: `TransferConfig`, and each preset's choice (section 4.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from driple.checks import check_choice, check_number, check_whole
from driple.errors import ConfigError
from driple.training.config import AUTHORS, TrainConfig, preset_named

__all__ = ["TransferConfig", "transfer_config"]

TunedLayers = Literal["phi_f", "phi_r", "gru", "readout", "mlp"]

# Changes of a transfer to the preset's training, which starts near an optimum
# (docs/decisions/0008-transfer.md).
_SHORTER: dict[str, dict[str, Any]] = {
    "paper": {
        "learning_rate": 0.001,
        "schedule": "cosine",
        "final_rate_share": 0.05,
        "patience_epochs": 15,
        "max_epochs": 20,
    },
    "default": {"learning_rate": 0.0005, "patience_epochs": 30, "max_epochs": 150},
}
_OURS: dict[str, dict[str, Any]] = {"paper": {}, "default": {"layers": ("mlp",), "align": True}}


@dataclass(frozen=True, kw_only=True, slots=True)
class TransferConfig:
    """Configuration of adapting a trained inspector to a new setting (paper, section 4.2).

    Attributes:
        tuned_share: fraction of the repeated graph layers (phi_r) that get separate
            weights and are tuned, counted from the last and rounded up.
        layers: tuned layers: `phi_f` (the first graph layer), `phi_r` (the share above), `gru`
            (the updates after the tuned graph layers; LayerNorm where there is no GRU), `readout`,
            `mlp`. The paper's choice is phi_r and the MLP (section 4.2.2).
        align: first align every target to the new setting in closed form (`align.py`).
        interval_folds: number of folds of the labels that are left out in turn to calibrate the
            intervals; 0 disables that and the intervals.
        train: configuration of the training; scalings are those of the checkpoint.

    Raises:
        ConfigError: an invalid value; the message names the flag.
    """

    tuned_share: float = 0.5
    layers: tuple[TunedLayers, ...] = ("phi_r", "mlp")
    align: bool = False
    interval_folds: int = 5
    train: TrainConfig = field(default_factory=TrainConfig)

    def __post_init__(self) -> None:
        check_whole("interval_folds", self.interval_folds, 0, 100)
        check_number("--set tuned_share", self.tuned_share, least=0, most=1)
        for name in self.layers:
            check_choice("--set layers", name, get_args(TunedLayers))
        if not self.layers or len(set(self.layers)) != len(self.layers):
            raise ConfigError(
                f"--set layers needs one kind or more, each once, got {self.layers!r}"
            )

    @property
    def tunes_shared(self) -> bool:
        """Whether a repeated graph layer may be tuned; without it `tuned_share` has no effect."""
        return bool({"phi_r", "gru"} & set(self.layers))

    def num_tuned(self, num_layers: int) -> int:
        """Number of the K graph layers that are tuned copies; phi_f is not among them."""
        if not self.tunes_shared:
            return 0
        return math.ceil(self.tuned_share * (num_layers - 1))


def transfer_config(preset: str, **changed: Any) -> TransferConfig:
    """Configuration for a preset's checkpoints: the paper's for `paper`, ours for `default`.

    Args:
        preset: preset of the checkpoint.
        changed: fields of `TransferConfig` to override.

    Raises:
        ConfigError: unknown preset.
    """
    base = preset_named(preset) if preset != "paper" else AUTHORS
    train = replace(base.train, **_SHORTER[preset])
    return TransferConfig(**{"train": train, **_OURS[preset], **changed})
