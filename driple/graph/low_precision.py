"""Products of linear layers in fewer than 16 bits: names of precisions, and the mark of an op.

`low` among the numbers of a product is the position of its format here, from 1.
"""

from __future__ import annotations

from driple.graph.signature import OpSignature

__all__ = ["LOW_MARK", "LOW_PRECISIONS", "low_of"]

LOW_PRECISIONS: tuple[str, ...] = ("fp8", "fp8-block", "nvfp4")
"""8 bits scaled for each tensor or row, 8 bits for blocks of 128, 4 bits for blocks of 16."""
LOW_MARK = "low"


def low_of(op: OpSignature) -> int:
    """Position of a product's format in `LOW_PRECISIONS` + 1; 0 of other ops."""
    return next((values[0] for name, values in op.numbers if name == LOW_MARK), 0)
