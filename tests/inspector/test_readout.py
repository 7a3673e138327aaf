"""Readouts: set2set against torch_geometric, the others against plain torch; padding ignored."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.nn.aggr import Set2Set as ReferenceSet2Set
from torch_geometric.nn.aggr import SortAggregation

from driple.inspector.config import InspectorConfig
from driple.inspector.readout import Set2Set, SortReadout, make_readout


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_set2set_is_that_of_torch_geometric(steps: int) -> None:
    """Same LSTM weights: the same numbers, for graphs of different sizes in one batch."""
    own, other = Set2Set(6, steps), ReferenceSet2Set(6, processing_steps=steps)
    with torch.no_grad():
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(other.lstm, f"{name}_l0").copy_(getattr(own.lstm, name))
    sizes = [5, 1, 3]
    graphs = [torch.randn(size, 6) for size in sizes]
    h, mask = torch.randn(3, 5, 6), torch.zeros(3, 5)
    for i, graph in enumerate(graphs):
        h[i, : len(graph)] = graph
        mask[i, : len(graph)] = 1
    index = torch.repeat_interleave(torch.arange(3), torch.tensor(sizes))
    torch.testing.assert_close(own(h, mask), other(torch.cat(graphs), index))


def test_sort_is_that_of_torch_geometric() -> None:
    """The largest last columns first, zeros where there are too few groups."""
    h = torch.randn(2, 4, 3)
    for kept in (2, 4, 6):
        own = SortReadout(kept)(h, torch.ones(2, 4))
        index = torch.tensor([0] * 4 + [1] * 4)
        torch.testing.assert_close(own, SortAggregation(kept)(h.flatten(0, 1), index))


def test_simple_readouts_by_hand() -> None:
    """Sum, mean and maximum of two groups; the third is padded and enormous."""
    h = torch.tensor([[[1.0, -4.0], [3.0, -2.0], [1e9, 1e9]]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    expected = {"add": [4.0, -6.0], "mean": [2.0, -3.0], "max": [3.0, -2.0]}
    for name, values in expected.items():
        readout = make_readout(InspectorConfig(readout=name, hidden=4), 3)
        torch.testing.assert_close(readout(h, mask), torch.tensor([values]))


@pytest.mark.parametrize("name", ["add", "mean", "max", "sort", "set2set"])
def test_padding_changes_nothing(name: str) -> None:
    """Three padded groups of any content leave the result alone."""
    config = InspectorConfig(readout=name, hidden=4, sort_groups=5)
    readout = make_readout(config, 4)
    h = torch.randn(2, 4, 4)
    padded = torch.cat([h, 100 * torch.randn(2, 3, 4)], dim=1)
    mask = torch.tensor([[1.0] * 4 + [0.0] * 3] * 2)
    alone = readout(h, torch.ones(2, 4))
    assert alone.shape == (2, config.readout_width)
    torch.testing.assert_close(readout(padded, mask), alone)
