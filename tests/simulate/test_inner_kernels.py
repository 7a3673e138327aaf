"""Kernels that one op starts from within a library."""

from __future__ import annotations

import pytest

from driple.graph.torch.torch_graph import graph_of_step
from driple.simulate.gpu_kernels import Runtime
from driple.simulate.gpu_times import inner_starts
from driple.simulate.inner_kernels import INNER_OPS
from driple.simulate.prepared_job import PreparedJob

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

STEPS, BATCH, LAYERS = 7, 3, 2


class Sequence(nn.Module):
    """A table of tokens, and layers over a sequence."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, 8)
        self.layers = nn.LSTM(8, 8, LAYERS, bidirectional=True, batch_first=True)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """States of all steps."""
        states: torch.Tensor = self.layers(self.table(tokens))[0]
        return states


def job(steps: int) -> PreparedJob:
    """A training step over so many tokens."""
    with torch.device("meta"):
        model, tokens = Sequence(100), torch.zeros(BATCH, steps, dtype=torch.int64)
    return PreparedJob(graph_of_step(model, tokens, lambda states: states.sum()))


def test_a_stack_of_layers_starts_kernels_for_each_step_layer_and_direction() -> None:
    """Two forward, four backward, in whatever order batch and steps are."""
    table = job(STEPS).kinds.table
    kernels = dict(zip(table.facts.kinds, table.inner_kernels.tolist(), strict=True))
    cells = STEPS * LAYERS * 2
    assert kernels["lstm"] == 2 * cells
    assert kernels["lstm_gradient"] == 4 * cells
    assert sum(kernels.values()) == 6 * cells
    host, apart = inner_starts(table, Runtime())
    assert host.sum() == pytest.approx(6 * cells * INNER_OPS)
    assert not apart.any()  # their time is in what such layers were fitted to


def test_the_gradient_of_a_table_sorts_many_indices() -> None:
    """Few it adds up as they are; sorting takes time of the device, too."""
    few, many = job(1000).kinds.table, job(2000).kinds.table
    place = many.facts.kinds.index("embedding_gradient")
    assert few.inner_kernels[place] == 0
    _, apart = inner_starts(many, Runtime())
    assert many.inner_kernels[place] == apart[place] > 10


def test_ops_of_tensorflow_keep_their_pace() -> None:
    host, apart = inner_starts(job(2000).kinds.table, Runtime("tensorflow"))
    assert not host.any() and not apart.any()
