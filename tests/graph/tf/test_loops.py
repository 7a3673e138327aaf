"""How often nodes run: while-loops by their conditions, nested, counted down, and unknown."""

from pathlib import Path

import pytest

from driple.graph import OpGraph, graph_from_text
from driple.graph.options import ReadOptions
from driple.graph.tf.functions import inline_functions
from driple.graph.tf.graphdef import message_class, raw_from_message
from driple.graph.tf.infer import infer_shapes
from driple.graph.tf.links import edges_of, in_order
from driple.graph.tf.loops import Executions, count_executions
from driple.graph.tf.pbtxt import raw_from_text
from driple.graph.tf.raw import Constant, RawFunction, RawGraph, RawNode
from driple.render.remarks import sentences

CASES = Path(__file__).parents[2] / "data/cases"
FLOAT = 'attr { key: "T" value { type: DT_FLOAT } }'


def const(name: str, value: int) -> str:
    tensor = f"tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {value} }}"
    return f"""node {{ name: "{name}" op: "Const"
      attr {{ key: "dtype" value {{ type: DT_INT32 }} }}
      attr {{ key: "value" value {{ {tensor} }} }}
    }}"""


def op(name: str, kind: str, *inputs: str, frame: str = "") -> str:
    listed = " ".join(f'input: "{item}"' for item in inputs)
    attr = f'attr {{ key: "frame_name" value {{ s: "{frame}" }} }}' if frame else FLOAT
    return f'node {{ name: "{name}" op: "{kind}" {listed} {attr} }}'


def loop(
    at: str, start: str, bound: str, *, compare: str = "Less", change: str = "Add", body: str = ""
) -> str:
    """A counter from `start` on, while it compares with `bound`, and one op in the body."""
    return "\n".join(
        (
            op(f"{at}/enter", "Enter", start, frame=at),
            op(f"{at}/bound", "Enter", bound, frame=at),
            op(f"{at}/merge", "Merge", f"{at}/enter", f"{at}/next"),
            op(f"{at}/compare", compare, f"{at}/merge", f"{at}/bound"),
            op(f"{at}/cond", "LoopCond", f"{at}/compare"),
            op(f"{at}/switch", "Switch", f"{at}/merge", f"{at}/cond"),
            op(f"{at}/body", "Identity", f"{at}/switch:1"),
            const(f"{at}/one", 1).replace('op: "Const"', f'op: "Const" input: "^{at}/body"'),
            op(f"{at}/change", change, f"{at}/body", f"{at}/one"),
            op(f"{at}/next", "NextIteration", f"{at}/change"),
            op(f"{at}/exit", "Exit", f"{at}/switch"),
            op(f"{at}/work", "Tanh", f"{at}/body"),
            body,
        )
    )


def turns(graph: OpGraph, name: str) -> int:
    return int(graph.executions[graph.names.index(name)])


@pytest.mark.parametrize(("compare", "expected"), [("Less", 50), ("LessEqual", 51), ("Greater", 1)])
def test_a_counter_against_a_constant(compare: str, expected: int) -> None:
    text = "\n".join((const("zero", 0), const("n", 50), loop("a", "zero", "n", compare=compare)))
    graph = graph_from_text(text + op("after", "Tanh", "a/exit"))
    assert turns(graph, "a/work") == expected
    assert turns(graph, "after") == 1
    # A counter that grows is never below what it must stay above: such a loop is not understood.
    assert graph.report.loops_of_unknown_length == (compare == "Greater")


def test_a_backward_loop_counts_down_what_the_forward_loop_counted_up() -> None:
    text = "\n".join(
        (
            const("zero", 0),
            const("n", 7),
            const("low", 1),
            loop("f", "zero", "n"),
            loop("b", "f/exit", "low", compare="GreaterEqual", change="Sub"),
        )
    )
    graph = graph_from_text(text)
    assert turns(graph, "f/work") == turns(graph, "b/work") == 7
    assert graph.report.loops_of_unknown_length == 0


def test_loops_inside_loops_multiply() -> None:
    inner = loop("in", "out/one", "out/m")
    text = "\n".join(
        (
            const("zero", 0),
            const("n", 3),
            const("m", 6),
            op("out/m", "Enter", "m", frame="out"),
            loop("out", "zero", "n", body=inner),
        )
    )
    graph = graph_from_text(text)
    assert turns(graph, "out/work") == 3
    assert turns(graph, "in/work") == 3 * 5  # from 1 up to 6


def test_a_loop_of_unknown_length_counts_one_turn_and_is_told() -> None:
    text = "\n".join((const("zero", 0), op("n", "MyLength"), loop("a", "zero", "n")))
    graph = graph_from_text(text)
    assert turns(graph, "a/work") == 1
    assert graph.report.loops_of_unknown_length == 1
    assert graph.report.has_unknown
    assert graph.report.unknown_turns == ("a",)
    assert any("unknown length (a)" in note for note in sentences(graph.report.doubts))
    given = graph_from_text(text, ReadOptions(loop_turns=30)).report
    assert (given.has_unknown, given.unknown_turns, sentences(given.doubts)) == (False, (), ())
    assert "1 loop of unknown length (a): 30 turns each, as given" in sentences(given.notes)


def test_a_loop_that_no_step_runs_leaves_no_doubt() -> None:
    """Beside a step of known length, an evaluation loops as often as its data say."""
    step = (CASES / "01_control.pbtxt").read_text()
    text = "\n".join((step, const("zero", 0), op("n", "MyLength"), loop("a", "zero", "n")))
    assert not graph_from_text(text).report.has_unknown


@pytest.mark.parametrize(("base", "squares", "num_unknown"), [(9, 60, 1), (1, 30, 0), (1, 60, 0)])
def test_numbers_that_grow_without_bound_end_the_search(
    base: int, squares: int, num_unknown: int
) -> None:
    """Squares of squares: each node reads the one before twice. Squares of 1 stay 1."""
    chain = [const("x0", base)]
    chain += [op(f"x{i + 1}", "Mul", f"x{i}", f"x{i}") for i in range(squares)]
    text = "\n".join((*chain, const("zero", 0), loop("a", "zero", f"x{squares}")))
    graph = graph_from_text(text)
    assert graph.report.loops_of_unknown_length == num_unknown


def test_text_and_binary_tell_the_same() -> None:
    from google.protobuf import text_format

    text = "\n".join((const("zero", 0), const("n", 5), loop("a", "zero", "n")))
    message = text_format.Parse(
        text, message_class("GraphDef")(), allow_unknown_field=True, allow_unknown_extension=True
    )
    from_text, parsed = raw_from_text(text), raw_from_message(message)
    assert [(n.numbers, n.frame) for n in from_text.nodes] == [
        (n.numbers, n.frame) for n in parsed.nodes
    ]
    assert {n.frame for n in from_text.nodes} == {"", "a"}


def executions_of(
    nodes: list[RawNode], loop_turns: int | None = None
) -> tuple[dict[str, int], Executions]:
    """How often each node runs, by name, with the values that folding finds."""
    edges, _, inputs, _ = edges_of(nodes)
    order = in_order(nodes, edges)
    values = infer_shapes(nodes, inputs, order, ReadOptions()).values
    executions = count_executions(nodes, inputs, edges, order, values=values, loop_turns=loop_turns)
    return dict(zip((n.name for n in nodes), executions.count.tolist(), strict=True)), executions


@pytest.mark.parametrize("number", ["17", "17b", "19"])
def test_the_products_of_an_rnn_run_in_every_turn(number: str) -> None:
    """Three products of [16, 256] by [256, 128], 50 times each: 0.157 GFLOP.

    The length is sliced from a static shape (17), a constant (17b), or that of a tf.range in a
    While whose gradient counts what the forward loop counted (19).
    """
    path = next((Path(__file__).parents[2] / "data/cases").glob(f"{number}_*.pbtxt"))
    nodes = inline_functions(raw_from_text(path.read_text())).nodes
    turns_of, executions = executions_of(nodes)
    products = [turns_of[node.name] for node in nodes if node.op == "MatMul"]
    assert products == [50, 50, 50]
    assert sum(products) * 2 * 16 * 256 * 128 == pytest.approx(0.157e9, rel=0.01)
    assert executions.unknown == ()


def int_const(name: str, value: int) -> RawNode:
    return RawNode(name, "Const", constant=Constant(3, (), (value,)))


def while_graph(
    bound: list[RawNode], cond: list[RawNode], body: list[RawNode], **functions: RawFunction
) -> RawGraph:
    """A While of (counter, bound), whose functions return `test`, and `next` and the bound."""
    arguments = ["i", "n"]
    library = {
        "cond": RawFunction("cond", arguments, ["p"], cond, {"p": "test:z:0"}),
        "body": RawFunction("body", arguments, ["a", "b"], body, {"a": "next:z:0", "b": "n"}),
        **functions,
    }
    loop = RawNode(
        "loop", "While", inputs=["start", "bound"], types={"T": (3, 3)},
        functions={"cond": ("cond",), "body": ("body",)},
    )  # fmt: skip
    return RawGraph(nodes=[int_const("start", 2), *bound, loop], functions=library)


LESS = [RawNode("test", "Less", inputs=["i", "n"])]
BODY = [
    int_const("two", 2),
    RawNode("next", "AddV2", inputs=["i", "two:output:0"]),
    RawNode("work", "Tanh", inputs=["i"]),
]


def test_a_while_turns_until_its_condition_fails() -> None:
    """From 2 in steps of 2 while below 9: 2, 4, 6, 8."""
    nodes = inline_functions(while_graph([int_const("bound", 9)], LESS, BODY)).nodes
    turns_of, executions = executions_of(nodes)
    assert turns_of["loop/body.1/work"] == 4
    assert turns_of["loop"] == turns_of["bound"] == 1
    assert executions.num_loops == 1


def test_a_while_that_may_be_left_early_turns_at_most_as_often() -> None:
    """`break` in a tf.range loop: If(counter < bound, not done, False)."""
    true = [
        RawNode("data", "MyFlag"),
    ]
    branch = RawFunction("ask", [], ["p"], true, {"p": "data:z:0"})
    never = RawFunction(
        "never", [], ["p"], [RawNode("no", "Const", constant=Constant(10, (), (0,)))],
        {"p": "no:output:0"},
    )  # fmt: skip
    cond = [
        RawNode("less", "Less", inputs=["i", "n"]),
        RawNode(
            "test", "If", inputs=["less:z:0"], types={"Tout": (10,)},
            functions={"then_branch": ("ask",), "else_branch": ("never",)},
        ),
    ]  # fmt: skip
    graph = while_graph([int_const("bound", 9)], cond, BODY, ask=branch, never=never)
    turns_of, executions = executions_of(inline_functions(graph).nodes)
    assert turns_of["loop/body.1/work"] == 4
    assert executions.unknown == ()


def test_a_while_inside_a_while_multiplies() -> None:
    inner = RawNode(
        "inner", "While", inputs=["zero:output:0", "five:output:0"], types={"T": (3, 3)},
        functions={"cond": ("cond",), "body": ("body2",)},
    )  # fmt: skip
    body2 = RawFunction(
        "body2", ["i", "n"], ["a", "b"],
        [int_const("one", 1), RawNode("next", "AddV2", inputs=["i", "one:output:0"]),
         RawNode("deep", "Tanh", inputs=["i"])],
        {"a": "next:z:0", "b": "n"},
    )  # fmt: skip
    body = [*BODY, int_const("zero", 0), int_const("five", 5), inner]
    graph = while_graph([int_const("bound", 9)], LESS, body, body2=body2)
    turns_of, executions = executions_of(inline_functions(graph).nodes)
    assert turns_of["loop/body.1/inner"] == 4
    assert turns_of["loop/body.1/inner/body2.1/deep"] == 4 * 5
    assert executions.num_loops == 2


def test_a_bound_that_an_outer_loop_changes_is_unknown() -> None:
    """For i in range(..): for j in range(i): the inner one turns more often each time."""
    inner = RawNode(
        "inner", "While", inputs=["zero:output:0", "i"], types={"T": (3, 3)},
        functions={"cond": ("cond",), "body": ("body2",)},
    )  # fmt: skip
    body2 = RawFunction(
        "body2", ["i", "n"], ["a", "b"],
        [int_const("one", 1), RawNode("next", "AddV2", inputs=["i", "one:output:0"])],
        {"a": "next:z:0", "b": "n"},
    )  # fmt: skip
    graph = while_graph(
        [int_const("bound", 9)], LESS, [*BODY, int_const("zero", 0), inner], body2=body2
    )
    turns_of, executions = executions_of(inline_functions(graph).nodes)
    assert executions.unknown == ("loop/body.1/inner",)
    assert turns_of["loop/body.1/work"] == 4


def test_loop_turns_replace_what_is_unknown() -> None:
    nodes = inline_functions(while_graph([RawNode("bound", "MyLength")], LESS, BODY)).nodes
    turns_of, executions = executions_of(nodes)
    assert turns_of["loop/body.1/work"] == 1
    assert executions.unknown == ("loop",)
    turns_of, executions = executions_of(nodes, loop_turns=30)
    assert turns_of["loop/body.1/work"] == 30


def test_a_list_that_a_while_fills_is_as_long_as_it_turns() -> None:
    """A second While whose bound is TensorListLength of what the first one pushed."""
    push = RawFunction(
        "push", ["i", "n", "l"], ["a", "b", "c"],
        [*BODY, RawNode("pushed", "TensorListPushBack", inputs=["l", "i"])],
        {"a": "next:z:0", "b": "n", "c": "pushed:output_handle:0"},
    )  # fmt: skip
    cond3 = RawFunction("cond3", ["i", "n", "l"], ["p"], LESS, {"p": "test:z:0"})
    graph = while_graph([int_const("bound", 9)], LESS, BODY, push=push, cond3=cond3)
    graph.nodes = [
        int_const("start", 2), int_const("far", 9), RawNode("list", "EmptyTensorList"),
        RawNode(
            "first", "While", inputs=["start", "far", "list"], types={"T": (3, 3, 21)},
            functions={"cond": ("cond3",), "body": ("push",)},
        ),
        RawNode("bound", "TensorListLength", inputs=["first:2"]),
        graph.nodes[-1],
    ]  # fmt: skip
    turns_of, executions = executions_of(inline_functions(graph).nodes)
    assert turns_of["first/push.1/work"] == 4
    assert turns_of["loop/body.1/work"] == 1  # from 2 in steps of 2 while below 4
    assert executions.unknown == ()


def test_a_long_chain_of_loops_that_wait_for_each_other_needs_no_recursion() -> None:
    """Each of 600 loops counts as far as the one before it."""
    parts = [const("zero", 0), const("n", 3), loop("l0", "zero", "n")]
    parts += [loop(f"l{i}", "zero", f"l{i - 1}/exit") for i in range(1, 600)]
    graph = graph_from_text("\n".join(parts))
    assert turns(graph, "l599/work") == 3
    assert graph.report.loops_of_unknown_length == 0
