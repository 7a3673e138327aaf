"""GraphDef in protobuf's text format -> RawGraph.

    text --textformat.py--> messages --field by field--> RawNode, RawFunction

Any layout that text format allows gives the same graph as protobuf's own parser. Fields that Driple
does not know are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

from driple.errors import GraphError
from driple.graph.raw import (
    EQUATION,
    MAX_NODES,
    NUMBERS,
    RawFunction,
    RawGraph,
    RawNode,
    Shape,
    letters_of,
)
from driple.graph.textformat import Message, as_message, top_level_fields
from driple.graph.textvalues import data_type, number

__all__ = ["raw_from_text"]


@dataclass(slots=True)
class _Attribute:
    """What an attribute says: shapes of the outputs, types, functions, numbers, or a frame."""

    key: str
    shapes: tuple[Shape, ...] | None = None
    types: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    frame: str = ""


def raw_from_text(text: str) -> RawGraph:
    """Parse a GraphDef in text format.

    Raises:
        GraphError: the text is no text format, or no GraphDef; with the line where one can be told.
    """
    graph = RawGraph()
    others: dict[str, None] = {}
    is_graph = False
    for name, value in top_level_fields(text):
        if name == "node":
            is_graph = True
            if len(graph.nodes) == MAX_NODES:
                raise GraphError(f"graph has over {MAX_NODES} nodes; no more are read")
            graph.nodes.append(_node(as_message(name, value)))
        elif name == "library":
            is_graph = True
            for function in as_message(name, value).messages("function"):
                made = _function(function)
                graph.functions[made.name] = made
        elif len(others) < 3:
            others[name] = None
    if not is_graph:
        holds = ", ".join(others) or "nothing"
        raise GraphError(f"text is no GraphDef: it holds {holds}, 'node {{ ... }}' was expected")
    return graph


def _node(message: Message) -> RawNode:
    said = {attribute.key: attribute for attribute in map(_meaning, message.messages("attr"))}
    shapes = said.get("_output_shapes")
    return RawNode(
        name=message.string("name"),
        op=message.string("op"),
        device=message.string("device"),
        inputs=message.strings("input"),
        shapes=None if shapes is None else shapes.shapes,
        types={key: attribute.types for key, attribute in said.items() if attribute.types},
        functions={key: one.functions for key, one in said.items() if one.functions},
        numbers={key: one.numbers for key, one in said.items() if one.numbers},
        frame=said["frame_name"].frame if "frame_name" in said else "",
    )


def _meaning(entry: Message) -> _Attribute:
    """What an attribute says, understood once for all that share it; the last of a key counts."""
    if not isinstance(entry.meaning, _Attribute):
        entry.meaning = _attribute(entry)
    return entry.meaning


def _attribute(entry: Message) -> _Attribute:
    key, value = entry.string("key"), entry.message("value") or Message()
    items = value.message("list") or Message()
    if key == "_output_shapes":
        return _Attribute(key, shapes=tuple(_shape(shape) for shape in items.messages("shape")))
    types = tuple(data_type(word) for word in (value.words("type")[-1:] or items.words("type")))
    if any(types):
        return _Attribute(key, types=types)
    called = [item.string("name") for item in value.messages("func")]
    if not any(called):
        called = [item.string("name") for item in items.messages("func")]
    if any(called):
        return _Attribute(key, functions=tuple(called))
    return _number_attribute(key, value, items)


def _number_attribute(key: str, value: Message, items: Message) -> _Attribute:
    if key == "frame_name":
        return _Attribute(key, frame=value.string("s"))
    if key == "value":
        return _Attribute(key, numbers=_scalar(value.message("tensor") or Message()))
    if key == EQUATION:
        return _Attribute(key, numbers=letters_of(value.string("s")))
    if key not in NUMBERS:
        return _Attribute(key)
    single = tuple(filter(None, map(number, value.words("i")[-1:])))  # 0 is as good as none
    return _Attribute(key, numbers=tuple(map(number, items.words("i"))) or single)


def _scalar(tensor: Message) -> tuple[int, ...]:
    """The number of a scalar whole-number constant; empty for any other."""
    shape = tensor.message("tensor_shape") or Message()
    if shape.messages("dim") or shape.words("unknown_rank"):
        return ()
    return tuple(map(number, (tensor.words("int_val") or tensor.words("int64_val"))[:1]))


def _shape(message: Message) -> Shape:
    if message.words("unknown_rank")[-1:] in (["true"], ["t"], ["True"], ["1"]):
        return None
    sizes = (dim.words("size")[-1:] for dim in message.messages("dim"))
    return tuple(number(size[0]) if size else 0 for size in sizes)


def _function(message: Message) -> RawFunction:
    signature = message.message("signature") or Message()
    return RawFunction(
        name=signature.string("name"),
        arguments=[item.string("name") for item in signature.messages("input_arg")],
        outputs=[item.string("name") for item in signature.messages("output_arg")],
        nodes=[_node(node) for node in message.messages("node_def")],
        returns={item.string("key"): item.string("value") for item in message.messages("ret")},
    )
