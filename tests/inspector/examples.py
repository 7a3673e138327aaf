"""Random inputs, batches and checkpoints for the tests of the inspector."""

from __future__ import annotations

import numpy as np
import torch

from driple.features import InputConfig, InspectorInput
from driple.inspector.checkpoint import Checkpoint
from driple.inspector.config import InspectorConfig
from driple.inspector.ensemble import Ensemble, make_inspector
from driple.inspector.model import Inspector
from driple.inspector.scaling import InputScaler, TargetScaler
from driple.inspector.trained_on import TrainedOn

SETTING = "V100-P1w2/ho-PCIe"


def random_input(seed: int, num_groups: int, num_context: int = 0) -> InspectorInput:
    """Features of order 1 and a few random edges."""
    generator = np.random.default_rng(seed)
    pairs = generator.integers(0, num_groups, size=(2 * num_groups, 2))
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return InspectorInput(
        features=generator.normal(size=(num_groups, 3)).astype(np.float32),
        edges=np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2),
        context=generator.normal(size=num_context).astype(np.float32),
        num_nodes=10 * num_groups,
        num_edges=20 * num_groups,
        num_ops=10 * num_groups,
        unknown_op_types={},
        facts={},
    )


def random_inspector(
    config: InspectorConfig, num_groups: int, seed: int = 0
) -> Inspector | Ensemble:
    """An inspector with random weights, biases and norms included."""
    torch.manual_seed(seed)
    model = make_inspector(config, num_groups).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def constant_inspector(value: float, num_groups: int, num_context: int = 0) -> Inspector:
    """An inspector that gives one number for all targets of all graphs."""
    config = InspectorConfig(hidden=8, output="linear", num_context=num_context)
    model = random_inspector(config, num_groups)
    assert isinstance(model, Inspector)
    with torch.no_grad():
        model.mlp[-1].weight.zero_()
        model.mlp[-1].bias.fill_(value)
    return model


def checkpoint_of(
    model: Inspector,
    num_groups: int,
    *,
    input_config: InputConfig | None = None,
    target_scaler: TargetScaler | None = None,
) -> Checkpoint:
    """A checkpoint of the model; targets are not scaled unless told."""
    ones = np.ones(12)
    unscaled = TargetScaler(kind="max", offset=0 * ones, scale=ones, floor=0 * ones)
    return Checkpoint(
        weights={name: value.numpy().copy() for name, value in model.state_dict().items()},
        config=model.config,
        input_config=input_config
        or InputConfig(
            num_groups=num_groups, context="sizes" if model.config.num_context else "none"
        ),
        num_groups=num_groups,
        op_type_table={"Add": 0.25, "Conv2D": 0.75},
        input_scaler=InputScaler.identity(),
        target_scaler=target_scaler or unscaled,
        setting=SETTING,
        provenance="measured",
        trained_on=TrainedOn(num_workloads=3, others={"dataset": "test"}),
        metrics={"nrmse": 0.125},
        preset="paper",
        versions={"driple": "0.1.0"},
    )
