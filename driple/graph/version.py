"""Version of the reader: which numbers it makes of a graph file."""

from __future__ import annotations

__all__ = ["FIRST_READER_VERSION", "READER_VERSION"]

# Raise this by 1 when the same file gives another OpGraph than before: other nodes, edges, sizes,
# traffic, signatures or executions. Not for files that were refused before, nor for messages.
# 1: until issue 38. 2: traffic per tensor, only what one step runs, placement, inferred shapes,
# counted loops.
READER_VERSION = 2

# Version of data sets and checkpoints that do not record one.
FIRST_READER_VERSION = 1
