"""READ: graph files -> OpGraph, without TensorFlow; nothing is executed."""

from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps
from driple.graph.reader import graph_from_graphdef_bytes, graph_from_text, read_graph

__all__ = [
    "OpGraph",
    "ReadReport",
    "RemoteOps",
    "graph_from_graphdef_bytes",
    "graph_from_text",
    "read_graph",
]
