"""Groups of ops that a compiler computes by one kernel, by hand."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step


class Computes(nn.Module):
    """A model of one weight that computes a function of its batch."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(8, 8, device="meta"))
        self._function = function

    def forward(self, batch: Tensor) -> Tensor:
        return self._function(batch, self.weight)


def groups(function: Callable[[Tensor, Tensor], Tensor]) -> list[tuple[str, int]]:
    """Kind and group of each op of a forward pass over 64 x 8 numbers."""
    batch = torch.empty(64, 8, device="meta")
    graph: OpGraph = traced_step(
        Computes(function), batch, None, StepOptions(compiled=True, task="forward")
    )
    kinds = [graph.signatures[number].kind for number in graph.signature_of.tolist()]
    return list(zip(kinds, graph.fusion_of.tolist(), strict=True))


def test_a_chain_is_one_kernel() -> None:
    found = groups(lambda x, w: (x.relu() + 1).sigmoid())
    assert {group for _, group in found} == {0}


def test_a_product_parts_two_kernels() -> None:
    found = groups(lambda x, w: ((x.relu() + 1) @ w).sigmoid() * 2)
    assert [group for kind, group in found if kind == "matmul"] == [-1]
    assert {group for kind, group in found if kind != "matmul"} == {0, 1}


def test_what_a_reduction_leaves_is_computed_in_its_kernel() -> None:
    """A norm by hand: the root of the mean of squares divides the numbers that it is of."""
    found = groups(lambda x, w: x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())
    assert {group for _, group in found} == {0}


def test_two_chains_that_meet_are_one_kernel() -> None:
    found = groups(lambda x, w: x.relu().exp() + x.sigmoid().square())
    assert {group for _, group in found} == {0}


def test_a_kernel_does_not_wait_for_itself() -> None:
    """The gate is made by a product of what it scales."""

    def gated(x: Tensor, w: Tensor) -> Tensor:
        y = x.relu()
        return y * (y @ w).sigmoid()

    found = groups(gated)
    numbers = [group for _, group in found]
    places = [place for place, (kind, _) in enumerate(found) if kind == "matmul"]
    assert numbers[0] == -1 or numbers[0] not in numbers[places[0] :]


def test_a_move_is_computed_with_what_it_moves() -> None:
    found = groups(lambda x, w: nn.functional.pad(x.sigmoid(), (0, 8)))
    assert {group for _, group in found} == {0}


def test_readers_of_one_tensor_are_one_kernel() -> None:
    def both(x: Tensor, w: Tensor) -> Tensor:
        made = x @ w
        return torch.stack([made.relu().sum(), made.sigmoid().sum()])

    kinds = dict(groups(both))
    assert kinds["relu"] == kinds["sigmoid"] >= 0
