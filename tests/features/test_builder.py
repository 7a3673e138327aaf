"""The inspector's input: group edges, invariances, shapes and types."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driple.errors import GraphError
from driple.features import InputConfig, build_input
from driple.graph.opgraph import RemoteOps

from .examples import OP_TYPES, layered_edges, op_graph, permuted

TABLE = {op_type: (i + 1) / 15 for i, op_type in enumerate(OP_TYPES)}
PAIRS = st.tuples(st.integers(0, 19), st.integers(0, 19))


def test_edges_between_groups_are_undirected_unique_and_without_loops() -> None:
    """Both directions, repeats and loops of five ops that are their own groups."""
    edges = [(1, 0), (0, 1), (1, 1), (4, 2), (0, 1), (3, 4)]
    graph = op_graph(5, edges)
    built = build_input(graph, TABLE, InputConfig(components="all"))
    assert built.num_groups == 5
    # components of 3 nodes first (2, 3, 4), then 0 and 1
    assert built.edges.tolist() == [[0, 2], [1, 2], [3, 4]]


def test_shapes_types_and_counts() -> None:
    """A large graph: 100 groups, the sums of all nodes, single precision."""
    graph = op_graph(1500, layered_edges(1500, 0))
    built = build_input(graph, TABLE, InputConfig())
    assert built.features.shape == (100, 3)
    assert built.features.dtype == np.float32
    assert built.edges.dtype == np.int32
    assert (built.edges[:, 0] < built.edges[:, 1]).all()
    assert built.context.shape == (0,)
    assert (built.num_nodes, built.num_edges) == (1500, graph.num_edges)
    expected = [sum(TABLE[t] for t in graph.op_types), graph.tensor_bytes.sum(), 1500]
    np.testing.assert_allclose(built.features.sum(axis=0, dtype=np.float64), expected, rtol=1e-6)


def test_log_features_are_the_logarithm_of_the_sums() -> None:
    """`log` is log(1 + x) of what `paper` gives."""
    graph = op_graph(300, layered_edges(300, 1))
    paper = build_input(graph, TABLE, InputConfig(num_groups=20))
    log = build_input(graph, TABLE, InputConfig(num_groups=20, features="log"))
    np.testing.assert_allclose(log.features, np.log1p(paper.features), rtol=1e-5)
    np.testing.assert_array_equal(log.edges, paper.edges)


@pytest.mark.parametrize("features", ["paper", "log"])
@pytest.mark.parametrize("encoding", [-1e39, float("nan"), float("inf")])
@pytest.mark.filterwarnings("error")
def test_numbers_that_the_inspector_cannot_hold_are_refused(encoding: float, features: str) -> None:
    """In a damaged checkpoint's table of ops; nothing overflows with a warning."""
    table = dict.fromkeys(OP_TYPES, encoding)
    with pytest.raises(GraphError, match="table of ops"):
        build_input(op_graph(6, [(0, 1)]), table, InputConfig(features=features))


def test_context_is_joined_only_when_asked_for() -> None:
    """The context has nine numbers, and remote ops count as unknown only then."""
    remote = (RemoteOps.of_op_type("ApplyAdam", num_nodes=2, tensor_bytes=8),)
    graph = op_graph(4, [(0, 1)], remote=remote)
    assert build_input(graph, TABLE, InputConfig()).unknown_op_types == {}
    built = build_input(graph, TABLE, InputConfig(context="sizes"))
    assert built.context.shape == (9,)
    assert built.unknown_op_types == {"ApplyAdam": 2}


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(20)), st.lists(PAIRS, max_size=40))
def test_node_order_does_not_matter_where_each_node_is_a_group(
    order: list[int], edges: list[tuple[int, int]]
) -> None:
    """Up to the numbering of the groups, features and edges are those of the other node order."""
    graph = op_graph(20, edges)
    config = InputConfig(components="all", num_groups=20, context="sizes")
    plain, two = (build_input(g, TABLE, config) for g in (graph, permuted(graph, order)))
    np.testing.assert_allclose(plain.context, two.context)
    # tensor sizes are unique, so they name the group
    key_one, key_two = plain.features[:, 1], two.features[:, 1]
    np.testing.assert_array_equal(
        plain.features[np.argsort(key_one)], two.features[np.argsort(key_two)]
    )
    pairs = [
        {frozenset(key[list(pair)].tolist()) for pair in item.edges}
        for item, key in ((plain, key_one), (two, key_two))
    ]
    assert pairs[0] == pairs[1]


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(20)), st.lists(PAIRS, max_size=40), st.integers(1, 19))
def test_node_order_keeps_totals_and_the_number_of_groups(
    order: list[int], edges: list[tuple[int, int]], num_groups: int
) -> None:
    """With real grouping the groups differ, their number and the sums over all do not."""
    graph = op_graph(20, edges)
    config = InputConfig(components="all", num_groups=num_groups)
    plain, two = (build_input(g, TABLE, config) for g in (graph, permuted(graph, order)))
    assert plain.num_groups == two.num_groups
    np.testing.assert_allclose(plain.features.sum(0), two.features.sum(0), rtol=1e-5)


def test_repeating_changes_nothing() -> None:
    """Built twice: the same bytes."""
    graph = op_graph(400, layered_edges(400, 2))
    first, two = (build_input(graph, TABLE, InputConfig()) for _ in range(2))
    assert first.features.tobytes() == two.features.tobytes()
    assert first.edges.tobytes() == two.edges.tobytes()


def test_the_seed_chooses_the_groups() -> None:
    """Another seed gives other groups of the same totals."""
    graph = op_graph(400, layered_edges(400, 2))
    first, two = (build_input(graph, TABLE, InputConfig(seed=s, num_groups=20)) for s in (0, 1))
    assert first.features.tobytes() != two.features.tobytes()


def test_building_needs_neither_networkx_nor_pandas() -> None:
    """Importing the builder loads none of the training side's packages."""
    code = (
        "import sys, driple.features\n"
        "bad = {'torch', 'networkx', 'pandas', 'sklearn', 'category_encoders', 'tensorflow'}\n"
        "sys.exit(', '.join(bad & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("num_nodes", [1, 2])
def test_tiny_graphs(num_nodes: int) -> None:
    """One and two nodes without edges still make an input."""
    built = build_input(op_graph(num_nodes, []), TABLE, InputConfig(components="all"))
    assert built.features.shape == (num_nodes, 3)
    assert built.edges.shape == (0, 2)
