"""Shapes of variables that the file does not give: from updates, lists and handles."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.graph import OpGraph, ReadOptions, graph_from_graphdef_bytes, read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.tf.build import graph_of
from driple.graph.tf.graphdef import message_class
from driple.graph.tf.infer import infer_shapes
from driple.graph.tf.links import edges_of, in_order
from driple.graph.tf.raw import RawGraph, RawNode, Shape
from driple.render.remarks import sentence, sentences

DATA = Path(__file__).parents[2] / "data/graphs"
RESOURCE = {"dtype": (20,)}
INT64, FLOAT = {"dtype": (9,)}, {"dtype": (1,), "T": (1,)}


def without_shapes(name: str, batch_size: int) -> OpGraph:
    """A graph as `as_graph_def()` writes it, without add_shapes=True."""
    message: Any = message_class("GraphDef")()
    message.ParseFromString(gzip.decompress((DATA / name).read_bytes()))
    functions = [node for function in message.library.function for node in function.node_def]
    for node in [*message.node, *functions]:
        for entry in [one for one in node.attr if one.key == b"_output_shapes"]:
            node.attr.remove(entry)
    options = ReadOptions(batch_size=batch_size)
    return graph_from_graphdef_bytes(message.SerializeToString(), options)


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_kernels_follow_from_the_lists_and_updates_of_a_loop(kind: str) -> None:
    """All products but the dense layer's three cost the same as with shapes."""
    name = f"keras_{kind}.pb.gz"
    full, bare = (
        read_graph(DATA / name, options=ReadOptions(batch_size=16)),
        without_shapes(name, 16),
    )

    def flops(graph: OpGraph) -> float:
        cost = cost_of_graph(graph)
        is_loop = np.array(graph.op_types) == "MatMul"
        is_loop &= graph.executions > 1
        return float((cost.flops * cost.executions)[is_loop].sum())

    assert flops(bare) == flops(full) > 0


def test_where_variables_stay_unknown_the_advice_is_not_the_batch_size() -> None:
    """Nothing gives the number of classes; --batch-size was given."""
    report = without_shapes("keras_gru.pb.gz", 16).report
    assert report.unknown_share > 0
    first = sentence(report.notes[0])
    assert "--batch-size" not in first
    assert "add_shapes=True" in first
    assert any("the graph lacks the shape of " in note for note in sentences(report.notes))


def shapes_of(*nodes: RawNode) -> dict[str, tuple[Shape, ...] | None]:
    """Inferred shapes by name."""
    edges, _, inputs, _ = edges_of(nodes)
    inferred = infer_shapes(nodes, inputs, in_order(nodes, edges), ReadOptions())
    return dict(zip((node.name for node in nodes), inferred.shapes, strict=True))


GRADIENT = RawNode("g", "Const", shapes=((5, 7),), types=FLOAT)
RATE = RawNode("rate", "Const", shapes=((),), types=FLOAT)
HANDLE = RawNode("v", "VarHandleOp", types=FLOAT)
VALUE = RawNode("value", "ReadVariableOp", inputs=["v"], types=FLOAT)


@pytest.mark.parametrize("op", ["AssignSubVariableOp", "AssignAddVariableOp", "AssignVariableOp"])
def test_a_variable_is_as_large_as_what_changes_it(op: str) -> None:
    """The value of m in m + (g - m) * rate is unknown itself."""
    away = RawNode("away", "Sub", inputs=["g", "value"], types=FLOAT)
    part = RawNode("part", "Mul", inputs=["away", "rate"], types=FLOAT)
    update = RawNode("update", op, inputs=["v", "part"], types=FLOAT)
    assert shapes_of(GRADIENT, RATE, HANDLE, VALUE, away, part, update)["value"] == ((5, 7),)


def test_a_number_changes_a_counter_and_says_nothing_of_a_weight() -> None:
    """Whole numbers count; v -= rate * v has any shape, as has a change of unknown origin."""
    for types, expected in ((INT64, ((),)), (FLOAT, None)):
        part = RawNode("part", "Mul", inputs=["value", "rate"], types=FLOAT)
        update = RawNode("update", "AssignAddVariableOp", inputs=["v", "part"], types=types)
        shape = shapes_of(RATE, HANDLE, VALUE, part, update)["value"]
        assert shape == expected or (expected is None and shape in (None, (None,)))
    unknown = RawNode("x", "SomeOp", types=FLOAT)
    part = RawNode("part", "Mul", inputs=["x", "g"], types=FLOAT)
    update = RawNode("update", "AssignAddVariableOp", inputs=["v", "part"], types=FLOAT)
    assert shapes_of(unknown, GRADIENT, HANDLE, VALUE, part, update)["value"] in (None, (None,))


def test_an_optimizer_gives_variable_and_slot_the_shape_of_the_gradient() -> None:
    """ResourceApplyMomentum(variable, slot, rate, gradient, momentum)."""
    slot = RawNode("slot", "VarHandleOp", types=FLOAT)
    other = RawNode("other", "ReadVariableOp", inputs=["slot"], types=FLOAT)
    inputs = ["v", "slot", "rate", "g", "rate"]
    update = RawNode("update", "ResourceApplyMomentum", inputs=inputs, types=FLOAT)
    shapes = shapes_of(GRADIENT, RATE, HANDLE, VALUE, slot, other, update)
    assert shapes["value"] == shapes["other"] == ((5, 7),)


def test_a_captured_handle_may_tell_the_shape_of_its_variable() -> None:
    """`_handle_shapes` of a placeholder; its `shape` is the handle's own."""
    shapes: dict[str, tuple[Shape, ...]] = {"shape": ((),), "_handle_shapes": ((5, 7),)}
    handle = RawNode("v", "Placeholder", types=RESOURCE, shape_attributes=shapes)
    product = RawNode("y", "MatMul", inputs=["value", "value"], types=FLOAT)
    update = RawNode("u", "AssignSubVariableOp", inputs=["v", "y"], types=FLOAT)
    graph = graph_of(RawGraph(nodes=[handle, VALUE, product, update]), (), ReadOptions())
    assert graph.received_bytes == 5 * 7 * 4
