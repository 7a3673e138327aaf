"""Several inspector inputs as padded tensors.

    [InspectorInput, ...] -> x [B, M, F], adjacency [B, M, M], mask [B, M], context [B, C]

M is the largest number of groups in the batch. Padded groups have no edges and a mask of 0, hence
they reach no real group and no readout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from driple.errors import ConfigError
from driple.features.builder import InspectorInput

__all__ = ["GroupBatch", "make_batch"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupBatch:
    """A batch of B graphs of groups, padded to M groups each.

    Attributes:
        x: shape [B, M, F], features of each group, 0 where padded.
        adjacency: shape [B, M, M], 1 where two groups are joined, else 0; symmetric, no self-loops.
        mask: shape [B, M], 1 for a real group, 0 for a padded one.
        context: shape [B, C], vector of each whole graph; C may be 0.
    """

    x: Tensor
    adjacency: Tensor
    mask: Tensor
    context: Tensor

    def to(self, device: torch.device | str) -> GroupBatch:
        """The same batch on another device."""
        return GroupBatch(
            x=self.x.to(device),
            adjacency=self.adjacency.to(device),
            mask=self.mask.to(device),
            context=self.context.to(device),
        )


def make_batch(inputs: Sequence[InspectorInput]) -> GroupBatch:
    """Pad the inputs to the largest of them and stack them.

    Raises:
        ConfigError: no inputs, or inputs with different numbers of features or context values.
    """
    if not inputs:
        raise ConfigError("a batch of no graphs; give at least one")
    widths = {(item.features.shape[1], len(item.context)) for item in inputs}
    if len(widths) > 1:
        raise ConfigError(
            "graphs of one batch were built with different configurations: (features, context) "
            f"lengths are {sorted(widths)}; build them with one InputConfig"
        )
    num_features, num_context = widths.pop()
    size = max(item.num_groups for item in inputs)
    x = np.zeros((len(inputs), size, num_features), dtype=np.float32)
    adjacency = np.zeros((len(inputs), size, size), dtype=np.float32)
    mask = np.zeros((len(inputs), size), dtype=np.float32)
    context = np.zeros((len(inputs), num_context), dtype=np.float32)
    for i, graph_input in enumerate(inputs):
        x[i, : graph_input.num_groups] = graph_input.features
        adjacency[i, graph_input.edges[:, 0], graph_input.edges[:, 1]] = 1.0
        adjacency[i, graph_input.edges[:, 1], graph_input.edges[:, 0]] = 1.0
        mask[i, : graph_input.num_groups] = 1.0
        context[i] = graph_input.context
    return GroupBatch(
        x=torch.from_numpy(x),
        adjacency=torch.from_numpy(adjacency),
        mask=torch.from_numpy(mask),
        context=torch.from_numpy(context),
    )
