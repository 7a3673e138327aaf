"""The least memory of a step, by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from driple.graph.opgraph import OpGraph
from driple.graph.torch.torch_graph import graph_of_step
from driple.memory.least import LeastMemory, least_memory


def graph_of(update: str) -> OpGraph:
    with torch.device("meta"):
        model, inputs = nn.Linear(300, 500, bias=False), torch.zeros(200, 300)
    return graph_of_step(model, inputs, lambda outputs: outputs.sum(), update)


@pytest.mark.parametrize(
    ("update", "states"),
    [("update_sgd", 0), ("update_momentum", 1), ("update_adam", 2), ("update_other", 0)],
)
def test_parameters_gradients_states_and_the_largest_tensor(update: str, states: int) -> None:
    """A layer of 300 x 500 weights; its gradient, as large, is the largest tensor."""
    weights = 4 * 300 * 500
    least = least_memory(graph_of(update))
    assert least == LeastMemory(
        parameters_bytes=weights,
        gradients_bytes=weights,
        states_bytes=states * weights,
        largest_tensor_bytes=weights,
    )
    assert least.total_bytes == (3 + states) * weights
