"""Presets that train in a second or two, for the tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driple.features import InputConfig
from driple.inspector.config import InspectorConfig
from driple.training.config import Preset, TrainConfig


def small_preset(**train: Any) -> Preset:
    """Eight groups, three layers, dropout on, targets and inputs on log scales."""
    settings: dict[str, Any] = {
        "learning_rate": 0.01,
        "batch_size": 3,
        "patience_epochs": 1000,
        "max_epochs": 12,
        "input_scaling": "standard",
        "target_scaling": "log",
        "schedule": "plateau",
        "plateau_epochs": 2,
    }
    return Preset(
        name="small",
        input=InputConfig(num_groups=8, components="all", features="log", context="sizes"),
        inspector=InspectorConfig(
            update="residual", depth=3, hidden=16, readout="mean", output="linear", dropout=0.2
        ),
        train=TrainConfig(**(settings | train)),
    )


def overfit_preset(**train: Any) -> Preset:
    """The small preset without what keeps a model from learning by heart."""
    preset = small_preset(
        **(
            {"max_epochs": 300, "batch_size": 8, "weight_decay": 0.0, "schedule": "constant"}
            | train
        )
    )
    return replace(preset, inspector=replace(preset.inspector, dropout=0.0))
