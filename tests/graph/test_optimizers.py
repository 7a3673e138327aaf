"""The update of a step from the kinds of its ops."""

from __future__ import annotations

import pytest

from driple.graph.cost import cost_of_op
from driple.graph.cost.updates import UPDATES
from driple.graph.opgraph import RemoteOps, Traffic
from driple.graph.opkind import KINDS
from driple.graph.optimizers import optimizer_of_kind, update_of_kinds, update_of_remote
from driple.graph.signature import OpSignature, Tensor

FLOAT, INT8 = 1, 6


def test_the_optimizer_is_that_of_most_updates() -> None:
    """Updates of some rows count with those of whole variables."""
    counts = {"update_momentum": 3, "update_adam": 2, "sparse_update_adam": 2, "variable": 90}
    update = update_of_kinds(counts, 1000)
    assert (update.optimizer, update.num_kernels) == ("adam", 7)
    assert (update.state_bytes, update.moved_bytes) == (2000, 7000)


@pytest.mark.parametrize(
    ("kind", "word", "states"),
    [
        ("update_sgd", "sgd", 0),
        ("update_momentum", "momentum", 1),
        ("sparse_update_adagrad_epsilon", "adagrad", 1),
        ("update_ftrl_shrinkage", "ftrl", 2),
        ("update_lion", "lion", 1),
        ("update_adamw", "adamw", 2),
    ],
)
def test_each_has_a_word_and_its_states(kind: str, word: str, states: int) -> None:
    assert optimizer_of_kind(kind) == word
    update = update_of_kinds({kind: 1}, 100)
    assert update.state_bytes == 100 * states
    assert update.moved_bytes == 100 * (2 * states + 3)  # variable and states both ways, gradient


def test_without_a_known_update_the_states_are_those_that_the_graph_shows() -> None:
    update = update_of_remote(
        (RemoteOps.of_op_type("ApplyNew", num_nodes=5, tensor_bytes=0),), Traffic(), 77
    )
    assert (update.optimizer, update.state_bytes, update.num_kernels) == ("", 77, 0)


def test_updates_are_kinds() -> None:
    assert set(UPDATES) <= KINDS
    assert optimizer_of_kind("conv") == optimizer_of_kind("update_other") == ""


def test_a_fused_kernel_counts_all_parameters_and_the_types_of_their_states() -> None:
    """PyTorch's AdamW over 1000 parameters, and one whose moments take a byte each."""
    plain = tuple(Tensor((1000,), FLOAT) for _ in range(4))
    cost = cost_of_op(OpSignature("update_adamw", plain, plain[:3]))
    assert cost.known
    assert cost.flops == 13 * 1000
    assert (cost.bytes_read, cost.bytes_written) == (16_000, 12_000)
    small = (plain[0], Tensor((1000,), INT8), Tensor((1000,), INT8), plain[3])
    cost = cost_of_op(OpSignature("update_adam8bit", small, small[:3]))
    assert (cost.bytes_read, cost.bytes_written) == (4000 + 2000 + 4000, 6000)
