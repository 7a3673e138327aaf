"""Several inspectors side by side, whose answers are averaged (ours).

    GroupBatch -> member 0, member 1, ... -> [E, B, 12] while training, their mean [B, 12] otherwise

Members begin with different weights and drop different activations; on a hundred labels their mean
is more accurate than any of them, and the distance between them shows its uncertainty.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from driple.inspector.batch import GroupBatch
from driple.inspector.config import InspectorConfig
from driple.inspector.model import Inspector

__all__ = ["Ensemble", "make_inspector"]


class Ensemble(nn.Module):
    """Inspectors of one structure.

    Args:
        config: structure; `config.members` of them are made.
        num_groups: M.
        num_tuned: repeated layers, counted from the last, with weights of their own.
    """

    def __init__(self, config: InspectorConfig, num_groups: int, *, num_tuned: int = 0) -> None:
        super().__init__()
        self.config = config
        single = replace(config, members=1)
        self.members = nn.ModuleList(
            Inspector(single, num_groups, num_tuned=num_tuned) for _ in range(config.members)
        )

    def forward(self, batch: GroupBatch) -> Tensor:
        """Scaled targets: [E, B, 12] of each member while training, else their mean [B, 12]."""
        outputs = torch.stack([member(batch) for member in self.members])
        return outputs if self.training else outputs.mean(dim=0)


def make_inspector(
    config: InspectorConfig, num_groups: int, *, num_tuned: int = 0
) -> Inspector | Ensemble:
    """The model of a configuration: one inspector, or an ensemble of `config.members`.

    Args:
        config: structure.
        num_groups: M.
        num_tuned: repeated layers, counted from the last, with weights of their own.
    """
    if config.members == 1:
        return Inspector(config, num_groups, num_tuned=num_tuned)
    return Ensemble(config, num_groups, num_tuned=num_tuned)
