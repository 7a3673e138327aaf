"""Expanded tensors are read once: frozen weights on turned activations, broadcast operands."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from driple.graph.cost import cost_of_graph  # noqa: E402
from driple.graph.opgraph import OpGraph  # noqa: E402
from driple.graph.torch.expanded import memory_shape, product_of_shared  # noqa: E402
from driple.graph.torch.step import StepOptions, traced_step  # noqa: E402

LENGTH, BATCH, WIDTH = 16, 8, 64


class Turned(nn.Module):
    """A layer, and one on what is then no longer sequence-first in memory."""

    def __init__(self, *, frozen: bool) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH, bias=False)
        self.second = nn.Linear(WIDTH, WIDTH, bias=False)
        self.second.weight.requires_grad_(not frozen)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        turned: torch.Tensor = self.second(self.first(x).transpose(0, 1))
        return turned


def products(*, frozen: bool) -> list[tuple[float, float]]:
    """FLOPs and bytes read of each product of matrices."""
    with torch.device("meta"):
        model, x = Turned(frozen=frozen), torch.zeros(LENGTH, BATCH, WIDTH)
    graph: OpGraph = traced_step(model, x, lambda y: y.mean(), StepOptions())
    cost = cost_of_graph(graph)
    return [
        (float(cost.flops[node]), float(cost.bytes_read[node]))
        for node, which in enumerate(graph.signature_of)
        if graph.signatures[which].kind in {"matmul", "batch_matmul"}
    ]


def test_a_frozen_layer_reads_its_weight_once() -> None:
    """Frozen or not, each product has the same FLOPs and reads the same bytes."""
    frozen, trained = products(frozen=True), products(frozen=False)
    assert len(trained) == len(frozen) + 1  # the gradient of the second weight
    assert set(frozen) == set(trained)


def test_a_product_with_own_matrices_stays_a_batch() -> None:
    """Only a stride of 0 makes a batch of products one product."""
    left, right = torch.zeros(4, 3, 5), torch.zeros(4, 5, 2)
    assert product_of_shared(left, right) is None
    assert product_of_shared(left, right[:1].expand(4, 5, 2)) == ((12, 5), (5, 2), (12, 2))
    assert product_of_shared(left[:1].expand(4, 3, 5), right) == ((3, 5), (5, 8), (3, 8))


def test_memory_of_an_expanded_tensor() -> None:
    """Expanded dimensions count one element; others stay."""
    assert memory_shape(torch.zeros(3, 1, 2).expand(3, 7, 2)) == (3, 1, 2)
    assert memory_shape(torch.zeros(3, 7, 2)) is None


class Spread(nn.Module):
    """Adds a vector to each row, as `expand` writes it out."""

    def __init__(self) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.empty(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.vector.expand_as(x)


def test_an_expanded_operand_counts_once() -> None:
    """`x + v.expand_as(x)` reads what `x + v` reads."""
    with torch.device("meta"):
        model, x = Spread(), torch.zeros(BATCH, WIDTH)
    graph = traced_step(model, x, lambda y: y.mean(), StepOptions())
    cost = cost_of_graph(graph)
    node = next(n for n, which in enumerate(graph.signature_of)
                if graph.signatures[which].kind == "add")  # fmt: skip
    assert cost.bytes_read[node] == 4 * (BATCH * WIDTH + WIDTH)
