"""Groupings that are kept: found once, and the same to the bit as those found anew."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from driple.errors import ConfigError
from driple.features import Groupings, InputConfig, build_input
from driple.features import grouping_cache as groupings
from driple.graph.opgraph import OpGraph

from .examples import OP_TYPES, layered_edges, op_graph

TABLES = [{op_type: (i + shift) / 15 for i, op_type in enumerate(OP_TYPES)} for shift in (1, 4)]
CONFIGS = [
    InputConfig(num_groups=12, components=components, policy=policy, seed=seed, context=context)
    for components in ("largest", "all")
    for policy in ("uniform", "proportional")
    for seed in (0, 1)
    for context in ("none", "sizes")
]


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """M of every grouping that is really computed."""
    wanted: list[int] = []
    group_nodes = groupings.group_nodes

    def watched(graph: OpGraph, config: InputConfig, num_groups: int) -> object:
        wanted.append(num_groups)
        return group_nodes(graph, config, num_groups)

    monkeypatch.setattr(groupings, "group_nodes", watched)
    return wanted


def test_inputs_are_the_same_to_the_bit() -> None:
    """Whatever was asked of the store before: other tables, seeds, components, policies and M."""
    kept = Groupings()
    graphs = [op_graph(n, layered_edges(n, 1)) for n in (60, 90)]
    for _ in range(2):
        for graph in graphs:
            for config in CONFIGS:
                for table in TABLES:
                    for num_groups in (None, 5):
                        options = {"num_groups": num_groups}
                        fresh = build_input(graph, table, config, **options, groupings=kept)
                        two = build_input(graph, table, config, **options)
                        for name in ("features", "edges", "context"):
                            a, b = getattr(fresh, name), getattr(two, name)
                            assert (a.dtype, a.shape) == (b.dtype, b.shape)
                            assert a.tobytes() == b.tobytes()


def test_a_grouping_is_found_once(sizes: list[int]) -> None:
    """Table, scale of the features and context do not decide it; graph, seed, components, M do."""
    kept, config = Groupings(), InputConfig(num_groups=12)
    graph = op_graph(60, layered_edges(60, 0))
    for table in TABLES:
        for same in (config, replace(config, features="log"), replace(config, context="sizes")):
            build_input(graph, table, same, groupings=kept)
            build_input(graph, table, same, num_groups=12, groupings=kept)
    assert sizes == [12]
    for other in (replace(config, seed=1), replace(config, components="all")):
        kept.of(graph, other)
    kept.of(graph, config, 3)
    kept.of(op_graph(60, layered_edges(60, 0)), config)
    assert sizes == [12, 12, 12, 3, 12]


def test_a_graph_that_is_gone_is_not_taken_for_a_new_one() -> None:
    """Objects that follow each other in the same place of memory get groups of their own."""
    kept, config = Groupings(), InputConfig(num_groups=4)
    for num_nodes in range(10, 40):
        groups = kept.of(op_graph(num_nodes, layered_edges(num_nodes, 0)), config).groups
        assert len(groups) == num_nodes


def test_kept_groupings_cannot_be_changed() -> None:
    """Inputs of several folds share these arrays."""
    grouping = Groupings().of(op_graph(20, layered_edges(20, 0)), InputConfig(num_groups=4))
    for array in (grouping.groups, grouping.edges):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_refused_number_of_groups_is_refused_again(sizes: list[int]) -> None:
    """An error is not kept."""
    kept, graph = Groupings(), op_graph(20, layered_edges(20, 0))
    for _ in range(2):
        with pytest.raises(ConfigError, match="give 1 or more"):
            kept.of(graph, InputConfig(), 0)
    assert sizes == [0, 0]


def test_a_copy_for_another_process_is_empty() -> None:
    """There another graph may have the id of one that is known here."""
    known = Groupings()
    graph = op_graph(20, layered_edges(20, seed=0))
    grouping = known.of(graph, InputConfig())
    copy = pickle.loads(pickle.dumps(known))  # noqa: S301  # written in this line
    assert copy._known == copy._graphs == {}
    assert np.array_equal(copy.of(graph, InputConfig()).groups, grouping.groups)
