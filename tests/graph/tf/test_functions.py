"""Inlining of function calls, on graphs small enough to check by hand."""

import pytest

from driple.errors import GraphError
from driple.graph.tf.functions import inline_functions, node_of
from driple.graph.tf.raw import RawFunction, RawGraph, RawNode


def edges_of(graph: RawGraph) -> set[tuple[str, str]]:
    """(source, destination) names after inlining."""
    nodes = inline_functions(graph).nodes
    return {(node_of(item), node.name) for node in nodes for item in node.inputs}


SQUARE = RawFunction(
    name="square_sum",
    arguments=["x", "y"],
    outputs=["total"],
    nodes=[
        RawNode("sq", "Square", inputs=["x"]),
        RawNode("sum", "AddV2", inputs=["sq:y:0", "y", "^sq"], device="/gpu:1"),
    ],
    returns={"total": "sum:z:0"},
)


def test_a_plain_call_is_replaced_by_its_body() -> None:
    """Who read the call reads what the function returns; control edges are kept."""
    graph = RawGraph(
        nodes=[
            RawNode("a", "Const"),
            RawNode("b", "Const"),
            RawNode(
                "call",
                "StatefulPartitionedCall",
                "/gpu:0",
                ["a", "b:1", "^b"],
                functions={"f": ("square_sum",)},
            ),
            RawNode("out", "Identity", inputs=["call"]),
            RawNode("after", "NoOp", inputs=["^call"]),
        ],
        functions={"square_sum": SQUARE},
    )
    inlined = inline_functions(graph)
    nodes = {node.name: node for node in inlined.nodes}
    assert set(nodes) == {"a", "b", "call/sq", "call/sum", "out", "after"}
    assert nodes["call/sq"].inputs == ["a"]
    assert nodes["call/sum"].inputs == ["call/sq", "b:1", "^call/sq"]
    assert nodes["out"].inputs == ["call/sum"]
    assert nodes["after"].inputs == ["^call/sum"]
    assert (nodes["call/sq"].device, nodes["call/sum"].device) == ("/gpu:0", "/gpu:1")
    assert inlined.num_inlined == 2


def test_calls_inside_functions_are_inlined_too() -> None:
    """A function that returns another call's result; an argument that is returned as it is."""
    outer = RawFunction(
        name="outer",
        arguments=["p"],
        outputs=["r", "same"],
        nodes=[
            RawNode("inner", "PartitionedCall", inputs=["p", "p"], functions={"f": ("square_sum",)})
        ],
        returns={"r": "inner:output:0", "same": "p"},
    )
    graph = RawGraph(
        nodes=[
            RawNode("a", "Const"),
            RawNode("c", "PartitionedCall", inputs=["a"], functions={"f": ("outer",)}),
            RawNode("d", "Relu", inputs=["c"]),
            RawNode("e", "Relu", inputs=["c:1"]),
        ],
        functions={"outer": outer, "square_sum": SQUARE},
    )
    assert edges_of(graph) == {
        ("a", "c/inner/sq"),
        ("a", "c/inner/sum"),
        ("c/inner/sq", "c/inner/sum"),
        ("c/inner/sum", "d"),
        ("a", "e"),
    }


@pytest.mark.parametrize("op", ["While", "StatelessWhile"])
def test_a_loop_has_condition_and_body_once(op: str) -> None:
    """The loop's node stays, behind what condition and body return; there is no cycle."""
    cond = RawFunction(
        "c", ["i"], ["go"], [RawNode("less", "Less", inputs=["i"])], {"go": "less:z:0"}
    )
    body = RawFunction(
        "b", ["i"], ["next"], [RawNode("add", "AddV2", inputs=["i"])], {"next": "add:z:0"}
    )
    graph = RawGraph(
        nodes=[
            RawNode("start", "Const"),
            RawNode("loop", op, inputs=["start"], functions={"cond": ("c",), "body": ("b",)}),
            RawNode("end", "Identity", inputs=["loop"]),
        ],
        functions={"c": cond, "b": body},
    )
    assert edges_of(graph) == {
        ("start", "loop/c.0/less"),
        ("start", "loop/b.1/add"),
        ("loop/c.0/less", "loop"),
        ("loop/b.1/add", "loop"),
        ("loop", "end"),
    }


def test_both_branches_of_an_if_are_there() -> None:
    """The first input decides; the others go to both branches."""
    yes = RawFunction("yes", ["x"], ["y"], [RawNode("exp", "Exp", inputs=["x"])], {"y": "exp:y:0"})
    no = RawFunction("no", ["x"], ["y"], [], {"y": "x"})
    graph = RawGraph(
        nodes=[
            RawNode("p", "Const"),
            RawNode("v", "Const"),
            RawNode(
                "choice",
                "If",
                inputs=["p", "v"],
                functions={"then_branch": ("yes",), "else_branch": ("no",)},
            ),
        ],
        functions={"yes": yes, "no": no},
    )
    assert edges_of(graph) == {
        ("p", "choice"),
        ("v", "choice/yes.0/exp"),
        ("choice/yes.0/exp", "choice"),
        ("v", "choice"),
    }


def test_a_call_whose_op_is_the_function_is_inlined() -> None:
    """As TensorFlow 1 writes calls of a Defun: a node of op `square_sum`."""
    graph = RawGraph(
        nodes=[
            RawNode("a", "Const"),
            RawNode("call", "square_sum", inputs=["a", "a", "^a"]),
            RawNode("out", "Identity", inputs=["call"]),
        ],
        functions={"square_sum": SQUARE},
    )
    inlined = inline_functions(graph)
    assert {node.name for node in inlined.nodes} == {"a", "call/sq", "call/sum", "out"}
    assert ("call/sum", "out") in edges_of(graph)
    assert (inlined.num_inlined, inlined.unresolved) == (2, ())


def test_names_of_a_body_never_clash() -> None:
    """`call/sq` is in the graph, `call_1/sum` too: the body goes under `call_2`."""
    graph = RawGraph(
        nodes=[
            RawNode("call/sq", "Const"),
            RawNode("call_1/sum", "Const"),
            RawNode("call", "square_sum", inputs=["call/sq", "call_1/sum"]),
            RawNode("out", "Identity", inputs=["call", "call/sq"]),
            RawNode("call_2", "square_sum", inputs=["call", "call"]),
        ],
        functions={"square_sum": SQUARE},
    )
    names = [node.name for node in inline_functions(graph).nodes]
    assert names == [
        *("call/sq", "call_1/sum", "call_2/sq", "call_2/sum", "out"),
        *("call_2_1/sq", "call_2_1/sum"),
    ]
    assert edges_of(graph) == {
        ("call/sq", "call_2/sq"),
        ("call_2/sq", "call_2/sum"),
        ("call_1/sum", "call_2/sum"),
        ("call_2/sum", "out"),
        ("call/sq", "out"),
        ("call_2/sum", "call_2_1/sq"),
        ("call_2_1/sq", "call_2_1/sum"),
        ("call_2/sum", "call_2_1/sum"),
    }


def test_the_search_for_a_free_name_is_bounded() -> None:
    """A file made to take every prefix is refused."""
    taken = [RawNode(f"call{number}/sq", "Const") for number in ("", *(f"_{i}" for i in range(99)))]
    call = RawNode("call", "square_sum", inputs=["call/sq", "call/sq"])
    with pytest.raises(GraphError, match="all taken"):
        inline_functions(RawGraph(nodes=[*taken, call], functions={"square_sum": SQUARE}))


def test_missing_functions_leave_the_call_and_are_named() -> None:
    """With and without a library."""
    call = RawNode("call", "PartitionedCall", functions={"f": ("gone",)})
    for functions in ({}, {"square_sum": SQUARE}):
        inlined = inline_functions(RawGraph(nodes=[call], functions=functions))
        assert inlined.unresolved == ("gone",)
        assert [node.name for node in inlined.nodes] == ["call"]


def test_a_function_that_calls_itself_is_refused() -> None:
    """Bounded depth, no recursion."""
    again = RawFunction(
        "again", [], [], [RawNode("x", "PartitionedCall", functions={"f": ("again",)})], {}
    )
    graph = RawGraph(
        nodes=[RawNode("c", "PartitionedCall", functions={"f": ("again",)})],
        functions={"again": again},
    )
    with pytest.raises(GraphError, match="calls itself"):
        inline_functions(graph)


def test_functions_that_multiply_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each calls the next a hundred times: refused long before memory runs out."""
    functions = {
        f"f{i}": RawFunction(
            f"f{i}",
            [],
            [],
            [
                RawNode(f"n{j}", "PartitionedCall", functions={"f": (f"f{i + 1}",)})
                for j in range(100)
            ],
            {},
        )
        for i in range(10)
    }
    monkeypatch.setattr("driple.graph.tf.unrolling.MAX_COPIED_NODES", 50_000)
    graph = RawGraph(
        nodes=[RawNode("c", "PartitionedCall", functions={"f": ("f0",)})], functions=functions
    )
    with pytest.raises(GraphError, match="unroll to over"):
        inline_functions(graph)


@pytest.mark.parametrize(
    ("op", "reference", "expected"),
    [
        ("FusedBatchNormV3", "inner:batch_mean:0", 1),
        ("TensorListPopBack", "inner:tensor:0", 1),
        ("BroadcastGradientArgs", "inner:r1:0", 1),
        ("Split", "inner:output:3", 3),
        ("Relu", "inner:activations:0", 0),
        ("Switch", "inner:output_true:0", 1),
    ],
)
def test_bodies_name_the_outputs_of_their_nodes(op: str, reference: str, expected: int) -> None:
    """A FunctionDef writes `node:name:index`, a GraphDef counts all outputs of a node."""
    function = RawFunction(
        "f", ["x"], ["y"], [RawNode("inner", op, inputs=["x"])], {"y": reference}
    )
    graph = RawGraph(
        nodes=[
            RawNode("a", "Const"),
            RawNode("call", "PartitionedCall", inputs=["a"], functions={"f": ("f",)}),
            RawNode("out", "Identity", inputs=["call"]),
        ],
        functions={"f": function},
    )
    read = {node.name: node.inputs for node in inline_functions(graph).nodes}
    assert read["out"] == [f"call/inner:{expected}" if expected else "call/inner"]
