"""Initial weights that let fifty repeated GCN + GRU layers pass embeddings on.

    torch's initial weights: embeddings of all graphs are equal after 15 layers (over-smoothing)
    `pass`: h' = (1 - z) tanh(h) + z y with z = 0.0003

The paper leaves the initial weights open.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from torch import nn

from driple.errors import ConfigError
from driple.inspector.ensemble import Ensemble
from driple.inspector.model import Inspector

__all__ = ["start_passing"]

UPDATE_BIAS = -8.0  # z = 0.0003: 98 % of h passes 49 layers
RESET_BIAS = -8.0


def start_passing(model: Inspector | Ensemble) -> None:
    """Set the gates of each member.

    Raises:
        ConfigError: layers other than GCN with GRU updates.
    """
    members = [part for part in model.modules() if isinstance(part, Inspector)]
    if any(part.config.layer != "gcn" or part.config.update != "gru" for part in members):
        raise ConfigError("start pass sets the gates of GRUs after GCN layers; use start usual")
    with torch.no_grad():
        for part in members:
            _set_first(part)
            if part.shared is not None:
                _set_shared(cast(nn.GRUCell, part.shared.gru))


def _set_first(model: Inspector) -> None:
    """Weights for as many inputs as there are features."""
    width = model.config.hidden
    gru = cast(nn.GRUCell, model.first.gru)
    gru.weight_ih.mul_(math.sqrt(width / model.config.num_features))
    gru.bias_ih.zero_()
    gru.bias_hh.zero_()


def _set_shared(gru: nn.GRUCell) -> None:
    """The new gate takes h as it is, the others are nearly closed."""
    width = gru.hidden_size
    gru.weight_ih[2 * width :] = torch.eye(width)
    gru.weight_ih[: 2 * width] = 0
    gru.weight_hh.zero_()
    gru.bias_ih[:width] = RESET_BIAS
    gru.bias_ih[width : 2 * width] = UPDATE_BIAS
    gru.bias_ih[2 * width :] = 0
    gru.bias_hh.zero_()
