"""GraphDef in protobuf's text format -> RawGraph.

    text --textformat.py--> messages --field by field--> RawNode, RawFunction

Any layout that text format allows gives the same graph as protobuf's own parser. Fields that Driple
does not know are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from driple.errors import GraphError
from driple.graph.tf.constants import LONGEST_CONTENT, VALUE_FIELDS, constant_of
from driple.graph.tf.raw import (
    LETTERS,
    MAX_NODES,
    MAX_VALUES,
    TEXTS,
    Constant,
    RawFunction,
    RawGraph,
    RawNode,
    Shape,
    colocated_with,
    costly_numbers,
    letters_of,
)
from driple.graph.tf.textformat import TextMessage, Value, as_message, top_level_fields
from driple.graph.tf.textvalues import data_type, decimal, number, truth

__all__ = ["raw_from_text", "raw_of_fields"]

# Letters of the longest text of a content: each byte may be written as four.
_LONGEST_WRITTEN = 4 * LONGEST_CONTENT + 2


@dataclass(slots=True)
class _Attribute:
    """Value of an attribute; one of the fields is filled, for the key that it has."""

    key: str
    shapes: tuple[Shape, ...] | None = None
    types: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()
    letters: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    text: str | None = None
    constant: Constant | None = None
    colocated: tuple[str, ...] = ()


def raw_from_text(text: str) -> RawGraph:
    """Parse a GraphDef in text format.

    Raises:
        GraphError: the text is no text format, or no GraphDef; with the line if it is known.
    """
    return raw_of_fields(top_level_fields(text))


def raw_of_fields(fields: Iterable[tuple[str, Value]]) -> RawGraph:
    """The graph of the fields of a GraphDef.

    Raises:
        GraphError: they are of another message.
    """
    graph = RawGraph()
    others: dict[str, None] = {}
    is_graph = False
    for name, value in fields:
        if name == "node":
            is_graph = True
            if len(graph.nodes) == MAX_NODES:
                raise GraphError(f"graph has over {MAX_NODES} nodes; no more are read")
            graph.nodes.append(_node(as_message(name, value)))
        elif name == "library":
            is_graph = True
            for function in as_message(name, value).messages("function"):
                body = _function(function)
                graph.functions[body.name] = body
        elif len(others) < 3:
            others[name] = None
    if not is_graph:
        holds = ", ".join(others) or "nothing"
        raise GraphError(f"text is no GraphDef: it holds {holds}, 'node {{ ... }}' was expected")
    return graph


def _node(message: TextMessage) -> RawNode:
    read = {attribute.key: attribute for attribute in map(_meaning, message.messages("attr"))}
    outputs = read.pop("_output_shapes", None)
    node = RawNode(
        name=message.string("name"),
        op=message.string("op"),
        device=message.string("device"),
        inputs=message.strings("input"),
        shapes=None if outputs is None else outputs.shapes,
    )
    types: dict[str, tuple[int, ...]] = {}
    functions: dict[str, tuple[str, ...]] = {}
    letters: dict[str, tuple[int, ...]] = {}
    attributes: dict[str, tuple[int, ...]] = {}
    texts: dict[str, str] = {}
    shapes: dict[str, tuple[Shape, ...]] = {}
    for key, attribute in read.items():
        if attribute.types:
            types[key] = attribute.types
        elif attribute.numbers:
            attributes[key] = attribute.numbers
        elif attribute.text is not None:
            if key in TEXTS:
                texts[key] = attribute.text
            else:
                node.frame = attribute.text
        elif attribute.shapes is not None:
            shapes[key] = attribute.shapes
        elif attribute.functions:
            functions[key] = attribute.functions
        elif attribute.letters:
            letters[key] = attribute.letters
        elif attribute.constant is not None:
            node.constant = attribute.constant
        elif attribute.colocated:
            node.colocated = attribute.colocated
    node.types, node.functions, node.attributes = types, functions, attributes
    node.texts, node.shape_attributes = texts, shapes
    node.numbers = costly_numbers(letters, attributes)
    return node


def _meaning(entry: TextMessage) -> _Attribute:
    """Value of an attribute, parsed once for all nodes that share it; the last of a key counts."""
    if not isinstance(entry.meaning, _Attribute):
        entry.meaning = _attribute(entry)
    return entry.meaning


def _attribute(entry: TextMessage) -> _Attribute:
    key, value = entry.string("key"), entry.message("value") or TextMessage()
    items = value.message("list") or TextMessage()
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
    return _text_attribute(key, value, items) or _data_attribute(key, value, items)


def _text_attribute(key: str, value: TextMessage, items: TextMessage) -> _Attribute | None:
    """An attribute that is a text of those that matter."""
    if key == "_class":
        return _Attribute(key, colocated=colocated_with(items.strings("s")))
    if key == "frame_name" or key in TEXTS:
        return _Attribute(key, text=value.string("s"))
    if key in LETTERS:
        return _Attribute(key, letters=letters_of(value.string("s")))
    return None


def _data_attribute(key: str, value: TextMessage, items: TextMessage) -> _Attribute:
    """An attribute that is a tensor, shapes or whole numbers."""
    tensor, shape = value.message("tensor"), value.message("shape")
    if tensor is not None:
        return _Attribute(key, constant=_constant(tensor) if key == "value" else None)
    shapes = [shape] if shape is not None else items.messages("shape")
    if shapes:
        return _Attribute(key, shapes=tuple(map(_shape, shapes)))
    whole = value.words("i")[-1:] or items.words("i")
    flags = value.words("b")[-1:] or items.words("b")
    return _Attribute(key, numbers=tuple(map(number, whole)) or tuple(map(truth, flags)))


def _constant(tensor: TextMessage) -> Constant:
    """A constant; long contents are left where they are."""
    values: list[int | float] = []
    for name, whole in VALUE_FIELDS.items():
        words = tensor.words(name)[: MAX_VALUES + 1]
        if words and not values:
            read = truth if name == "bool_val" else number if whole else decimal
            values = [read(word) for word in words]
    content = tensor.octets("tensor_content", _LONGEST_WRITTEN)
    return constant_of(
        data_type((tensor.words("dtype")[-1:] or ["0"])[0]),
        _shape(tensor.message("tensor_shape") or TextMessage()),
        values,
        content,
        is_long=bool(tensor.fields.get("tensor_content"))
        and not 0 < len(content) <= LONGEST_CONTENT,
    )


def _shape(message: TextMessage) -> Shape:
    if message.words("unknown_rank")[-1:] in (["true"], ["t"], ["True"], ["1"]):
        return None
    sizes = (dim.words("size")[-1:] for dim in message.messages("dim"))
    return tuple(number(size[0]) if size else 0 for size in sizes)


def _function(message: TextMessage) -> RawFunction:
    signature = message.message("signature") or TextMessage()
    return RawFunction(
        name=signature.string("name"),
        arguments=[item.string("name") for item in signature.messages("input_arg")],
        outputs=[item.string("name") for item in signature.messages("output_arg")],
        nodes=[_node(node) for node in message.messages("node_def")],
        returns={item.string("key"): item.string("value") for item in message.messages("ret")},
        control_returns=tuple(item.string("value") for item in message.messages("control_ret")),
    )
