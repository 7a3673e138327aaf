"""The inspector: graph layers with updates, readout, fully connected layers (paper, section 3.2).

    x [B, M, F] -> phi_f + update -> (phi_r + update) x (K - 1) -> h [B, M, H]
    h -> readout, joined by the context -> MLP -> [B, 12]

phi_f has weights of its own; the K - 1 runs of phi_r share one set, and so do their updates. After
a transfer the last of them share a second set, which was tuned (section 4.2.3). The
result is on the scale of the target scaler, in the order of `driple.trace.targets.TARGET_NAMES`.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from driple.checks import check_whole
from driple.errors import ConfigError
from driple.inspector.batch import GroupBatch, make_batch
from driple.inspector.config import CONV_NEGATIVE_SLOPE, InspectorConfig
from driple.inspector.fused import StageWeights, shared_stages
from driple.inspector.layers import GCNLayer, GraphLayer, make_layer
from driple.inspector.readout import make_readout
from driple.trace.targets import NUM_TARGETS

__all__ = ["GroupBatch", "Inspector", "make_batch", "repeated_tanh"]


class InspectorStage(nn.Module):
    """One graph layer and the update after it.

    `gru`: h' = GRU(input: h, padded with zeros; state: LeakyReLU(conv(h))).
    `residual`: h' = h + LeakyReLU(conv(LayerNorm(h))); without h and LayerNorm in phi_f, whose
    input is narrower than its output.
    """

    def __init__(self, config: InspectorConfig, in_features: int, *, first: bool) -> None:
        super().__init__()
        self.conv = make_layer(config.layer, in_features, config.hidden)
        self.gru: nn.GRUCell | None = None
        self.norm: nn.LayerNorm | None = None
        if config.update == "gru":
            self.gru = nn.GRUCell(config.hidden, config.hidden)
        elif not first:
            self.norm = nn.LayerNorm(config.hidden)

    def forward(self, h: Tensor, structure: Tensor) -> Tensor:
        """Shape [B, M, F] to [B, M, H]; structure as of the layer's `prepare`."""
        taken = h if self.norm is None else self.norm(h)
        y = functional.leaky_relu(self.conv(taken, structure), CONV_NEGATIVE_SLOPE)
        if self.gru is not None:
            width = y.shape[2]
            padded = functional.pad(h, (0, width - h.shape[2]))
            out: Tensor = self.gru(padded.reshape(-1, width), y.reshape(-1, width))
            return out.view(y.shape)
        return y if self.norm is None else h + y


class Inspector(nn.Module):
    """The model of one cluster setting.

    Args:
        config: structure.
        num_groups: M; the number of graph layers and of set2set steps follow from it. Graphs with
            fewer groups run through as many layers.
        num_tuned: how many of the K - 1 repeated layers, counted from the last, have the second
            set of weights (phi_r^FT); the others keep the first (phi_r^s).
        fused: whether the shared GCN + GRU stages run as one function (`fused.py`), which is
            faster and gives the same numbers.

    Raises:
        ConfigError: no groups, or more tuned layers than there are.
    """

    def __init__(
        self, config: InspectorConfig, num_groups: int, *, num_tuned: int = 0, fused: bool = True
    ) -> None:
        super().__init__()
        if num_groups < 1:
            raise ConfigError(f"an inspector for {num_groups} groups; give 1 or more")
        self.config = config
        self.num_layers = config.num_layers(num_groups)
        check_whole("tuned layers", num_tuned, 0, self.num_layers - 1)
        self.num_kept, self.num_tuned = self.num_layers - 1 - num_tuned, num_tuned
        self.fused = fused and config.layer == "gcn" and config.update == "gru"
        self.first = InspectorStage(config, config.num_features, first=True)
        self.shared = InspectorStage(config, config.hidden, first=False) if self.num_kept else None
        self.tuned = InspectorStage(config, config.hidden, first=False) if num_tuned else None
        self.num_passed = 0  # repeated layers in closed form: `shorten`
        self.readout = make_readout(config, num_groups)
        widths = [config.readout_width + config.num_context]
        widths += [config.hidden] * (config.mlp_layers - 1) + [NUM_TARGETS]
        self.mlp = nn.ModuleList(
            nn.Linear(width, next_width) for width, next_width in pairwise(widths)
        )

    def forward(self, batch: GroupBatch) -> Tensor:
        """Scaled targets, shape [B, 12]."""
        # One structure serves all stages: it depends on the kind of layer, not on its weights.
        structure = self._structure(batch)
        h = self._repeated(self.shared, self.first(batch.x, structure), structure, self.num_kept)
        h = self._repeated(self.tuned, h, structure, self.num_tuned)
        if self.num_passed:
            h = repeated_tanh(h, self.num_passed)
        return self.head(self.readout(h, batch.mask), batch)

    def shorten(self, num_passed: int | None) -> None:
        """Put this number of repeated layers into closed form, in place of all; None: use all.

        GRU gates that pass embeddings on make each of them a tanh.
        """
        num_repeated = self.num_layers - 1 - self.num_tuned
        self.num_kept = num_repeated if num_passed is None else 0
        self.num_passed = num_passed or 0

    def kept_layers(self, batch: GroupBatch) -> GroupBatch:
        """The batch with phi_f and the layers before the tuned ones done: x is [B, M, H]."""
        structure = self._structure(batch)
        h = self._repeated(self.shared, self.first(batch.x, structure), structure, self.num_kept)
        return replace(batch, x=h)

    def read_out(self, batch: GroupBatch) -> Tensor:
        """Tuned layers and readout of what `kept_layers` gives; shape [B, readout width]."""
        h = batch.x
        if self.num_tuned:
            h = self._repeated(self.tuned, h, self._structure(batch), self.num_tuned)
        out: Tensor = self.readout(h, batch.mask)
        return out

    def _structure(self, batch: GroupBatch) -> Tensor:
        return cast(GraphLayer, self.first.conv).prepare(batch.adjacency)

    def _repeated(
        self, stage: InspectorStage | None, h: Tensor, structure: Tensor, times: int
    ) -> Tensor:
        """One stage, repeated."""
        if stage is None:
            return h
        if self.fused:
            return shared_stages(h, structure, _stage_weights(stage), times)
        for _ in range(times):
            h = stage(h, structure)
        return h

    def head(self, read: Tensor, batch: GroupBatch) -> Tensor:
        """Context and fully connected layers: [B, readout width] to [B, 12]."""
        out: Tensor = torch.cat([read, batch.context], dim=1)
        for linear in self.mlp[:-1]:
            out = functional.relu(linear(out))
            out = functional.dropout(out, self.config.dropout, self.training)
        out = self.mlp[-1](out)
        if self.config.output == "linear":
            return out
        return functional.leaky_relu(out, CONV_NEGATIVE_SLOPE)


def repeated_tanh(h: Tensor, times: int) -> Tensor:
    """Repeated tanh of h, within 2 %: the solution of dh/dt = -h^3 / 3, after one tanh."""
    once = torch.tanh(h)
    return once * torch.rsqrt(1 + 2 * (times - 1) / 3 * once.square())


def _stage_weights(stage: InspectorStage) -> StageWeights:
    """The weights of a GCN + GRU stage."""
    linear = cast(GCNLayer, stage.conv).linear
    gru = cast(nn.GRUCell, stage.gru)
    return StageWeights(
        linear.weight, linear.bias, gru.weight_ih, gru.weight_hh, gru.bias_ih, gru.bias_hh
    )
