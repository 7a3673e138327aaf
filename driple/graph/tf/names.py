"""Names that no graph of TensorFlow has: with control characters, which a terminal would obey."""

from __future__ import annotations

import re
from collections.abc import Iterator

from driple.errors import GraphError
from driple.graph.tf.raw import RawGraph, RawNode

__all__ = ["check_names"]

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def check_names(graph: RawGraph) -> None:
    """Refuse control characters in names of nodes, ops, devices and functions.

    Raises:
        GraphError: there are some.
    """
    for name in _names(graph):
        if not name.isprintable() and _CONTROLS.search(name):
            raise GraphError(
                f"name {name[:80]!r} has control characters, which no name in a TensorFlow graph "
                "has; the file is corrupt: write the graph again (tf.io.write_graph)"
            )


def _names(graph: RawGraph) -> Iterator[str]:
    for node in graph.nodes:
        yield from _names_of(node)
    for function in graph.functions.values():
        yield function.name
        for node in function.nodes:
            yield from _names_of(node)


def _names_of(node: RawNode) -> Iterator[str]:
    yield from (node.name, node.op, node.device, node.frame)
    for called in node.functions.values():
        yield from called
