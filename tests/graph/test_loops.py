"""How often nodes run: while-loops by their conditions, nested, counted down, and unknown."""

import pytest

from driple.graph import OpGraph, graph_from_text
from driple.graph.graphdef import message_class, raw_from_message
from driple.graph.pbtxt import raw_from_text

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
    assert any("unknown length" in note for note in graph.report.notes)


@pytest.mark.parametrize(("base", "squares"), [(9, 60), (1, 30), (1, 60)])
def test_numbers_that_grow_without_bound_end_the_search(base: int, squares: int) -> None:
    """Squares of squares: each node reads the one before twice."""
    chain = [const("x0", base)]
    chain += [op(f"x{i + 1}", "Mul", f"x{i}", f"x{i}") for i in range(squares)]
    text = "\n".join((*chain, const("zero", 0), loop("a", "zero", f"x{squares}")))
    graph = graph_from_text(text)
    assert graph.report.loops_of_unknown_length == 1


def test_text_and_binary_tell_the_same() -> None:
    from google.protobuf import text_format

    text = "\n".join((const("zero", 0), const("n", 5), loop("a", "zero", "n")))
    message = text_format.Parse(
        text, message_class("GraphDef")(), allow_unknown_field=True, allow_unknown_extension=True
    )
    told, parsed = raw_from_text(text), raw_from_message(message)
    assert [(n.numbers, n.frame) for n in told.nodes] == [
        (n.numbers, n.frame) for n in parsed.nodes
    ]
    assert {n.frame for n in told.nodes} == {"", "a"}
