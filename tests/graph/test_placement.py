"""Which server holds which variable, and how much each holds."""

from __future__ import annotations

import numpy as np
import pytest

from driple.graph.placement import gradients_to, place_variables, server_bytes

SIZES = np.array([100, 1, 1, 1, 50])


def test_placement_in_turn_and_by_size() -> None:
    assert place_variables(SIZES, 2).tolist() == [0, 1, 0, 1, 0]
    assert place_variables(SIZES, 2, "greedy").tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("num_servers", "expected"),
    [(1, [115]), (2, [103, 12]), (3, [101, 11, 3]), (7, [100, 10, 2, 1, 1, 1, 0])],
)
def test_servers_hold_what_they_are_dealt(num_servers: int, expected: list[int]) -> None:
    assert server_bytes(np.array([100, 10, 2, 1, 1, 1]), num_servers).tolist() == expected


def test_servers_hold_nothing_of_no_variables() -> None:
    assert server_bytes(SIZES[:0], 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("strategy", ["round_robin", "greedy"])
def test_no_byte_is_lost(strategy: str) -> None:
    assert server_bytes(SIZES, 3, strategy).sum() == SIZES.sum()


def test_gradients_go_where_their_variables_are() -> None:
    variables, servers = np.array([10, 20, 10]), np.array([0, 1, 2])
    assert gradients_to(np.array([10, 20, 10, 99]), variables, servers).tolist() == [2, 1, 0, 0]
