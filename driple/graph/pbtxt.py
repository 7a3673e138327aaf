"""GraphDef in protobuf's text format -> RawGraph, fast and bounded, without recursion.

    text --canonical layout?--> blocks cut by their indentation      (canonical.py, fast)
         --anything else------> tokens -> tree -> RawGraph           (this file, general)

The fast path takes only what protobuf's own printer writes, line by line, and hands over to the
general one as soon as anything looks different; both give the same graph (tested against each
other and against protobuf).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from driple.errors import GraphError
from driple.graph.canonical import NotCanonicalError, raw_from_canonical
from driple.graph.raw import MAX_NODES, RawFunction, RawGraph, RawNode, Shape
from driple.graph.textvalues import data_type, number, unescape

__all__ = ["MAX_DEPTH", "raw_from_general_text", "raw_from_text"]

# Protobuf's own limit; a GraphDef of TensorFlow is at most a dozen deep.
MAX_DEPTH = 100

_TOKEN = re.compile(
    r"""\s+ | \#[^\n]*
    | (?P<string> "(?:[^"\\\n]++|\\.)*+" | '(?:[^'\\\n]++|\\.)*+' )
    | (?P<word> [A-Za-z0-9_.+\-]+ )
    | (?P<mark> [{}<>:\[\],;/] )""",
    re.VERBOSE,
)
_CLOSING = {"{": "}", "<": ">"}
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def raw_from_text(text: str) -> RawGraph:
    """Parse a GraphDef in text format.

    Raises:
        GraphError: the text is no text format, or no GraphDef; with the line where one can be told.
    """
    if "\r\n" in text:  # a string never holds a raw line break, so this changes no value
        text = text.replace("\r\n", "\n")
    try:
        graph, library = raw_from_canonical(text)
    except NotCanonicalError:
        return raw_from_general_text(text)
    if library:
        graph.functions = raw_from_general_text(library).functions
    return graph


@dataclass(slots=True)
class _Message:
    """A message: values of each field in order; a value is a word, a string or a message."""

    fields: dict[str, list[Any]] = field(default_factory=dict)

    def add(self, name: str, value: Any) -> None:
        """One more value of a field."""
        self.fields.setdefault(name, []).append(value)

    def messages(self, name: str) -> Iterator[_Message]:
        """All values of a field that holds messages."""
        for value in self.fields.get(name, ()):
            if not isinstance(value, _Message):
                raise GraphError(f"field '{name}' holds {value!r}, a message {{...}} was expected")
            yield value

    def message(self, name: str) -> _Message | None:
        """All values of a message field, merged: text may give its parts one by one."""
        parts = list(self.messages(name))
        if len(parts) < 2:
            return parts[0] if parts else None
        merged = _Message()
        for part in parts:
            for key, values in part.fields.items():
                merged.fields.setdefault(key, []).extend(values)
        return merged

    def strings(self, name: str) -> list[str]:
        """All values of a string field."""
        values = self.fields.get(name, [])
        for value in values:
            if not isinstance(value, _String):
                raise GraphError(f"field '{name}' holds {value!r}, a quoted string was expected")
        return [value.decoded() for value in values]

    def string(self, name: str) -> str:
        """The last value of a string field; empty if there is none."""
        values = self.strings(name)
        return values[-1] if values else ""

    def words(self, name: str) -> list[str]:
        """All values of a number or name field."""
        values = self.fields.get(name, [])
        for value in values:
            if not isinstance(value, str):
                raise GraphError(f"field '{name}' holds no number or name")
        return values


@dataclass(slots=True)
class _String:
    """A quoted string, in pieces, as written."""

    pieces: list[str]

    def decoded(self) -> str:
        """The text it stands for."""
        return "".join(unescape(piece[1:-1]) for piece in self.pieces)


def raw_from_general_text(text: str) -> RawGraph:
    """Parse text of any layout that text format allows.

    Raises:
        GraphError: as for `raw_from_text`.
    """
    tree = _parse(text)
    if "node" not in tree.fields and "library" not in tree.fields:
        known = ", ".join(list(tree.fields)[:3]) or "nothing"
        raise GraphError(f"text is no GraphDef: it holds {known}, 'node {{ ... }}' was expected")
    graph = RawGraph(nodes=[_node(node) for node in tree.messages("node")])
    for library in tree.messages("library"):
        for function in library.messages("function"):
            made = _function(function)
            graph.functions[made.name] = made
    return graph


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """(kind, token, position); raises GraphError at what is no token."""
    position, end, match = 0, len(text), _TOKEN.match
    while position < end:
        found = match(text, position)
        if found is None:
            raise _error(text, position, f"found {text[position : position + 10]!r}")
        if found.lastgroup is not None:
            yield found.lastgroup, found.group(), position
        position = found.end()


def _error(text: str, position: int, what: str) -> GraphError:
    line = text.count("\n", 0, position) + 1
    return GraphError(
        f"line {line}: {what}, protobuf text format was expected; "
        "write the graph again (tf.io.write_graph with as_text=True)"
    )


class _Parser:
    """A stack of open messages; no recursion."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens = text, _tokens(text)
        self.ahead: tuple[str, str, int] | None = next(self.tokens, None)

    def take(self) -> tuple[str, str, int]:
        """The next token."""
        token = self.ahead
        if token is None:
            raise _error(self.text, len(self.text), "text ends in the middle")
        self.ahead = next(self.tokens, None)
        return token

    def next_is(self, *marks: str) -> bool:
        """Whether the next token is one of these marks."""
        return self.ahead is not None and self.ahead[0] == "mark" and self.ahead[1] in marks

    def skip(self, *marks: str) -> bool:
        """Take the next token if it is one of these marks."""
        if not self.next_is(*marks):
            return False
        self.take()
        return True

    def fail(self, token: tuple[str, str, int]) -> GraphError:
        """An error at a token."""
        return _error(self.text, token[2], f"found {token[1][:20]!r}")


def _parse(text: str) -> _Message:
    root = _Message()
    parser = _Parser(text)
    # Open messages: the message, its closing mark, and (field, in list) of the parent.
    stack: list[tuple[_Message, str, str | None]] = [(root, "", None)]
    while True:
        message, closing, list_field = stack[-1]
        if parser.ahead is None:
            if len(stack) > 1:
                raise _error(text, len(text), f"text ends inside {len(stack) - 1} open message(s)")
            return root
        if closing and parser.skip(closing):
            stack.pop()
            if list_field is not None and not _list_ends(parser):
                _open(parser, stack, stack[-1][0], list_field, in_list=True)
            else:
                parser.skip(",", ";")
            continue
        name = _field_name(parser)
        has_colon = parser.skip(":")
        if parser.next_is("{", "<"):
            _open(parser, stack, message, name, in_list=False)
        elif parser.skip("["):
            if parser.next_is("{", "<"):
                _open(parser, stack, message, name, in_list=True)
            else:
                _scalar_list(parser, message, name)
        elif has_colon:
            message.add(name, _scalar(parser))
            parser.skip(",", ";")
        else:
            raise parser.fail(parser.take())


def _open(
    parser: _Parser,
    stack: list[tuple[_Message, str, str | None]],
    parent: _Message,
    name: str,
    *,
    in_list: bool,
) -> None:
    """Open a nested message of `parent`."""
    token = parser.take()
    if token[1] not in _CLOSING:
        raise parser.fail(token)
    if len(stack) > MAX_DEPTH:
        raise _error(parser.text, token[2], f"messages are nested over {MAX_DEPTH} deep")
    child = _Message()
    parent.add(name, child)
    if name == "node" and len(parent.fields[name]) > MAX_NODES:
        raise GraphError(f"graph has over {MAX_NODES} nodes; no more are read")
    stack.append((child, _CLOSING[token[1]], name if in_list else None))


def _list_ends(parser: _Parser) -> bool:
    """After a message in a list: whether the list ends here, else another follows."""
    if parser.skip("]"):
        return True
    if not parser.skip(","):
        raise parser.fail(parser.take())
    return False


def _field_name(parser: _Parser) -> str:
    token = parser.take()
    if token[1] == "[":  # an extension or Any: [some.name/Type]
        parts = []
        while not parser.skip("]"):
            parts.append(parser.take()[1])
        return f"[{''.join(parts)}]"
    if token[0] != "word" or not _IDENTIFIER.fullmatch(token[1]):
        raise parser.fail(token)
    return token[1]


def _scalar(parser: _Parser) -> str | _String:
    token = parser.take()
    if token[0] == "word":
        return token[1]
    if token[0] != "string":
        raise parser.fail(token)
    pieces = [token[1]]
    while parser.ahead is not None and parser.ahead[0] == "string":
        pieces.append(parser.take()[1])
    return _String(pieces)


def _scalar_list(parser: _Parser, message: _Message, name: str) -> None:
    """Values up to the closing bracket, which may follow at once."""
    while not parser.skip("]"):
        message.add(name, _scalar(parser))
        if not parser.skip(",") and not parser.next_is("]"):
            raise parser.fail(parser.take())
    parser.skip(",", ";")


def _node(message: _Message) -> RawNode:
    node = RawNode(
        name=message.string("name"),
        op=message.string("op"),
        device=message.string("device"),
        inputs=message.strings("input"),
    )
    types: dict[str, tuple[int, ...]] = {}
    functions: dict[str, tuple[str, ...]] = {}
    for entry in message.messages("attr"):
        key, value = entry.string("key"), entry.message("value") or _Message()
        types.pop(key, None)
        functions.pop(key, None)
        items = value.message("list") or _Message()
        if key == "_output_shapes":
            node.shapes = tuple(_shape(shape) for shape in items.messages("shape"))
            continue
        found = [data_type(word) for word in (value.words("type")[-1:] or items.words("type"))]
        called = [item.string("name") for item in (value.messages("func"))]
        called = called or [item.string("name") for item in items.messages("func")]
        if any(found):
            types[key] = tuple(found)
        elif any(called):
            functions[key] = tuple(called)
    node.types, node.functions = types, functions
    return node


def _shape(message: _Message) -> Shape:
    if message.words("unknown_rank")[-1:] in (["true"], ["t"], ["True"], ["1"]):
        return None
    sizes = (dim.words("size")[-1:] for dim in message.messages("dim"))
    return tuple(number(size[0]) if size else 0 for size in sizes)


def _function(message: _Message) -> RawFunction:
    signature = message.message("signature") or _Message()
    return RawFunction(
        name=signature.string("name"),
        arguments=[item.string("name") for item in signature.messages("input_arg")],
        outputs=[item.string("name") for item in signature.messages("output_arg")],
        nodes=[_node(node) for node in message.messages("node_def")],
        returns={item.string("key"): item.string("value") for item in message.messages("ret")},
    )
