"""The tree of modules: each holds what is within it, and the whole model holds all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driple.api.module_tree import ModuleNode, module_tree
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import ParameterTable
from tests.dataset.examples import chain_graph

PATHS = st.lists(st.sampled_from("abc"), max_size=4).map(".".join)


def graph_of(paths: Sequence[str]) -> OpGraph:
    """An op in each of some modules; an empty path for one of the model itself."""
    modules = [*dict.fromkeys(path for path in paths if path)]
    at = [modules.index(path) if path else -1 for path in paths]
    return replace(
        chain_graph(len(paths)), modules=tuple(modules), module_of=np.array(at, dtype=np.int32),
        parameters=ParameterTable(),
    )  # fmt: skip


def tree_of(graph: OpGraph, seconds: Sequence[float] | None = None) -> ModuleNode:
    count = graph.num_nodes
    tree = module_tree(
        graph,
        np.arange(1.0, count + 1),
        np.arange(10.0, count + 10),
        None if seconds is None else np.array(seconds, dtype=np.float64),
    )
    assert tree is not None
    return tree


def walked(node: ModuleNode) -> Iterator[ModuleNode]:
    yield node
    for child in node.children:
        yield from walked(child)


@given(st.lists(PATHS, min_size=1, max_size=10).filter(any))
def test_every_op_counts_once_in_each_module_around_it(paths: list[str]) -> None:
    tree = tree_of(graph_of(paths), seconds=range(len(paths)))
    assert tree.path == ""
    assert tree.ops == len(paths)
    assert tree.flops == sum(range(1, len(paths) + 1))
    for node in walked(tree):
        inside = [
            i for i, path in enumerate(paths)
            if not node.path or path == node.path or path.startswith(f"{node.path}.")
        ]  # fmt: skip
        assert node.ops == len(inside)
        assert node.flops == sum(i + 1 for i in inside)
        assert node.moved_bytes == sum(i + 10 for i in inside)
        assert node.time_s == sum(inside)
        times = [child.time_s for child in node.children]
        assert times == sorted(times, reverse=True)  # type: ignore[type-var]
        # No chain: a module with one child has ops of its own.
        assert not node.path or len(node.children) != 1 or node.children[0].ops < node.ops
        assert node.path.endswith(node.name)


def test_a_chain_of_single_children_is_one_module() -> None:
    tree = tree_of(graph_of(["a.b.c", "a.b.d", "e"]))
    assert [(node.name, node.path, node.ops) for node in tree.children] == [
        ("a.b", "a.b", 2), ("e", "e", 1)]  # fmt: skip
    assert [node.name for node in tree.children[0].children] == ["d", "c"]  # by FLOPs
    assert all(node.time_s is None for node in walked(tree))
    own = tree_of(graph_of(["a", "a.b", "a.b.c"]))
    assert [node.path for node in walked(own)] == ["", "a", "a.b", "a.b.c"]


def test_without_modules_or_scopes_there_is_no_tree() -> None:
    graph = replace(graph_of(["", ""]), names=("x", "y"))
    assert module_tree(graph, np.ones(2), np.ones(2), None) is None


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tower/conv1/Conv2D", "tower/conv1"),
        ("gradients/tower/conv1/Conv2D_grad/Conv2DBackpropInput", "tower/conv1"),
        ("train/gradients_2/tower/conv1/Relu_grad/ReluGrad", "tower/conv1"),
        ("gradient_tape/tower/conv1/Conv2D/Conv2DBackpropFilter", "tower/conv1/Conv2D"),
        ("my_gradients_of/a/Add", "my_gradients_of/a"),
        ("gradients/gradients_1/a/Add_grad/Mul", "a"),
    ],
)
def test_scopes_of_a_backward_pass_are_those_of_the_forward_pass(name: str, path: str) -> None:
    graph = replace(chain_graph(1), names=(name,), modules=(), parameters=ParameterTable())
    paths = [node.path for node in walked(tree_of(graph))]
    assert paths[-1] == path


def test_parameters_belong_to_the_module_of_their_name_or_of_their_first_reader() -> None:
    graph = replace(
        graph_of(["a.b", "c", "c"]),
        parameters=ParameterTable(
            names=("a.b.weight", "tied", "lost.weight"),
            elements=np.array([2, 3, 5]),
            nbytes=np.array([8, 12, 10]),
            is_trained=np.ones(3, dtype=np.bool_),
            readers=np.array([[1, 2], [1, 0], [0, 1]], dtype=np.int32),
            gradients=np.zeros((0, 2), dtype=np.int32),
        ),
    )
    tree = tree_of(graph)
    counts = {node.path: (node.parameters, node.parameter_bytes) for node in walked(tree)}
    assert counts == {"": (10, 30), "a.b": (2, 8), "c": (3, 12), "lost": (5, 10)}


def test_a_variable_of_tensorflow_belongs_to_its_scope() -> None:
    graph = replace(
        chain_graph(1), names=("net/conv/Conv2D",), modules=(),
        parameters=ParameterTable(
            names=("net/conv/kernel",), elements=np.array([7]), nbytes=np.array([28]),
            is_trained=np.ones(1, dtype=np.bool_),
        ),
    )  # fmt: skip
    last = [*walked(tree_of(graph))][-1]
    assert (last.path, last.parameters) == ("net/conv", 7)


def test_json_has_as_many_levels_as_were_asked_for() -> None:
    tree = tree_of(graph_of(["a", "a.b", "a.b.c"]), seconds=[1, 2, 3])
    assert tree.to_dict(0)["children"] == []
    first_level = tree.to_dict(1)
    assert [child["path"] for child in first_level["children"]] == ["a"]
    assert first_level["children"][0]["children"] == []
    two = tree.to_dict(2)["children"][0]["children"]
    assert [child["path"] for child in two] == ["a.b"]
    assert (first_level["ops"], first_level["flops"], first_level["memory_bytes"]) == (3, 6.0, 33.0)
    assert first_level["time_s"] is not None and first_level["time_s"].value == 6.0
    assert tree_of(graph_of(["a"])).to_dict(1)["time_s"] is None


def test_a_path_of_endless_levels_is_cut() -> None:
    tree = tree_of(graph_of([".".join("ab" * 200), "c"]))
    longest = max(node.path.count(".") + 1 for node in walked(tree))
    assert longest == 100
