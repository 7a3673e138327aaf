"""Sizes that a user gives: how they are asked for, listed, and refused if they contradict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driple.errors import GraphError
from driple.graph.options import ReadOptions
from driple.graph.tf.build import graph_of
from driple.graph.tf.raw import RawGraph, RawNode, Shape
from driple.render.remarks import sentences

FLOAT = {"T": (1,), "dtype": (1,)}


def source(name: str, *shapes: Shape, op: str = "Placeholder") -> RawNode:
    return RawNode(name, op, shapes=shapes or None, types=FLOAT)


def node(name: str, op: str, *inputs: str, shape: Shape = None) -> RawNode:
    return RawNode(
        name, op, inputs=list(inputs), types=FLOAT, shapes=None if shape is None else (shape,)
    )


def read(*nodes: RawNode, **options: object) -> tuple[str, ...]:
    """Notes of a graph."""
    copies = [replace(one) for one in nodes]
    return sentences(graph_of(RawGraph(copies), (), ReadOptions(**options)).report.notes)  # type: ignore[arg-type]


LOSS = (
    source("x", (-1, 10)),
    source("y", (-1,)),
    node("loss", "SparseSoftmaxCrossEntropyWithLogits", "x", "y"),
)
ITERATOR = (
    source("next", (-1, 4), (-1,), op="IteratorGetNext"),
    node("one", "Tanh", "next"),
    node("two", "Tanh", "next:1"),
)


def test_open_inputs_are_listed_as_they_can_be_typed() -> None:
    """And the next answer, with these, has none."""
    (note,) = read(*LOSS)
    assert note.endswith(
        "set them with --batch-size N or --input x=?x10 --input y=?, with a number for each ?"
    )
    assert read(*LOSS, inputs={"x": (8, 10), "y": (8,)}) == ()


def test_an_input_with_several_outputs_is_named_with_its_output() -> None:
    assert "--input next:0=?x4 --input next:1=?" in read(*ITERATOR)[0]
    assert read(*ITERATOR, inputs={"next:0": (8, 4), "next:1": (8,)}) == ()
    with pytest.raises(GraphError, match=r"next=8, which has 2 outputs: name one as NAME:OUTPUT"):
        read(*ITERATOR, inputs={"next": (8,)})
    with pytest.raises(GraphError, match=r"it has next:0=\?x4, next:1=\?"):
        read(*ITERATOR, inputs={"next:2": (8,)})


def test_a_batch_size_binds_the_outputs_that_no_input_option_names() -> None:
    assert read(*ITERATOR, batch_size=8, inputs={"next:1": (8,)}) == ()


def test_a_rate_that_its_gradient_reads_is_asked_for_as_a_scalar() -> None:
    nodes = (
        source("x", (8, 4)),
        source("keep"),
        node("drop", "RealDiv", "x", "keep"),
        node("size", "Shape", "keep"),
        source("w", (4, 4)),
        node("y", "MatMul", "drop", "w"),
    )
    assert read(*nodes)[0].endswith("set them with --input keep=scalar")
    assert not any("unknown sizes" in note for note in read(*nodes, inputs={"keep": ()}))


def test_an_input_that_data_ops_read_is_not_asked_for_as_a_scalar() -> None:
    nodes = (source("x"), source("w", (4, 4)), node("y", "MatMul", "x", "w"))
    assert "--input x=SHAPE" in read(*nodes)[0]


@pytest.mark.parametrize(
    ("batch_size", "inputs"),
    [(16, {"x": (32, 10)}), (None, {"x": (32, 10), "y": (16,)}), (16, {"x:0": (32, 10)})],
)
def test_two_batch_sizes_of_one_graph_are_refused(
    batch_size: int | None, inputs: dict[str, tuple[int, ...]]
) -> None:
    with pytest.raises(GraphError, match=r"contradict each other: 'loss' .* read 32x10 and 16;"):
        read(*LOSS, batch_size=batch_size, inputs=inputs)


def test_a_batch_size_that_no_input_has_is_refused() -> None:
    nodes = (source("x", (-1, 10)), node("y", "Tanh", "x"))
    with pytest.raises(GraphError, match="--batch-size 16 contradicts --input x=32x10"):
        read(*nodes, batch_size=16, inputs={"x": (32, 10)})


def test_other_sizes_beside_the_batch_are_no_contradiction() -> None:
    """Words of a sample come first here; boxes are not as many as samples."""
    words = (source("words", (-1, -1)), node("y", "Tanh", "words"))
    assert read(*words, batch_size=16, inputs={"words": (25, 16)}) == ()
    boxes = (*LOSS, source("boxes", (-1, 4)), node("b", "Tanh", "boxes"))
    assert read(*boxes, batch_size=16, inputs={"boxes": (300, 4)}) == ()


def test_a_scalar_for_an_input_of_another_rank_is_named_in_the_error() -> None:
    with pytest.raises(GraphError, match=r"--input x=scalar; the graph fixes x:0 to \?x10"):
        read(*LOSS, inputs={"x": ()})


def test_nodes_without_a_type_or_shape_are_named() -> None:
    """Up to three of them."""
    bare = [RawNode(f"n{i}", "MyOp", inputs=["x"], shapes=((2, 2),)) for i in range(5)]
    odd = RawNode("odd", "MyOp", inputs=["x"])
    notes = read(source("x", (2, 2)), *bare, odd)
    assert "5 nodes without a data type (n0, n1, n2, ...); elements count 4 bytes" in notes
    assert any("no known shape (odd)" in note for note in notes)
