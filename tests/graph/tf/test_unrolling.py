"""Inlining costs what it makes: bounded before it is made, and linear in it."""

from __future__ import annotations

import pytest

from driple.errors import GraphError
from driple.graph.tf import unrolling
from driple.graph.tf.functions import inline_functions
from driple.graph.tf.names import check_names
from driple.graph.tf.raw import RawFunction, RawGraph, RawNode
from tests.work import num_calls


def body(name: str, num_nodes: int, node_name: str = "n") -> RawFunction:
    """A function of nodes without inputs."""
    nodes = [RawNode(f"{node_name}{i}", "NoOp") for i in range(num_nodes)]
    return RawFunction(name, nodes=nodes)


def refused(graph: RawGraph, match: str) -> None:
    """With little work, since little is copied before."""

    def inlined() -> None:
        with pytest.raises(GraphError, match=match):
            inline_functions(graph)

    assert num_calls(inlined) < 15_000_000  # a second or two


def test_branches_are_counted_before_they_are_copied() -> None:
    """A Case of 20,000 branches of 1,000 nodes each."""
    case = RawNode("case", "Case", inputs=["i"], functions={"branches": ("f",) * 20_000})
    refused(RawGraph(nodes=[case], functions={"f": body("f", 1000)}), "unroll to over .* nodes")


def test_missing_branches_count_as_calls() -> None:
    """A node that names many functions is cheap once, not a hundred times."""
    inner = RawNode("case", "Case", functions={"branches": ("gone",) * 5000})
    calls = [RawNode(f"c{i}", "f") for i in range(100)]
    functions = {"f": RawFunction("f", nodes=[inner])}
    refused(RawGraph(nodes=calls, functions=functions), "unroll to over .* calls")


def test_copied_inputs_are_bounded() -> None:
    """A function of 100,000 arguments, called a hundred times from calls of as many inputs."""
    wide = RawFunction("wide", arguments=[f"a{i}" for i in range(100_000)])
    inputs = ["x"] * 100_000
    calls = [RawNode(f"c{i}", "wide", inputs=inputs) for i in range(100)]
    refused(RawGraph(nodes=calls, functions={"wide": wide}), "unroll to over .* inputs")


def test_names_of_copies_are_bounded() -> None:
    """A call with a name of a megabyte and a body of a thousand nodes."""
    call = RawNode("x" * 2**20, "f")
    refused(RawGraph(nodes=[call], functions={"f": body("f", 1000)}), "bytes of names")


def test_output_shapes_count_as_copied() -> None:
    """One node of ten thousand outputs, copied a thousand times."""
    node = RawNode("n", "Split", shapes=((1,),) * 10_000)
    calls = [RawNode(f"c{i}", "f") for i in range(1000)]
    refused(
        RawGraph(nodes=calls, functions={"f": RawFunction("f", nodes=[node])}),
        "unroll to over .* attribute values",
    )


def chain(length: int) -> RawGraph:
    """Calls that return their argument, each reading the one before; a reader of each."""
    same = RawFunction("same", ["x"], ["y"], [], {"y": "x"})
    calls = [RawNode("c0", "same", inputs=["a"])]
    calls += [RawNode(f"c{i}", "same", inputs=[f"c{i - 1}"]) for i in range(1, length)]
    readers = [RawNode(f"r{i}", "Relu", inputs=[f"c{i}", f"^c{i}"]) for i in range(length)]
    nodes = [RawNode("a", "Const"), *readers, *calls]
    return RawGraph(nodes=nodes, functions={"same": same})


def test_chains_of_calls_are_followed_once() -> None:
    """Eight times the chain is eight times the work; each reader reads what the first was given."""

    def work(length: int) -> int:
        graph, nodes = chain(length), list[RawNode]()
        calls = num_calls(lambda: nodes.extend(inline_functions(graph).nodes))
        assert all(node.inputs == ["a", "^a"] for node in nodes if node.op == "Relu")
        return calls

    assert work(16_000) < 10 * work(2_000)  # quadratic: 64 times


def test_a_prefix_of_another_name_is_another_node() -> None:
    """`c` and `c/n0` both call; names of their bodies stay apart."""
    functions = {"f": body("f", 2)}
    graph = RawGraph(nodes=[RawNode("c", "f"), RawNode("c/n0", "f")], functions=functions)
    names = [node.name for node in inline_functions(graph).nodes]
    assert sorted(names) == ["c/n0/n0", "c/n0/n1", "c_1/n0", "c_1/n1"]


def test_what_is_under_the_bounds_is_unrolled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound itself is allowed, one more is not."""
    functions = {"f": body("f", 10)}
    calls = [RawNode(f"c{i}", "f") for i in range(3)]
    monkeypatch.setattr(unrolling, "MAX_COPIED_NODES", 30)
    assert len(inline_functions(RawGraph(nodes=calls, functions=functions)).nodes) == 30
    calls.append(RawNode("c3", "f"))
    with pytest.raises(GraphError, match="over 30 nodes, at node 'c3'"):
        inline_functions(RawGraph(nodes=calls, functions=functions))


@pytest.mark.parametrize(
    "graph",
    [
        RawGraph(nodes=[RawNode("a\x1b[2J", "NoOp")]),
        RawGraph(nodes=[RawNode("a", "No\nOp")]),
        RawGraph(nodes=[RawNode("a", "NoOp", device="/gpu:0\x9b")]),
        RawGraph(nodes=[RawNode("a", "NoOp", functions={"f": ("f\x07",)})]),
        RawGraph(nodes=[RawNode("a", "NoOp")], functions={"f": body("f", 1, "\x7f")}),
    ],
)
def test_control_characters_in_names_are_refused(graph: RawGraph) -> None:
    """In nodes, ops, devices and functions; other scripts are fine."""
    with pytest.raises(GraphError, match="has control characters"):
        check_names(graph)
    check_names(RawGraph(nodes=[RawNode("größe/変数 1", "NoOp")]))
