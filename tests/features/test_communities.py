"""Fluid communities against networkx, and the laws of grouping."""

from __future__ import annotations

import random
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from networkx.algorithms.community import asyn_fluidc

from driple.errors import ConfigError, GraphError
from driple.features.communities import (
    _apportion,
    _shuffle,
    fluid_communities,
    group_nodes,
    proportional_num_groups,
)
from driple.features.config import InputConfig

from .examples import layered_edges, op_graph


def networkx_groups(num_nodes: int, edges: np.ndarray, num_groups: int, seed: int) -> set:
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(map(tuple, edges.tolist()))
    return {frozenset(nodes) for nodes in asyn_fluidc(graph, num_groups, seed=seed)}


def own_groups(num_nodes: int, edges: np.ndarray, num_groups: int, seed: int) -> set:
    groups = fluid_communities(num_nodes, edges, num_groups, seed)
    assert groups.max() == num_groups - 1
    return {frozenset(np.flatnonzero(groups == g).tolist()) for g in range(num_groups)}


@st.composite
def connected_graphs(draw: st.DrawFn) -> tuple[int, np.ndarray]:
    """Connected graphs with loops, repeated edges and both directions, edges in any order."""
    num_nodes = draw(st.integers(1, 40))
    tree = [(draw(st.integers(0, i - 1)), i) for i in range(1, num_nodes)]
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.permutations(tree + draw(st.lists(st.tuples(node, node), max_size=60))))
    return num_nodes, np.array(edges, dtype=np.int32).reshape(-1, 2)


@settings(max_examples=100, deadline=None)
@given(connected_graphs(), st.integers(1, 40), st.integers(0, 2**31))
def test_communities_are_those_of_networkx(
    graph: tuple[int, np.ndarray], num_groups: int, seed: int
) -> None:
    """Same graph, same seed: the same communities as `asyn_fluidc`."""
    num_nodes, edges = graph
    assume(num_groups <= num_nodes)
    own = own_groups(num_nodes, edges, num_groups, seed)
    assert own == networkx_groups(num_nodes, edges, num_groups, seed)


@pytest.mark.parametrize("num_nodes", [300, 1000, 4000])
@pytest.mark.parametrize("seed", [0, 1, 42])
def test_communities_of_large_graphs_are_those_of_networkx(num_nodes: int, seed: int) -> None:
    """Graphs of the size of training steps, 100 groups: the same communities as `asyn_fluidc`."""
    edges = np.array(layered_edges(num_nodes, seed))
    own = own_groups(num_nodes, edges, 100, seed)
    assert own == networkx_groups(num_nodes, edges, 100, seed)


def test_nodes_out_of_reach_are_left_out_as_in_networkx() -> None:
    """A chain too long for 100 rounds keeps unreached nodes; `group_nodes` finds the nearest."""
    edges = np.stack([np.arange(2999), np.arange(1, 3000)], axis=1)
    groups = fluid_communities(3000, edges, 2, 0)
    assert (groups == -1).any()
    assert own_groups(3000, edges, 2, 0) == networkx_groups(3000, edges, 2, 0)
    graph = op_graph(3000, [(int(a), int(b)) for a, b in edges])
    filled = group_nodes(graph, InputConfig(num_groups=2))
    assert set(filled.tolist()) == {0, 1}
    assert (filled[groups >= 0] == groups[groups >= 0]).all()
    assert (np.diff(filled) != 0).sum() == 1


@given(st.integers(0, 300), st.integers(0, 2**31))
def test_shuffle_is_the_one_of_python(length: int, seed: int) -> None:
    """The written-out shuffle gives the same order and leaves the generator in the same state."""
    own, reference = random.Random(seed), random.Random(seed)
    items, expected = list(range(length)), list(range(length))
    _shuffle(items, own)
    reference.shuffle(expected)
    assert items == expected
    assert own.getstate() == reference.getstate()


@pytest.mark.parametrize("num_groups", [0, -1, 6])
def test_impossible_numbers_of_groups_are_refused(num_groups: int) -> None:
    """0, negative, and more groups than nodes are errors that name the range."""
    with pytest.raises(ConfigError, match="1 to 5"):
        fluid_communities(5, np.zeros((0, 2), dtype=np.int32), num_groups, 0)


def test_fewer_nodes_than_groups_are_their_own_groups() -> None:
    """Three nodes and M = 100: three groups."""
    graph = op_graph(3, [(0, 1), (1, 2)])
    assert group_nodes(graph, InputConfig()).tolist() == [0, 1, 2]


def test_one_node_and_no_edges() -> None:
    """One node is one group; without edges each node is a component, the largest is the first."""
    assert group_nodes(op_graph(1, []), InputConfig()).tolist() == [0]
    assert group_nodes(op_graph(1, [(0, 0)]), InputConfig(num_groups=1)).tolist() == [0]
    assert group_nodes(op_graph(3, []), InputConfig()).tolist() == [0, -1, -1]
    every = InputConfig(components="all", num_groups=3)
    assert group_nodes(op_graph(3, []), every).tolist() == [0, 1, 2]


def test_an_empty_graph_and_no_groups_are_refused() -> None:
    """Nothing to group, or nothing to group into, is an error."""
    with pytest.raises(GraphError, match="no nodes"):
        group_nodes(op_graph(0, []), InputConfig())
    with pytest.raises(ConfigError, match="give 1 or more"):
        group_nodes(op_graph(2, [(0, 1)]), InputConfig(), 0)


def test_largest_component_wins_and_ties_go_to_the_lowest_node() -> None:
    """The larger component is kept whatever its place; of two equal ones the first."""
    later = op_graph(5, [(0, 1), (2, 3), (3, 4)])
    assert group_nodes(later, InputConfig(num_groups=1)).tolist() == [-1, -1, 0, 0, 0]
    tied = op_graph(4, [(3, 1), (0, 2)])
    assert group_nodes(tied, InputConfig(num_groups=1)).tolist() == [0, -1, 0, -1]


def test_all_components_share_the_groups_by_size() -> None:
    """60, 30 and 10 nodes share ten groups as 6, 3 and 1, and no group spans two components."""
    chains = [(0, 60), (60, 90), (90, 100)]
    edges = [(i, i + 1) for start, end in chains for i in range(start, end - 1)]
    groups = group_nodes(op_graph(100, edges), InputConfig(components="all", num_groups=10))
    parts = [set(groups[start:end].tolist()) for start, end in chains]
    assert [len(part) for part in parts] == [6, 3, 1]
    assert set.union(*parts) == set(range(10))


def test_small_components_share_groups_when_there_are_too_many() -> None:
    """One of 80 nodes, 20 single ones, ten groups: 8 for the large one, 2 shared by the others."""
    edges = [(i, i + 1) for i in range(79)]
    groups = group_nodes(op_graph(100, edges), InputConfig(components="all", num_groups=10))
    assert set(groups[:80].tolist()) == set(range(8))
    assert sorted(np.bincount(groups[80:])[8:].tolist()) == [10, 10]


@given(st.lists(st.integers(1, 500), min_size=1, max_size=30), st.integers(0, 100))
def test_shares_are_used_up_and_fit(sizes: list[int], surplus: int) -> None:
    """Every component gets 1 to its size, all groups are given out as far as the sizes allow."""
    num_groups = len(sizes) + surplus
    shares = _apportion(sizes, num_groups)
    assert all(1 <= share <= size for share, size in zip(shares, sizes, strict=True))
    assert sum(shares) == min(num_groups, sum(sizes))
    ranked = sorted(zip(sizes, shares, strict=True))
    assert all(a[1] <= b[1] for a, b in pairwise(ranked) if a[0] < b[0])


@settings(deadline=None)
@given(
    st.integers(1, 60).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=80),
        )
    ),
    st.integers(1, 70),
    st.sampled_from(["largest", "all"]),
)
def test_grouping_any_graph(
    graph: tuple[int, list[tuple[int, int]]], num_groups: int, components: str
) -> None:
    """Groups are numbered without gaps, at most M, cover all with `all`, and are repeatable."""
    num_nodes, edges = graph
    config = InputConfig(components=components, num_groups=num_groups)
    groups = group_nodes(op_graph(num_nodes, edges), config)
    used = set(groups.tolist()) - {-1}
    assert used == set(range(len(used)))
    assert len(used) <= num_groups
    if components == "all":
        assert (groups >= 0).all()
        assert len(used) == min(num_groups, num_nodes)
    assert (groups == group_nodes(op_graph(num_nodes, edges), config)).all()


def test_proportional_groups_follow_the_mean_of_the_batch() -> None:
    """Sorted and cut in batches: 10 and 190 nodes have mean 100, M = 2; a batch of 10^4 has 4."""
    sizes = [10_000, 10, 10_000, 190]
    assert proportional_num_groups(sizes, batch_size=2).tolist() == [4, 2, 4, 2]
    assert proportional_num_groups([1, 2]).tolist() == [1, 1]
    assert proportional_num_groups([]).tolist() == []


def test_proportional_policy_alone_is_a_batch_of_one() -> None:
    """1,000 nodes on their own are grouped into log10(1000) = 3."""
    graph = op_graph(1000, [(i, i + 1) for i in range(999)])
    groups = group_nodes(graph, InputConfig(policy="proportional"))
    assert set(groups.tolist()) == {0, 1, 2}
