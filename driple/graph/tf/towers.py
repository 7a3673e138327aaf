"""Samples of an input that the kept device computes, where a graph splits them over several.

x [64, ...] --StridedSlice, Split--> [32, ...] on GPU 0, [32, ...] on GPU 1
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from driple.graph.tf.describe import DataInputs
from driple.graph.tf.raw import RawNode
from driple.graph.tf.shape_call import size_at
from driple.graph.tf.shape_rules_basic import INPUT_OPS

__all__ = ["samples_of_part"]

_SPLITS = frozenset({"StridedSlice", "Slice", "Split", "SplitV", "GatherV2", "Gather"})
_PASSES_ON = frozenset({"Identity", "Cast", "IdentityN"})


def samples_of_part(
    nodes: Sequence[RawNode], inputs: DataInputs, order: Sequence[int], kept: npt.NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Samples that the kept device computes, and samples of the inputs; None if all of them.

    Args:
        nodes: all nodes, with shapes.
        inputs: what each of them reads.
        order: positions, a node after all that it reads, but for the edges back of loops.
        kept: shape [num_nodes], bool, on the kept device.
    """
    whole: dict[int, int] = {}  # samples of the input that a node hands on
    part: dict[int, int] = {}  # the same of its splits
    parts: set[tuple[int, int]] = set()
    for i in order:
        node = nodes[i]
        first = next((size_at(shape, 0) for shape in node.shapes or () if shape), -1)
        if node.op in INPUT_OPS and first > 0:
            whole[i] = first
            continue
        source = next((one for one, _ in inputs[i] if one in whole or one in part), None)
        if source is None:
            continue
        if source in part and kept[i]:
            parts.add((part[source], whole[source]))
        if node.op in _PASSES_ON or node.op in _SPLITS:
            whole[i] = whole[source]
            if source in part:
                part[i] = part[source]
            elif node.op in _SPLITS and 0 < first < whole[source]:
                part[i] = first
            if kept[i] and i in part:
                parts.add((part[i], whole[i]))
    return max(parts, key=lambda pair: pair[0], default=None)
