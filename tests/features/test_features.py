"""Features of groups, the op-type table, and the vector of the whole graph, against hand counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from driple.errors import DatasetError
from driple.features.features import (
    CONTEXT_NAMES,
    context_vector,
    fit_op_type_table,
    group_features,
    unknown_op_types,
)
from driple.graph.opgraph import RemoteOps, Traffic

from .examples import op_graph

REMOTE = (RemoteOps.of_op_type("ApplyAdam", num_nodes=4, tensor_bytes=96),)


def test_table_holds_shares_of_all_nodes_local_and_remote() -> None:
    """Two graphs, ten nodes in all: each type's share is its count over ten."""
    first = op_graph(4, [], op_types=["Add", "Add", "Relu", "Conv2D"], remote=REMOTE)
    second = op_graph(2, [], op_types=["Add", "Relu"])
    table = fit_op_type_table([first, second])
    assert table == pytest.approx({"Add": 0.3, "ApplyAdam": 0.4, "Conv2D": 0.1, "Relu": 0.2})


def test_table_of_nothing_is_refused() -> None:
    """No graphs, or graphs without nodes, make no table."""
    with pytest.raises(DatasetError, match="at least one graph"):
        fit_op_type_table([])
    with pytest.raises(DatasetError, match="at least one graph"):
        fit_op_type_table([op_graph(0, [])])


def test_group_features_are_sums_over_the_group() -> None:
    """Two groups and a node left out: encodings, bytes and nodes are added by hand."""
    graph = op_graph(
        4, [], op_types=["Add", "Relu", "Add", "Other"], tensor_bytes=[10, 200, 3000, 40_000]
    )
    features = group_features(
        graph, np.array([1, 0, 1, -1], dtype=np.int32), {"Add": 0.25, "Relu": 0.5}
    )
    np.testing.assert_allclose(features, [[0.5, 200, 1], [0.5, 3010, 2]])


def test_sizes_beyond_32_bits_are_kept() -> None:
    """Tensor sizes of 10^12 bytes add up without overflow."""
    graph = op_graph(2, [], tensor_bytes=[10**12, 10**12])
    features = group_features(graph, np.zeros(2, dtype=np.int32), {})
    assert features[0, 1] == 2e12


def test_context_counts_the_whole_graph() -> None:
    """Each number of the context by hand."""
    graph = op_graph(
        3, [(0, 1), (1, 2)], op_types=["Add", "Add", "X"], tensor_bytes=[1, 2, 3], remote=REMOTE
    )
    crossing = Traffic(received_bytes=np.array([4, 5]), sent_bytes=np.array([7]))
    graph = replace(graph, traffic=crossing)
    values = np.expm1(context_vector(graph, {"Add": 0.5, "ApplyAdam": 0.25}))
    expected = dict(zip(CONTEXT_NAMES, [3, 2, 6, 4, 96, 1.0, 1.0, 7, 9], strict=True))
    assert dict(zip(CONTEXT_NAMES, values, strict=True)) == pytest.approx(expected)


def test_unknown_op_types_are_counted() -> None:
    """Types that the table lacks are named with their counts; remote ones where they matter."""
    graph = op_graph(3, [], op_types=["Add", "New", "New"], remote=REMOTE)
    assert unknown_op_types(graph, {"Add": 1.0}, remote=False) == {"New": 2}
    assert unknown_op_types(graph, {"Add": 1.0}, remote=True) == {"ApplyAdam": 4, "New": 2}
