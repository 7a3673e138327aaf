"""Readouts: the embeddings of all groups of a graph become one vector (paper, section 3.2, eq. 3).

h [B, M, H], mask [B, M]  ->  [B, W]     W = H; 2 H for set2set; kept groups * H for sort
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from driple.inspector.config import InspectorConfig
from driple.inspector.fused_set2set import set2set

__all__ = ["AddReadout", "MaxReadout", "MeanReadout", "Set2Set", "SortReadout", "make_readout"]


class AddReadout(nn.Module):
    """Sum over the groups."""

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Shapes [B, M, H] and [B, M] to [B, H]."""
        return torch.bmm(mask.unsqueeze(1), h).squeeze(1)


class MeanReadout(nn.Module):
    """Mean over the groups."""

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Shapes [B, M, H] and [B, M] to [B, H]."""
        return torch.bmm(mask.unsqueeze(1), h).squeeze(1) / mask.sum(dim=1, keepdim=True)


class MaxReadout(nn.Module):
    """Maximum of each column over the groups."""

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Shapes [B, M, H] and [B, M] to [B, H]."""
        blocked = torch.zeros_like(mask).masked_fill(mask == 0, -torch.inf).unsqueeze(2)
        return torch.max(h + blocked, dim=1).values


class SortReadout(nn.Module):
    """The groups with the largest last column, largest first, side by side; zeros if too few.

    Zhang et al., "An End-to-End Deep Learning Architecture for Graph Classification", AAAI 2018.
    """

    def __init__(self, num_kept: int) -> None:
        super().__init__()
        self.num_kept = num_kept

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Shapes [B, M, H] and [B, M] to [B, num_kept * H]."""
        key = h[:, :, -1].masked_fill(mask == 0, -torch.inf)
        order = key.sort(dim=1, descending=True, stable=True).indices[:, : self.num_kept]
        index = order.unsqueeze(2).expand(-1, -1, h.shape[2])
        kept = (h * mask.unsqueeze(2)).gather(1, index)
        padded = h.new_zeros(len(h), self.num_kept, h.shape[2])
        padded[:, : kept.shape[1]] = kept
        return padded.flatten(1)


class Set2Set(nn.Module):
    """q_t = LSTM([q_{t-1}, r_{t-1}]); r_t = sum_i softmax_i(h_i . q_t) h_i; result [q_T, r_T].

    Vinyals, Bengio and Kudlur, "Order Matters: Sequence to Sequence for Sets", ICLR 2016.
    """

    def __init__(self, hidden: int, num_steps: int) -> None:
        super().__init__()
        self.lstm = nn.LSTMCell(2 * hidden, hidden)
        self.num_steps = num_steps

    def forward(self, h: Tensor, mask: Tensor) -> Tensor:
        """Shapes [B, M, H] and [B, M] to [B, 2 H]."""
        hidden = h.shape[2]
        # The LSTM's state is the query itself, so both of its matrices meet the query: add them.
        lstm = self.lstm
        on_query = (lstm.weight_ih[:, :hidden] + lstm.weight_hh).t()
        on_both = torch.cat([on_query, lstm.weight_ih[:, hidden:].t()])
        return set2set(h, mask, on_both, lstm.bias_ih + lstm.bias_hh, self.num_steps)


def make_readout(config: InspectorConfig, num_groups: int) -> nn.Module:
    """The readout called `config.readout`, for graphs of M = `num_groups` groups."""
    if config.readout == "set2set":
        return Set2Set(config.hidden, config.num_set2set_steps(num_groups))
    if config.readout == "sort":
        return SortReadout(config.sort_groups)
    kinds: dict[str, type[nn.Module]] = {
        "add": AddReadout,
        "mean": MeanReadout,
        "max": MaxReadout,
    }
    return kinds[config.readout]()
