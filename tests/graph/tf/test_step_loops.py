"""Several training steps in one call: the numbers are of one of them."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph import OpGraph, ReadOptions, graph_from_graphdef_bytes, read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.tf.graphdef import message_class
from driple.graph.tf.holders import holders_of
from driple.graph.tf.links import edges_of, in_order
from driple.graph.tf.raw import RawNode
from driple.graph.tf.step_loops import step_loops
from driple.render.remarks import sentences

DATA = Path(__file__).parents[2] / "data/graphs"
# AdamW of Keras 3 on an embedding and a dense layer, one step and ten in a tf.range.
ONE, TEN = DATA / "keras_adamw.pb.gz", DATA / "keras_adamw_10_steps.pb.gz"


def test_ten_steps_in_a_loop_are_one_step() -> None:
    """FLOPs, traffic both ways and states are those of the graph of one step."""
    single, ten = read_graph(ONE), read_graph(TEN)
    assert cost_of_graph(ten).total_flops == pytest.approx(
        cost_of_graph(single).total_flops, rel=1e-3
    )
    assert (ten.sent_bytes, ten.received_bytes) == (single.sent_bytes, single.received_bytes)
    assert ten.report.state_bytes == single.report.state_bytes
    assert int(ten.executions.max()) == 1
    assert sentences(ten.report.notes) == (
        "the graph runs 10 steps per call; its numbers are of one step",
    )
    assert sentences(single.report.notes) == ()


def test_the_fixed_batch_is_that_of_a_turn() -> None:
    """The inputs are 10 x 16 x 6 and 10 x 16: ten steps of 16 samples."""
    assert read_graph(TEN, options=ReadOptions(batch_size=16)).num_nodes
    with pytest.raises(GraphError, match="fixed batch of 16"):
        read_graph(TEN, options=ReadOptions(batch_size=10))


def with_open_batch(steps: int) -> OpGraph:
    """The graph of ten steps without a batch size, and no shapes but those of variables."""
    message: Any = message_class("GraphDef")()
    message.ParseFromString(gzip.decompress(TEN.read_bytes()))
    functions = [node for function in message.library.function for node in function.node_def]
    for node in [*message.node, *functions]:
        for entry in list(node.attr):
            if entry.key == b"_output_shapes" and node.op != b"ReadVariableOp":
                node.attr.remove(entry)
            elif entry.key == b"shape" and len(entry.value.shape.dim) > 1:
                entry.value.shape.dim[0].size = steps
                entry.value.shape.dim[1].size = -1
    options = ReadOptions(batch_size=16)
    return graph_from_graphdef_bytes(message.SerializeToString(), options)


@pytest.mark.parametrize("steps", [10, -1])
def test_batch_size_binds_the_dimension_of_a_turn(steps: int) -> None:
    """Whether the number of steps is known or not."""
    graph = with_open_batch(steps)
    expected = cost_of_graph(read_graph(ONE)).total_flops
    assert cost_of_graph(graph).total_flops == pytest.approx(expected, rel=0.01)
    assert not graph.report.unknown_share


def loops_of(nodes: list[RawNode]) -> frozenset[str | int]:
    """Loops of steps, where all nodes run."""
    edges, _, inputs, _ = edges_of(nodes)
    order = in_order(nodes, edges)
    loops = step_loops(
        nodes,
        inputs,
        edges,
        order,
        runs=np.ones(len(nodes), dtype=np.bool_),
        holder=holders_of(nodes, inputs, order),
    )
    return loops.loops


def test_a_loop_that_accumulates_gradients_is_a_part_of_a_step() -> None:
    """The variable's own update stands outside of it; a counter outside changes nothing."""
    names = {"accumulated": (3, 4), "weight": (3, 4), "number": (1,)}
    variables = [
        RawNode(name, "VariableV2", shapes=(shape,), shape_attributes={"shape": (shape,)})
        for name, shape in names.items()
    ]
    inside = [
        RawNode("x", "Placeholder"),
        RawNode("add", "AssignAdd", inputs=["accumulated", "x"], loop="loop"),
        RawNode("loop", "While", inputs=["x"], starts=("x",)),
    ]
    count = RawNode("count", "AssignAdd", inputs=["number", "number"])
    apply = RawNode("apply", "AssignSub", inputs=["weight", "accumulated"])
    assert loops_of([*variables, *inside]) == {"loop"}
    assert loops_of([*variables, *inside, count]) == {"loop"}
    assert not loops_of([*variables, *inside, apply])
