"""What a price rests on, and graphs whose sizes are open."""

from __future__ import annotations

import torch
from torch import nn

from driple.graph.opgraph import OpGraph
from driple.graph.torch.torch_graph import graph_of_step
from driple.planning.amount import Amount
from driple.planning.assumptions import assumptions_of, precision_of
from driple.remarks import remark
from driple.render.plan_words import assumptions_sentence


def graph_of(model: nn.Module, dtype: torch.dtype = torch.float32) -> OpGraph:
    inputs = torch.zeros(8, 16, dtype=dtype, device="meta")
    return graph_of_step(model.to("meta"), inputs, lambda outputs: outputs.sum())


class Mixed(nn.Module):
    """A product of bfloat16 and one of float32, of the same size."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high = nn.Linear(16, 16).bfloat16(), nn.Linear(16, 16)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.high(self.low(inputs.bfloat16()).float())


def test_precision_is_that_of_the_products() -> None:
    """The first product has no gradient by its input: two products of low, three of high."""
    assert precision_of(graph_of(nn.Linear(16, 16))) == "float32"
    assert precision_of(graph_of(nn.Linear(16, 16).half(), torch.float16)) == "float16"
    assert precision_of(graph_of(Mixed())) == "float32 (60%), bfloat16 (40%)"
    assert precision_of(graph_of(nn.LayerNorm(16))) == "unknown precision"


def test_all_assumptions_are_in_the_sentence() -> None:
    amount = Amount(samples_per_epoch=50_000, epochs=3, source=remark("samples_by_option"))
    assumptions = assumptions_of(graph_of(nn.Linear(16, 16)), amount, batch_size=8)
    assert assumptions_sentence(assumptions) == (
        "assumed: products in float32; optimizer momentum; batches of 8 samples per device; "
        "50,000 samples per epoch (--samples), 3 epochs"
    )
    assert assumptions.optimizer == "momentum"
    same = assumptions_of(graph_of(nn.Linear(16, 16)), amount, batch_size=8, global_batch=64)
    assert "8 samples per device, 64 samples of all devices per update" in assumptions_sentence(
        same
    )
