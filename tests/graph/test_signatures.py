"""A SavedModel with several signatures: each is a graph of its own."""

from typing import Any

import pytest

from driple.errors import GraphError
from driple.graph import OpGraph, ReadOptions, graph_from_graphdef_bytes
from driple.graph.cost import cost_of_graph
from driple.graph.tf.graphdef import message_class
from driple.render.remarks import sentence

FLOPS = 2 * 8 * 20 * 30


def node(graph: Any, name: str, op: str, *inputs: str, shape: tuple[int, ...] = ()) -> Any:
    """Add a node with a shape."""
    added = graph.add(name=name.encode(), op=op.encode(), input=[item.encode() for item in inputs])
    added.attr.add(key=b"T").value.type = 1
    added.attr.add(key=b"dtype").value.type = 1
    for key in (b"shape", b"_output_shapes"):
        value = added.attr.add(key=key).value
        there = value.shape if key == b"shape" else value.list.shape.add()
        for size in shape:
            there.dim.add(size=size)
    return added


def saved_model(*signatures: str, **outputs: str) -> bytes:
    """Each signature calls one function of a product, as Keras' export writes them."""
    saved: Any = message_class("SavedModel")()
    saved.saved_model_schema_version = 1
    meta = saved.meta_graphs.add()
    meta.meta_info_def.tags.append(b"serve")
    function = meta.graph_def.library.function.add()
    function.signature.name = b"forward"
    for argument in (b"x", b"w"):
        function.signature.input_arg.add(name=argument)
    function.signature.output_arg.add(name=b"y")
    function.ret.add(key=b"y", value=b"product:product:0")
    node(function.node_def, "product", "MatMul", "x", "w", shape=(8, 30))
    node(meta.graph_def.node, "w", "VariableV2", shape=(20, 30))
    for name in signatures:
        node(meta.graph_def.node, f"{name}_x", "Placeholder", shape=(8, 20))
        call = node(meta.graph_def.node, f"{name}_call", "PartitionedCall", f"{name}_x", "w")
        call.attr.add(key=b"f").value.func.name = b"forward"
        entry = meta.signature_def.add(key=name.encode())
        tensor = outputs.get(name, f"{name}_call:0")
        entry.value.outputs.add(key=b"y").value.name = tensor.encode()
    init = meta.signature_def.add(key=b"__saved_model_init_op")
    init.value.outputs.add(key=b"init").value.name = b"w"
    data: bytes = saved.SerializeToString()
    return data


def read(data: bytes, target: str | None = None) -> OpGraph:
    """The graph of one signature."""
    return graph_from_graphdef_bytes(data, ReadOptions(target=target))


def test_two_signatures_count_once_and_the_note_says_which() -> None:
    """The usual one is `serving_default`."""
    graph = read(saved_model("serve", "serving_default"))
    assert cost_of_graph(graph).total_flops == FLOPS
    assert graph.report.target == "serving_default"
    assert "2 signatures; this is serving_default" in sentence(graph.report.notes[1])
    assert all(name.startswith("serving_default_call/") for name in graph.names)


def test_another_signature_is_chosen_by_name() -> None:
    """`--target` takes the name of a signature too; an unknown name is refused."""
    data = saved_model("serve", "serving_default")
    assert read(data, "serve").names == ("serve_call/product",)
    with pytest.raises(GraphError, match="--set target"):
        read(data, "nothing")


def test_one_signature_or_one_that_leads_nowhere_leaves_the_graph_as_it_is() -> None:
    """All ops count, without a note."""
    graph = read(saved_model("serve"))
    assert cost_of_graph(graph).total_flops == FLOPS
    assert not graph.report.target
    damaged = read(saved_model("serve", "other", other="gone:0"))
    assert cost_of_graph(damaged).total_flops == 2 * FLOPS
