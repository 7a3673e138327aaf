"""The fast path of the text reader: the layout that protobuf's own printer writes.

    text -- split at lines "}" --> top-level blocks -- split at "  attr {" --> header, attributes

Cutting is done by str.split on the indentation, which is sound because a string never holds a raw
line break. Attribute blocks repeat thousands of times in a graph, so each different block is
checked and parsed once. Whatever does not look exactly as printed raises NotCanonicalError, and the
general reader takes over.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from driple.errors import GraphError
from driple.graph.raw import MAX_NODES, RawGraph, RawNode, Shape
from driple.graph.textvalues import data_type, number, unescape

__all__ = ["NotCanonicalError", "raw_from_canonical"]


class NotCanonicalError(Exception):
    """The text is not laid out as protobuf prints it; never leaves the text reader."""


_NODE_START = "node {\n"
_ATTR_START = "\n  attr {\n"
# A node's own fields: name, op, input, device; each on a line of its own.
_FIELD = re.compile(r'  (name|op|input|device): "((?:[^"\\\n]++|\\[^\n])*+)"')
_ATTR = re.compile(
    r'    key: "((?:[^"\\\n]++|\\[^\n])*+)"\n'
    r"(?:    value \{\n((?:      [^\n]*\n)*+)    \}\n)?  \}\n?"
)
# What a line inside a value may be: a scalar field, the start of a message, or an end.
_LINES = re.compile(r'(?: {6,}(?:\w+: (?:"(?:[^"\\\n]++|\\[^\n])*+"|[\w.+\-]+)|\w+ \{|\})\n)*+')
_BRACES = re.compile(r"(?: \{|^ *\})$", re.MULTILINE)
_TYPE = re.compile(r"      type: (\w+)\n")
_TYPE_LIST = re.compile(r"      list \{\n((?:        type: \w+\n)+)      \}\n")
_NAME = r'name: "((?:[^"\\\n]|\\[^\n])*+)"\n'
_FUNC = re.compile(
    r"      func \{\n        "
    + _NAME
    + r"(?:        attr \{\n(?: {10,}[^\n]*\n)*+        \}\n)*+      \}\n"
)
_FUNC_LIST_NAME = re.compile(r"        func \{\n          " + _NAME + r"        \}\n")
_FUNC_LIST = re.compile(r"      list \{\n(?:" + _FUNC_LIST_NAME.pattern + r")++      \}\n")
# Anything else that may give a type or call a function is left to the general reader.
_TYPE_OR_FUNC = re.compile(r"^ *(?:type:|func \{)", re.MULTILINE)
_SHAPES = re.compile(
    r"      list \{\n((?:        shape \{\n(?:          dim \{\n            size: -?\d+\n"
    r"          \}\n|          dim \{\n          \}\n|          unknown_rank: true\n)*"
    r"        \}\n)*)      \}\n"
)


@dataclass(slots=True)
class _Attribute:
    """What one attribute block says: shapes of the outputs, data types, or function names."""

    key: str
    shapes: tuple[Shape, ...] | None = None
    types: tuple[int, ...] = ()
    functions: tuple[str, ...] = ()


def raw_from_canonical(text: str) -> tuple[RawGraph, str]:
    """Parse the nodes of a GraphDef as protobuf prints it.

    Returns:
        The graph without its functions, and the text of its function library, if it has one.

    Raises:
        NotCanonicalError: the layout is another one.
        GraphError: too many nodes, or a string that is no UTF-8.
    """
    blocks = text.split("\n}\n")
    rest = blocks.pop()
    if rest.strip():
        # The last block of a text without a final line break.
        if not rest.endswith("\n}"):
            raise NotCanonicalError
        blocks.append(rest.removesuffix("\n}"))
    known: dict[str, _Attribute] = {}
    graph = RawGraph()
    libraries: list[str] = []
    for block in blocks:
        if block.startswith(_NODE_START):
            graph.nodes.append(_node(block, known))
        elif block.startswith("versions {\n"):
            _check_lines(block.removeprefix("versions {\n").replace("  ", "      ") + "\n")
        elif block.startswith("library {\n"):
            libraries.append(block + "\n}\n")
        else:
            raise NotCanonicalError
    if not graph.nodes:
        raise NotCanonicalError
    if len(graph.nodes) > MAX_NODES:
        raise GraphError(f"graph has {len(graph.nodes)} nodes; at most {MAX_NODES} are read")
    return graph, "".join(libraries)


def _node(block: str, known: dict[str, _Attribute]) -> RawNode:
    header, *attributes = block.split(_ATTR_START)
    node = RawNode(name="", op="")
    for line in header[len(_NODE_START) :].split("\n"):
        if not line:
            continue
        found = _FIELD.fullmatch(line)
        if found is None:
            raise NotCanonicalError
        kind, value = found.groups()
        value = unescape(value) if "\\" in value else value
        if kind == "input":
            node.inputs.append(value)
        elif getattr(node, kind):
            raise NotCanonicalError
        else:
            setattr(node, kind, value)
    types: dict[str, tuple[int, ...]] = {}
    functions: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for text in attributes:
        attribute = known.get(text)
        if attribute is None:
            attribute = known[text] = _attribute(text)
        if attribute.key in seen:
            raise NotCanonicalError
        seen.add(attribute.key)
        if attribute.shapes is not None:
            node.shapes = attribute.shapes
        elif attribute.types:
            types[attribute.key] = attribute.types
        elif attribute.functions:
            functions[attribute.key] = attribute.functions
    node.types, node.functions = types, functions
    return node


def _attribute(text: str) -> _Attribute:
    # The split that cut the blocks took the line break of the last attribute.
    found = _ATTR.fullmatch(text)
    if found is None:
        raise NotCanonicalError
    key, value = unescape(found[1]), found[2] or ""
    if key == "_output_shapes":
        return _Attribute(key=key, shapes=_shapes(value))
    _check_lines(value)
    kind = _TYPE.fullmatch(value)
    if kind is not None:
        number_of = data_type(kind[1])
        return _Attribute(key=key, types=(number_of,) if number_of else ())
    listed = _TYPE_LIST.fullmatch(value)
    if listed is not None:
        words = listed[1].split()[1::2]
        types = tuple(data_type(word) for word in words)
        return _Attribute(key=key, types=types if any(types) else ())
    called = _FUNC.fullmatch(value)
    if called is not None:
        return _Attribute(key=key, functions=(unescape(called[1]),))
    if _FUNC_LIST.fullmatch(value) is not None:
        names = tuple(unescape(name) for name in _FUNC_LIST_NAME.findall(value))
        return _Attribute(key=key, functions=names if any(names) else ())
    if _TYPE_OR_FUNC.search(value) is not None:
        raise NotCanonicalError
    return _Attribute(key=key)


def _check_lines(value: str) -> None:
    """Refuse lines that are no text format, and messages that do not close."""
    if _LINES.fullmatch(value) is None:
        raise NotCanonicalError
    depth = 0
    for brace in _BRACES.findall(value):
        depth += 1 if brace == " {" else -1
        if depth < 0:
            raise NotCanonicalError
    if depth:
        raise NotCanonicalError


def _shapes(value: str) -> tuple[Shape, ...]:
    found = _SHAPES.fullmatch(value)
    if found is None:
        if not value or value == "      list {\n      }\n":
            return ()
        raise NotCanonicalError
    return tuple(_shape(part) for part in found[1].split("        shape {\n")[1:])


def _shape(part: str) -> Shape:
    if "unknown_rank" in part:
        return None
    return tuple(
        number(dim.split()[1]) if "size" in dim else 0 for dim in part.split("dim {\n")[1:]
    )
