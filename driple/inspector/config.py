"""The shape of an inspector: which layer, which update, how deep, which readout (paper, 5.2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from driple.checks import check_choice, check_number, check_whole
from driple.codec import Json, from_json, to_dict
from driple.errors import ConfigError

__all__ = [
    "CONV_NEGATIVE_SLOPE",
    "Depth",
    "InspectorConfig",
    "Layer",
    "Output",
    "Readout",
    "Update",
]

Layer = Literal["gcn", "gat", "gin", "mpnn"]
Update = Literal["gru", "residual"]
Depth = Literal["m", "m/2", "log2", "log3", "log4", "log5"]
Readout = Literal["add", "mean", "max", "sort", "set2set"]
Output = Literal["leaky_relu", "linear"]

# Slope of every LeakyReLU for negative numbers, except inside the attention of GAT (0.2).
CONV_NEGATIVE_SLOPE = 0.01

# Bounds that no sensible inspector reaches; they keep a forged checkpoint from filling the memory.
_BOUNDS = {
    "hidden": (1, 4096),
    "mlp_layers": (1, 64),
    "num_features": (1, 4096),
    "num_context": (0, 4096),
    "sort_groups": (1, 10_000),
    "members": (1, 64),
}
_MAX_DEPTH = 10_000
# Presets use these, and NumPy runs them. Torch runs the others, which only studies train.
_NUMPY_LAYERS: tuple[Layer, ...] = ("gcn",)
_NUMPY_READOUTS: tuple[Readout, ...] = ("set2set", "max")

_ADVICE = "train it anew"  # configurations are read from checkpoints alone


@dataclass(frozen=True, kw_only=True, slots=True)
class InspectorConfig:
    """Structure of the model; the defaults are the paper's choice (preset `paper`).

    Attributes:
        layer: graph convolution of both stages.
        update: what follows each convolution: `gru`: a GRU cell whose input is the previous
            embedding and whose hidden state is the convolution's output; `residual` (ours):
            h + LeakyReLU(conv(LayerNorm(h))).
        depth: number of graph layers K, a function of the number of groups M, or K itself.
        hidden: width of the embeddings.
        readout: how the group embeddings become one vector.
        set2set_steps: steps of set2set; `m`: one per group, M in all, as the authors' code does.
        sort_groups: how many groups the readout `sort` keeps.
        mlp_layers: fully connected layers after the readout.
        num_features: columns of the group features.
        num_context: length of the context vector that joins the readout.
        output: activation of the last layer; `linear` for targets that are scaled to mean 0.
        dropout: share of the MLP's hidden activations that is dropped while training.
        members: size of the ensemble: inspectors trained from different initial weights, whose
            outputs are averaged.
    """

    layer: Layer = "gcn"
    update: Update = "gru"
    depth: Depth | int = "m/2"
    hidden: int = 64
    readout: Readout = "set2set"
    set2set_steps: Literal["m"] | int = "m"
    sort_groups: int = 10
    mlp_layers: int = 3
    num_features: int = 3
    num_context: int = 0
    output: Output = "leaky_relu"
    dropout: float = 0.0
    members: int = 1

    def __post_init__(self) -> None:
        choices = {"layer": Layer, "update": Update, "readout": Readout, "output": Output}
        for field, allowed in choices.items():
            check_choice(f"inspector {field}", getattr(self, field), get_args(allowed))
        for field, (least, most) in _BOUNDS.items():
            check_whole(f"inspector {field}", getattr(self, field), least, most)
        if self.update == "gru" and self.num_features > self.hidden:
            raise ConfigError(
                f"{self.num_features} features do not fit a GRU of width {self.hidden}; "
                "give a larger hidden"
            )
        if isinstance(self.depth, str):
            check_choice("inspector depth", self.depth, get_args(Depth))
        else:
            check_whole("inspector depth", self.depth, 1, _MAX_DEPTH)
        if self.set2set_steps != "m":
            check_whole("inspector set2set_steps", self.set2set_steps, 1, _MAX_DEPTH)
        check_number("inspector dropout", self.dropout, least=0, below=1)

    def num_layers(self, num_groups: int) -> int:
        """K, the number of graph layers, for graphs of `num_groups` groups; at least 1."""
        if isinstance(self.depth, int):
            return self.depth
        if self.depth == "m":
            return num_groups
        if self.depth == "m/2":
            return max(1, num_groups // 2)
        base = int(self.depth.removeprefix("log"))
        return max(1, round(math.log(num_groups, base)))

    def num_set2set_steps(self, num_groups: int) -> int:
        """Steps of set2set for graphs of `num_groups` groups."""
        return num_groups if self.set2set_steps == "m" else self.set2set_steps

    @property
    def needs_torch(self) -> bool:
        """Whether NumPy cannot run it: it has a graph layer or readout that no preset uses."""
        return self.layer not in _NUMPY_LAYERS or self.readout not in _NUMPY_READOUTS

    @property
    def readout_width(self) -> int:
        """Length of the readout's vector, without the context."""
        widths = {"set2set": 2 * self.hidden, "sort": self.sort_groups * self.hidden}
        return widths.get(self.readout, self.hidden)

    def to_dict(self) -> dict[str, Json]:
        """The fields by name, for the checkpoint."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> InspectorConfig:
        """The inverse of `to_dict`; raises ConfigError on unknown, missing or odd fields."""
        return from_json(cls, dict(fields), where="inspector configuration", advice=_ADVICE)
