"""Linear layers in few bits: which products are marked, and that all else is as in bf16-mixed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from driple.graph.low_precision import LOW_PRECISIONS, low_of
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import Phase
from driple.graph.torch.options import PRECISIONS, StepOptions
from driple.graph.torch.step import traced_step


class Words(nn.Module):
    """Two linear layers, scores between words, and the layer of a vocabulary."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.lm_head = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 96)

    def forward(self, words: Tensor) -> Tensor:
        hidden = self.down(self.up(words))
        mixed: Tensor = self.lm_head(torch.bmm(hidden @ hidden.transpose(1, 2), hidden))
        return mixed


def graph(precision: str) -> OpGraph:
    with torch.device("meta"):
        model, batch = Words(), torch.zeros(4, 16, 32)
    options = StepOptions(precision=precision)  # type: ignore[arg-type]
    return traced_step(model, batch, lambda found: found.sum(), options)


def formats(op_graph: OpGraph) -> dict[str, list[int]]:
    """Formats of the products of each kind, a number for each node."""
    kinds: dict[str, list[int]] = {}
    for place in op_graph.signature_of.tolist():
        op = op_graph.signatures[place]
        if op.kind in {"matmul", "batch_matmul"}:
            kinds.setdefault(op.kind, []).append(low_of(op))
    return kinds


@pytest.mark.parametrize("precision", LOW_PRECISIONS)
def test_linear_layers_but_the_last_multiply_in_few_bits(precision: str) -> None:
    """Forward, and gradients by inputs (but of the batch) and by weights: five of them, and three
    of the vocabulary's.
    """
    formats_of, number = formats(graph(precision)), LOW_PRECISIONS.index(precision) + 1
    assert sorted(formats_of["matmul"]) == [0] * 3 + [number] * 5
    assert set(formats_of["batch_matmul"]) == {0}


def test_all_else_is_as_in_bf16_mixed() -> None:
    low, usual = graph("fp8"), graph("bf16-mixed")
    assert set(formats(usual)["matmul"]) == {0}
    assert len(low.signature_of) == len(usual.signature_of)
    assert low.update == usual.update
    assert StepOptions(precision="fp8").has_masters


@pytest.mark.parametrize("precision", LOW_PRECISIONS)
def test_memory_is_that_of_bf16_mixed(precision: str) -> None:
    """What linear layers keep for the backward pass counts 2 bytes an element, as pages say."""
    low, usual = graph(precision), graph("bf16-mixed")
    assert low.lifetimes.nbytes.tolist() == usual.lifetimes.nbytes.tolist()
    assert low.lifetimes.freed_after.tolist() == usual.lifetimes.freed_after.tolist()
    assert low.parameters.nbytes.tolist() == usual.parameters.nbytes.tolist()
    kept = [
        nbytes
        for nbytes, node, last in zip(
            low.lifetimes.nbytes.tolist(),
            low.lifetimes.made_by.tolist(),
            low.lifetimes.freed_after.tolist(),
            strict=True,
        )
        if 0 <= node < last
        and low.phases[node] == Phase.FORWARD
        and last < low.num_nodes
        and low.phases[last] == Phase.BACKWARD
    ]
    assert 4 * 16 * 64 * 2 in kept  # the input of `down`


def test_every_format_is_a_precision() -> None:
    assert set(LOW_PRECISIONS) < set(PRECISIONS)
