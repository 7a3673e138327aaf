"""A graph goes to another process and back as arrays and JSON, with every field."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph import OpGraph, read_graph
from driple.graph.step_facts import OptimizerUpdate, ParameterTable
from driple.graph.stored_graph import graph_to_bytes, read_stored_graph
from tests.cli.test_main import EXAMPLE


def assert_equal(graph: Any, other: Any) -> None:
    for field in fields(graph):
        left, right = getattr(graph, field.name), getattr(other, field.name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype
            assert left.shape == right.shape, field.name
            assert (left == right).all(), field.name
        elif is_dataclass(left):
            assert_equal(left, right)
        else:
            assert left == right, field.name


def test_every_field_comes_back(tmp_path: Path) -> None:
    graph = replace(
        read_graph(EXAMPLE),
        update=OptimizerUpdate(optimizer="adamw", state_bytes=8, moved_bytes=9, num_kernels=3),
        parameters=ParameterTable(names=("a.b",), is_trained=np.array([True])),
        modules=("layer1",),
    )
    file = tmp_path / "graph.npz"
    file.write_bytes(graph_to_bytes(graph))
    read_back = read_stored_graph(file)
    assert isinstance(read_back, OpGraph)
    assert_equal(graph, read_back)


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"", lambda data: b"x"])
def test_a_damaged_file_is_refused(tmp_path: Path, damage: Any) -> None:
    file = tmp_path / "graph.npz"
    file.write_bytes(damage(graph_to_bytes(read_graph(EXAMPLE))))
    with pytest.raises(GraphError, match="stored graph"):
        read_stored_graph(file)
