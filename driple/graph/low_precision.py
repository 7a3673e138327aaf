"""Products of linear layers in fewer than 16 bits: names of precisions, and the mark of an op.

`low` among the numbers of a product is the position of its format here, from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.signature import OpSignature

__all__ = ["LOW_MARK", "LOW_PRECISIONS", "OTHER_SPELLINGS", "low_of"]

LOW_PRECISIONS: tuple[str, ...] = ("fp8", "fp8-block", "nvfp4")
"""8 bits scaled for each tensor or row, 8 bits for blocks of 128, 4 bits for blocks of 16."""
LOW_MARK = "low"
_TENSOR = "take fp8, which has one scale for each tensor or row"
_BLOCK = "take fp8-block, which has blocks of 128"
_MXFP8 = "blocks of 32 are not modelled; take fp8-block, the nearest on Blackwell"
_FOUR_BITS = "take nvfp4, the 4-bit format that is modelled"
OTHER_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("mxfp8", "mx-fp8", "fp8-mx"), _MXFP8),
        **dict.fromkeys(("mxfp4", "mx-fp4", "fp4", "float4"), _FOUR_BITS),
        **dict.fromkeys(("float8", "amp-fp8", "fp8-mixed", "bf16-fp8", "fp8-hybrid"), _TENSOR),
        **dict.fromkeys(("fp8-delayed", "fp8-current", "fp8-tensorwise", "fp8-rowwise"), _TENSOR),
        **dict.fromkeys(("fp8-blockwise", "blockwise"), _BLOCK),
        "nvfp4-mixed": _FOUR_BITS,
    }
)
"""What to take for names that frameworks have for formats in few bits, in small letters."""


def low_of(op: OpSignature) -> int:
    """Position of a product's format in `LOW_PRECISIONS` + 1; 0 of other ops."""
    return next((values[0] for name, values in op.numbers if name == LOW_MARK), 0)
