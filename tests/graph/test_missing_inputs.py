"""Graphs that were trimmed or damaged: inputs that lead nowhere, ops with too few of them."""

import contextlib
import gzip
import random
from pathlib import Path

import pytest

from driple.errors import GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.options import ReadOptions
from driple.graph.tf.build import graph_of
from driple.graph.tf.graphdef import raw_from_bytes
from driple.graph.tf.infer import infer_shapes
from driple.graph.tf.links import edges_of, in_order
from driple.graph.tf.pbtxt import raw_from_text
from driple.graph.tf.raw import RawGraph, RawNode, Shape

DATA = Path(__file__).parents[1] / "data"
FILES = (
    "cases/01_control.pbtxt",
    "cases/03_backprop_filter_shape_unknown.pbtxt",
    "cases/10_conv3d.pbtxt",
    "cases/19_tf2_while_loop_training_step.pbtxt",
    "graphs/keras_adamw_10_steps.pb.gz",
    "graphs/keras_gru.pb.gz",
    "graphs/loops_v1.pb.gz",
    "graphs/mirrored_cpus.pb.gz",
)
TRIES = 6


def raw_of(name: str) -> RawGraph:
    """A graph of the test data, before anything is decided about it."""
    data = (DATA / name).read_bytes()
    if name.endswith(".pbtxt"):
        return raw_from_text(data.decode())
    return raw_from_bytes(gzip.decompress(data))[0]


def damage(raw: RawGraph, rng: random.Random) -> None:
    """Take away nodes, inputs and shapes, or let inputs lead nowhere."""
    bodies = [raw.nodes, *(function.nodes for function in raw.functions.values())]
    for _ in range(rng.choice((1, 3, 10, 60))):
        body = rng.choice([nodes for nodes in bodies if nodes])
        node = rng.choice(body)
        kind = rng.choice(("node", "input", "rest", "gone", "shapes"))
        at = rng.randrange(len(node.inputs)) if node.inputs else 0
        if kind == "node" and len(body) > 1:
            body.remove(node)
        elif kind == "input":
            del node.inputs[at : at + 1]
        elif kind == "rest":
            node.inputs = node.inputs[:at]
        elif kind == "gone" and node.inputs:
            node.inputs[at] = "gone:1"
        else:
            node.shapes = None


@pytest.mark.parametrize("name", FILES)
def test_a_graph_without_some_inputs_is_read_or_refused(name: str) -> None:
    """Its sizes are unknown, or it is one line of error; never another exception."""
    for seed in range(TRIES):
        rng = random.Random(f"{name}{seed}")
        raw = raw_of(name)
        damage(raw, rng)
        options = ReadOptions(batch_size=rng.choice((None, 16)))
        with contextlib.suppress(GraphError):
            graph = graph_of(raw, (), options)
            assert cost_of_graph(graph).total_flops >= 0


def shapes_of(*nodes: RawNode) -> dict[str, tuple[Shape, ...] | None]:
    """Inferred shapes by name."""
    edges, _, inputs, _ = edges_of(nodes)
    inferred = infer_shapes(nodes, inputs, in_order(nodes, edges), ReadOptions())
    return dict(zip((node.name for node in nodes), inferred.shapes, strict=True))


IMAGES = RawNode("x", "Const", shapes=((8, 9, 9, 3),))
WEIGHT = RawNode("w", "Const", shapes=((3, 20),))


@pytest.mark.parametrize("op", ["Conv2DBackpropFilter", "Conv2DBackpropInput"])
@pytest.mark.parametrize(
    "reads", [["x"], ["x", "x"], ["x", "x", "x"], ["x", "gone", "x"], ["gone"]]
)
def test_a_forward_convolution_without_filter_tells_nothing(op: str, reads: list[str]) -> None:
    """Its gradient looks for the forward op, which may lack an input itself."""
    forward = RawNode("y", "Conv2D", inputs=["x"])
    assert "g" in shapes_of(IMAGES, forward, RawNode("g", op, inputs=reads))


def test_inputs_after_a_missing_one_are_not_taken_for_it() -> None:
    """`w` is the second input; the first is not in the file."""
    shapes = shapes_of(IMAGES, WEIGHT, RawNode("y", "MatMul", inputs=["gone", "w", "x"]))
    assert shapes["y"] is None
    given = RawNode("z", "Relu", inputs=["gone"], shapes=((4, 5),))
    assert shapes_of(given)["z"] == ((4, 5),)
