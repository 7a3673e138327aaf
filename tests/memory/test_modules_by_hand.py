"""Bytes at each node and by module, of a step of two layers that is counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import TensorRole
from driple.memory.timeline import (
    KINDS,
    ModuleBytes,
    bytes_at_nodes,
    modules_at,
    rounded,
    step_timeline,
)
from tests.memory.two_layers import lifetimes_of, two_layers

KEPT = 40 + 8 + 120 + 64 + 320  # parameters, batch and states


def at(graph: OpGraph, point: int, rounding: int = 1) -> dict[tuple[str, str], int]:
    """Bytes by module and kind, each of them once."""
    rows = modules_at(graph, point, rounding=rounding)
    assert list(rows) == sorted(rows, key=lambda row: (-row.nbytes, row.module, row.kind))
    by_module = {(row.module, row.kind): row.nbytes for row in rows}
    assert len(by_module) == len(rows)
    return by_module


def test_bytes_at_each_node() -> None:
    """At a node both what it reads and what it makes are there; the update has its own."""
    timeline = step_timeline(two_layers(), rounding=1)
    by_hand = [KEPT + 700, KEPT + 1000, KEPT + 1120, KEPT + 860, KEPT + 160 + 50]
    assert timeline.total_bytes.tolist() == by_hand
    assert (timeline.peak_at, timeline.peak_bytes) == (2, KEPT + 1120)
    assert not timeline.is_peak_in_update
    assert timeline.at_peak() == {
        "parameters": 168, "gradients": 120, "optimizer": 320, "activations": 1000,
        "temporary": 0, "input": 64,
    }  # fmt: skip
    assert timeline.kinds == KINDS
    assert timeline.modules == modules_at(two_layers(), 2, rounding=1)
    large = two_layers()
    large = replace(large, update=replace(large.update, temporary_bytes=5000))
    late = step_timeline(large, rounding=1)
    assert late.is_peak_in_update and late.peak_at == 4


def test_each_tensor_is_rounded_up() -> None:
    assert rounded(np.array([0, 1, 511, 512, 513]), 512).tolist() == [0, 512, 512, 512, 1024]
    assert step_timeline(two_layers()).total_bytes[0] == 5 * 512 + 1024
    assert step_timeline(two_layers(), rounding=256).total_bytes[0] == 4 * 256 + 512 + 768


def test_a_graph_without_lifetimes_has_no_timeline() -> None:
    with pytest.raises(GraphError, match="how long its tensors live"):
        step_timeline(replace(two_layers(), lifetimes=lifetimes_of([])))


def test_a_tensor_that_is_freed_before_it_is_made_lives_at_its_node() -> None:
    """And one that outlives the step lives in the update, whatever number says so."""
    by_node = bytes_at_nodes(
        np.array([5, 7, 11]), np.array([1, -3, 0]), np.array([-1, 9, 0]), np.array([0, 1, 0]),
        (2, 2),
    )  # fmt: skip
    assert by_node.tolist() == [[11, 7], [5, 7], [0, 7]]


def test_modules_at_the_peak() -> None:
    """Parameters and states by name, in proportion; tensors by the op that made them."""
    assert at(two_layers(), 2) == {
        ("a", "activations"): 700, ("b", "activations"): 300,
        ("a", "parameters"): 48, ("b", "parameters"): 120,
        ("a", "optimizer"): 80, ("b", "optimizer"): 240,
        ("b", "gradients"): 120, ("", "input"): 64,
    }  # fmt: skip
    first = modules_at(two_layers(), 2, rounding=1)[0]
    assert first == ModuleBytes(module="a", kind="activations", nbytes=700)


@pytest.mark.parametrize(
    ("point", "gradients", "activations", "temporary"),
    [
        (0, {}, {"a": 700}, 0),
        (1, {}, {"a": 700, "b": 300}, 0),
        (3, {"a": 40, "b": 120}, {"a": 700}, 0),
        (4, {"a": 40, "b": 120}, {}, 50),
    ],
)
def test_gradients_are_there_once_they_are_complete(
    point: int, gradients: dict[str, int], activations: dict[str, int], temporary: int
) -> None:
    """The frozen parameter has none; what the update makes is of the model itself."""
    by_module = at(two_layers(), point)
    kinds = {
        kind: {module: n for (module, own), n in by_module.items() if own == kind} for kind in KINDS
    }
    assert kinds["gradients"] == gradients and kinds["activations"] == activations
    assert kinds["temporary"] == ({"": temporary} if temporary else {})
    assert sum(by_module.values()) == step_timeline(two_layers(), rounding=1).total_bytes[point]


def test_gradients_of_an_earlier_pass_are_there_from_the_start() -> None:
    graph = two_layers()
    made_by = np.where(graph.lifetimes.roles == TensorRole.GRADIENT, -1, graph.lifetimes.made_by)
    older = replace(graph, lifetimes=replace(graph.lifetimes, made_by=made_by.astype(np.int32)))
    assert at(older, 0)["a", "gradients"] == 40 and at(older, 0)["b", "gradients"] == 120


def test_without_names_all_is_of_the_ops_or_of_the_model() -> None:
    """Nor do tensors of ops outside of all modules have one."""
    graph = two_layers()
    table = graph.parameters
    empty = replace(
        table, names=(), elements=table.elements[:0], nbytes=table.nbytes[:0],
        is_trained=table.is_trained[:0], readers=table.readers[:0], gradients=table.gradients[:0],
    )  # fmt: skip
    assert at(replace(graph, parameters=empty), 3) == {
        ("a", "activations"): 700, ("", "parameters"): 168, ("", "optimizer"): 320,
        ("b", "gradients"): 120, ("a", "gradients"): 40, ("", "input"): 64,
    }  # fmt: skip
    outside = replace(graph, module_of=np.array([-1, 1, 1, 0], dtype=np.int32))
    assert at(outside, 1)["", "activations"] == 700
    unknown = replace(graph, modules=(), module_of=np.zeros(0, dtype=np.int32))
    assert at(unknown, 1)["", "activations"] == 1000


def test_modules_are_rounded_as_the_allocator_does() -> None:
    by_module = at(two_layers(), 2, rounding=512)
    assert by_module["a", "activations"] == 1024 and by_module["b", "activations"] == 512
    assert by_module["", "input"] == 512
    assert modules_at(two_layers(), 2) == modules_at(two_layers(), 2, rounding=512)


def test_without_states_no_module_has_any() -> None:
    graph = two_layers()
    lives = graph.lifetimes
    kept = lives.roles != TensorRole.OPTIMIZER_STATE
    plain = replace(
        graph,
        lifetimes=replace(
            lives, nbytes=lives.nbytes[kept], made_by=lives.made_by[kept],
            freed_after=lives.freed_after[kept], roles=lives.roles[kept],
        ),
        update=replace(graph.update, state_bytes=0, temporary_bytes=0),
    )  # fmt: skip
    assert not any(kind in {"optimizer", "temporary"} for _, kind in at(plain, 4))
