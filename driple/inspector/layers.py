"""Graph convolutions on padded batches (paper, sections 3.2 and 5.2.2).

    h [B, M, F_in], structure of the graphs  ->  h' [B, M, F_out], no activation

Each layer has `prepare`, which turns the adjacency into what the layer needs (once per batch, since
the shared layer runs up to M times), and `forward`. Groups that are padded have no edges: they get
numbers of their own, which reach no other group.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["GATLayer", "GCNLayer", "GINLayer", "GraphLayer", "MPNNLayer", "make_layer"]

ATTENTION_NEGATIVE_SLOPE = 0.2


class GraphLayer(Protocol):
    """Interface of a layer."""

    def prepare(self, adjacency: Tensor) -> Tensor:
        """Matrices for `forward`; computed once per batch."""

    def __call__(self, h: Tensor, structure: Tensor) -> Tensor:
        """Convolve h, shape [B, M, F_in], to [B, M, F_out]."""


class GCNLayer(nn.Module):
    """h' = D^-1/2 (A + I) D^-1/2 h W^T + b, with D the degrees of A + I.

    Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR 2017.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def prepare(self, adjacency: Tensor) -> Tensor:
        """Normalised adjacency with self-loops, shape [B, M, M], symmetric."""
        scale = (adjacency.sum(dim=2) + 1.0).rsqrt()
        looped = adjacency + torch.eye(adjacency.shape[1], device=adjacency.device)
        return looped * scale.unsqueeze(2) * scale.unsqueeze(1)

    def forward(self, h: Tensor, structure: Tensor) -> Tensor:
        """Shape [B, M, F_in] to [B, M, F_out]; structure as of `prepare`."""
        return torch.bmm(structure, h @ self.linear.weight.t()) + self.linear.bias


class GATLayer(nn.Module):
    """h'_i = sum_j a_ij W h_j + b over j in N(i) and i itself; one head.

    a_ij = softmax_j(LeakyReLU_0.2(s^T W h_j + d^T W h_i)).
    Velickovic et al., "Graph Attention Networks", ICLR 2018.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self.source = nn.Parameter(torch.empty(1, out_features))
        self.destination = nn.Parameter(torch.empty(1, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        for parameter in (self.weight, self.source, self.destination):
            nn.init.xavier_uniform_(parameter)

    def prepare(self, adjacency: Tensor) -> Tensor:
        """Shape [B, M, M], true where there is no edge and no self-loop."""
        return (adjacency + torch.eye(adjacency.shape[1], device=adjacency.device)) == 0

    def forward(self, h: Tensor, structure: Tensor) -> Tensor:
        """Shape [B, M, F_in] to [B, M, F_out]; structure as of `prepare`."""
        projected = h @ self.weight.t()
        source = projected @ self.source.t()
        destination = projected @ self.destination.t()
        score = functional.leaky_relu(
            destination + source.transpose(1, 2), ATTENTION_NEGATIVE_SLOPE
        )
        attention = torch.softmax(score.masked_fill(structure, -torch.inf), dim=2)
        return torch.bmm(attention, projected) + self.bias


class GINLayer(nn.Module):
    """h'_i = MLP((1 + eps) h_i + sum of h_j over N(i)), MLP of two layers with a ReLU between.

    Xu et al., "How Powerful are Graph Neural Networks?", ICLR 2019.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.first = nn.Linear(in_features, out_features)
        self.second = nn.Linear(out_features, out_features)

    def prepare(self, adjacency: Tensor) -> Tensor:
        """The adjacency itself."""
        return adjacency

    def forward(self, h: Tensor, structure: Tensor) -> Tensor:
        """Shape [B, M, F_in] to [B, M, F_out]; structure as of `prepare`."""
        summed = (1 + self.eps) * h + torch.bmm(structure, h)
        out: Tensor = self.second(functional.relu(self.first(summed)))
        return out


class MPNNLayer(nn.Module):
    """h'_i = U h_i + b + V (sum over j in N(i) of ReLU(S h_j + D h_i + c)).

    Gilmer et al., "Neural Message Passing for Quantum Chemistry", ICML 2017, with the message
    function on pairs of embeddings (edges of a group graph have no features).
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.source = nn.Linear(in_features, out_features)
        self.destination = nn.Linear(in_features, out_features, bias=False)
        self.message = nn.Linear(out_features, out_features, bias=False)
        self.root = nn.Linear(in_features, out_features)

    def prepare(self, adjacency: Tensor) -> Tensor:
        """Shape [2, num_edges], destination and source positions among the B * M groups."""
        graph, row, column = adjacency.nonzero(as_tuple=True)
        offset = graph * adjacency.shape[1]
        return torch.stack([offset + row, offset + column])

    def forward(self, h: Tensor, structure: Tensor) -> Tensor:
        """Shape [B, M, F_in] to [B, M, F_out]; structure as of `prepare`."""
        flat = h.reshape(-1, h.shape[2])
        destination, source = structure
        message = self.source(flat).index_select(0, source)
        message = message + self.destination(flat).index_select(0, destination)
        summed = message.new_zeros(len(flat), message.shape[1])
        summed = summed.index_add(0, destination, functional.relu(message))
        out: Tensor = self.root(flat) + self.message(summed)
        return out.view(h.shape[0], h.shape[1], -1)


def make_layer(name: str, in_features: int, out_features: int) -> nn.Module:
    """The layer called `name` in `InspectorConfig.layer`."""
    kinds: dict[str, type[nn.Module]] = {
        "gcn": GCNLayer,
        "gat": GATLayer,
        "gin": GINLayer,
        "mpnn": MPNNLayer,
    }
    return kinds[name](in_features, out_features)
