"""Graph layers against torch_geometric with the same weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import EdgeConv, GATConv, GCNConv, GINConv

from driple.inspector.batch import GroupBatch, make_batch
from driple.inspector.layers import GATLayer, GCNLayer, GINLayer, MPNNLayer, make_layer

from .examples import random_input


def graph_and_edges() -> tuple[GroupBatch, Tensor]:
    """A graph of 17 groups, one of them without edges, and its directed edges."""
    graph_input = random_input(3, 17)
    graph_input = replace(
        graph_input, edges=graph_input.edges[(graph_input.edges != 16).all(axis=1)]
    )
    both = torch.from_numpy(graph_input.edges).long()
    return make_batch([graph_input]), torch.cat([both, both.flip(1)]).t()


def convolve(layer: nn.Module, batch: GroupBatch) -> Tensor:
    return layer(batch.x, layer.prepare(batch.adjacency))[0]


def test_gcn_is_that_of_torch_geometric() -> None:
    """Same weights: the same numbers as GCNConv."""
    batch, edges = graph_and_edges()
    own, other = GCNLayer(3, 8), GCNConv(3, 8)
    with torch.no_grad():
        other.lin.weight.copy_(own.linear.weight)
        other.bias.copy_(own.linear.bias)
    torch.testing.assert_close(convolve(own, batch), other(batch.x[0], edges))


def test_gat_is_that_of_torch_geometric() -> None:
    """Same weights: the same numbers as GATConv with one head."""
    batch, edges = graph_and_edges()
    own, other = GATLayer(3, 8), GATConv(3, 8)
    with torch.no_grad():
        own.bias.normal_()
        other.lin.weight.copy_(own.weight)
        other.att_src.copy_(own.source[None])
        other.att_dst.copy_(own.destination[None])
        other.bias.copy_(own.bias)
    torch.testing.assert_close(convolve(own, batch), other(batch.x[0], edges))


def test_gin_is_that_of_torch_geometric() -> None:
    """Same weights: the same numbers as GINConv with a trained epsilon."""
    batch, edges = graph_and_edges()
    own = GINLayer(3, 8)
    other = GINConv(nn.Sequential(own.first, nn.ReLU(), own.second), train_eps=True)
    with torch.no_grad():
        own.eps.fill_(0.3)
        other.eps.copy_(own.eps)
    torch.testing.assert_close(convolve(own, batch), other(batch.x[0], edges))


def test_mpnn_messages_are_those_of_torch_geometric() -> None:
    """The sum of messages is EdgeConv's, whose network sees [h_i, h_j - h_i]."""
    batch, edges = graph_and_edges()
    own = MPNNLayer(3, 8)
    linear = nn.Linear(6, 8)
    other = EdgeConv(nn.Sequential(linear, nn.ReLU()), aggr="add")  # draws new weights
    with torch.no_grad():
        linear.weight.copy_(
            torch.cat([own.destination.weight + own.source.weight, own.source.weight], dim=1)
        )
        linear.bias.copy_(own.source.bias)
    expected = own.root(batch.x[0]) + own.message(other(batch.x[0], edges))
    torch.testing.assert_close(convolve(own, batch), expected)


@pytest.mark.parametrize("name", ["gcn", "gat", "gin", "mpnn"])
def test_a_graph_of_one_group(name: str) -> None:
    """One group without edges gives finite numbers."""
    batch = make_batch([random_input(0, 1)])
    assert torch.isfinite(convolve(make_layer(name, 3, 4), batch)).all()
