"""Options of a graph file under single names, for commands that take some of them."""

from __future__ import annotations

from driple.cli.joboptions import (
    BatchSizeOption,
    InputOption,
    LoopTurnsOption,
    MaxMibOption,
    TargetOption,
)
from driple.cli.joboptions import options_of as graph_options
from driple.jobs.load import MAX_MIB
from driple.jobs.load import JobOptions as GraphOptions

__all__ = [
    "MAX_MIB",
    "BatchSizeOption",
    "GraphOptions",
    "InputOption",
    "LoopTurnsOption",
    "MaxMibOption",
    "TargetOption",
    "graph_options",
]
