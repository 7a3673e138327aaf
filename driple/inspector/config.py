"""The shape of an inspector: which layer, which update, how deep, which readout (paper, 5.2.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, get_args

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
}
_MAX_DEPTH = 10_000


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

    def __post_init__(self) -> None:
        choices = {"layer": Layer, "update": Update, "readout": Readout, "output": Output}
        for field, allowed in choices.items():
            _check_choice(field, getattr(self, field), get_args(allowed))
        for field, (least, most) in _BOUNDS.items():
            _check_int(field, getattr(self, field), least, most)
        if self.update == "gru" and self.num_features > self.hidden:
            raise ConfigError(
                f"{self.num_features} features do not fit a GRU of width {self.hidden}; "
                "give a larger hidden"
            )
        if isinstance(self.depth, str):
            _check_choice("depth", self.depth, get_args(Depth))
        else:
            _check_int("depth", self.depth, 1, _MAX_DEPTH)
        if self.set2set_steps != "m":
            _check_int("set2set_steps", self.set2set_steps, 1, _MAX_DEPTH)
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise ConfigError(f"inspector dropout is {self.dropout!r}; give a number in [0, 1)")

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
    def readout_width(self) -> int:
        """Length of the readout's vector, without the context."""
        widths = {"set2set": 2 * self.hidden, "sort": self.sort_groups * self.hidden}
        return widths.get(self.readout, self.hidden)

    def to_dict(self) -> dict[str, object]:
        """The fields by name, for the checkpoint."""
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> InspectorConfig:
        """The inverse of `to_dict`; raises ConfigError on unknown, missing or odd fields."""
        known = set(cls.__dataclass_fields__)
        if set(fields) != known:
            odd = ", ".join(sorted(set(fields) ^ known))
            raise ConfigError(f"inspector configuration with unknown or missing fields: {odd}")
        return cls(**fields)  # type: ignore[arg-type]  # __post_init__ checks every value


def _check_choice(field: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"inspector {field} is {value!r}; choose one of {', '.join(allowed)}")


def _check_int(field: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigError(f"inspector {field} is {value!r}; give a whole number {least} to {most}")
