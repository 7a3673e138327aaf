"""READ: graph files -> OpGraph, without TensorFlow; nothing is executed."""

from driple.graph.opgraph import OpGraph, ReadReport, RemoteOps, require_training
from driple.graph.options import ReadOptions
from driple.graph.tf.reader import (
    graph_from_file_bytes,
    graph_from_graphdef_bytes,
    graph_from_text,
    read_graph,
)
from driple.graph.version import READER_VERSION

__all__ = [
    "READER_VERSION",
    "OpGraph",
    "ReadOptions",
    "ReadReport",
    "RemoteOps",
    "graph_from_file_bytes",
    "graph_from_graphdef_bytes",
    "graph_from_text",
    "read_graph",
    "require_training",
]
