"""Initialise preset `paper` with the weights published by Driple's authors.

    state of their model, by name  ->  weights of our model, by name

Their phi_f and phi_r share one GRU, ours have one each: both start from theirs. Features and
targets have another order there (`driple.dataset.released`), so the corresponding weights are
permuted.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from driple.dataset.released import RELEASED_FEATURES, RELEASED_TARGETS, is_dense, read_torch_file
from driple.errors import CheckpointError
from driple.inspector.config import InspectorConfig
from driple.inspector.shapes import weight_shapes

__all__ = ["read_authors_weights"]

_RECURRENT = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
_ADVICE = "give weights of the public Driple repository"


def read_authors_weights(
    path: str | Path, config: InspectorConfig, num_groups: int
) -> dict[str, Tensor]:
    """The authors' weights under our names.

    Args:
        path: their file; only its tensors are read.
        config: structure that the weights must fit: that of preset `paper`.
        num_groups: M of the inspector.

    Raises:
        CheckpointError: other names or shapes, or numbers that are not finite.
        DatasetError: the file is missing or damaged, or holds objects other than tensors.
        MissingExtraError: torch is not installed.
    """
    file = Path(path)
    state = read_torch_file(file)
    if not isinstance(state, dict) or not all(
        isinstance(name, str) and isinstance(item, Tensor) for name, item in state.items()
    ):
        raise CheckpointError(f"{file} is no state of a model; {_ADVICE}")
    for name, tensor in state.items():
        if not is_dense(tensor):
            raise CheckpointError(f"{file}: weight {name} is no dense tensor; {_ADVICE}")
    given = {name.removeprefix("module."): item.float() for name, item in state.items()}
    ours = _renamed(file, given)
    needed = weight_shapes(config, num_groups)
    odd = sorted(set(ours) ^ set(needed))
    if odd:
        raise CheckpointError(
            f"{file}: its weights are not those of preset paper ({', '.join(odd[:3])} differ); "
            f"{_ADVICE}, and preset paper"
        )
    for name, shape in needed.items():
        if tuple(ours[name].shape) != shape:
            raise CheckpointError(
                f"{file}: weight {name} has shape {tuple(ours[name].shape)}, needed is {shape}"
            )
        if not bool(torch.isfinite(ours[name]).all()):
            raise CheckpointError(f"{file}: weight {name} holds NaN or infinity")
    return ours


def _renamed(file: Path, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights under our names, in our order of features and targets."""
    taken: set[str] = set()

    def take(name: str) -> Tensor:
        if name not in given:
            raise CheckpointError(f"{file} lacks the weight {name}; {_ADVICE}")
        taken.add(name)
        return given[name]

    def take_matrix(name: str) -> Tensor:
        matrix = take(name)
        if matrix.dim() != 2 or min(matrix.shape) < len(features):
            raise CheckpointError(f"{file}: {name} has shape {tuple(matrix.shape)}; {_ADVICE}")
        return matrix

    def recurrent(prefix: str) -> dict[str, Tensor]:
        layer = "_l0" if f"{prefix}.weight_ih_l0" in given else ""
        takes = {"weight_ih": take_matrix}
        return {name: takes.get(name, take)(f"{prefix}.{name}{layer}") for name in _RECURRENT}

    features, targets = list(RELEASED_FEATURES), list(RELEASED_TARGETS)
    first, shared = take_matrix("conv_layers.0.W"), take_matrix("conv_layers.1.W")
    if first.shape[1] != len(features):  # [inputs, outputs]
        first, shared = first.T, shared.T
    if first.shape[1] != len(features):
        raise CheckpointError(f"{file}: conv_layers.0.W has shape {tuple(first.shape)}; {_ADVICE}")
    ours = {
        "first.conv.linear.weight": first[:, features],
        "first.conv.linear.bias": take("conv_layers.0.b").flatten(),
        "shared.conv.linear.weight": shared,
        "shared.conv.linear.bias": take("conv_layers.1.b").flatten(),
    }
    gru = recurrent("gru.gru")
    ours |= {f"shared.gru.{name}": item for name, item in gru.items()}
    # The GRU of phi_f reads the features, padded with zeros.
    columns = np.arange(gru["weight_ih"].shape[1])
    columns[: len(features)] = features
    ours |= {f"first.gru.{name}": item for name, item in gru.items()}
    ours["first.gru.weight_ih"] = gru["weight_ih"][:, columns.tolist()]
    lstm = recurrent("graph_read_out.set2set.lstm")
    ours |= {f"readout.lstm.{name}": item for name, item in lstm.items()}
    for i in range(3):
        for kind in ("weight", "bias"):
            tensor = take(f"graph_read_out.mlp.fully_connected.{i}.linear.{kind}")
            ours[f"mlp.{i}.{kind}"] = (
                tensor[targets] if i == 2 and tensor.shape[:1] == (12,) else tensor
            )
    surplus = sorted(set(given) - taken)
    if surplus:
        raise CheckpointError(f"{file} has weights that ours lacks: {', '.join(surplus[:3])}")
    return {name: item.contiguous().clone() for name, item in ours.items()}
