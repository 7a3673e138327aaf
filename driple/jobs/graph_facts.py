"""Precision that a graph shows by itself: the number format of its products."""

from __future__ import annotations

from collections import Counter
from math import prod

from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of

__all__ = ["precision_of"]

_FORMATS = {
    NUMBER_OF["DT_FLOAT"]: "fp32",
    NUMBER_OF["DT_HALF"]: "fp16",
    NUMBER_OF["DT_BFLOAT16"]: "bf16",
    NUMBER_OF["DT_DOUBLE"]: "fp64",
}


def precision_of(graph: OpGraph) -> str:
    """Number format of most products of the graph, by elements of their outputs; empty if none."""
    weight: Counter[str] = Counter()
    for position, number in Counter(graph.signature_of.tolist()).items():
        signature = graph.signatures[position]
        if family_of(signature.kind) not in PRODUCT_FAMILIES or not signature.outputs:
            continue
        output = signature.outputs[0]
        if output.dtype in _FORMATS and output.shape is not None:
            weight[_FORMATS[output.dtype]] += number * prod(max(n, 1) for n in output.shape)
    return weight.most_common(1)[0][0] if weight else ""
