"""What of a model devices can share out: heads, layers and experts.

OpGraph -> Splittable
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.step.blocks import block_name
from driple.step.shard_shapes import ATTENTIONS, HEADS
from driple.step.step_flow import StepFlow

__all__ = ["Splittable", "splittable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Splittable:
    """Counts that degrees of parallelism must divide.

    Attributes:
        heads: largest number that divides the heads of every attention; 0 without attention as one
            kernel.
        layers: numbered blocks of layers.
        experts: largest number that divides the experts of every layer that has some; 0 without.
    """

    heads: int = 0
    layers: int = 0
    experts: int = 0


def splittable(graph: OpGraph) -> Splittable:
    """What can be shared out of a model; nothing of a graph without phases, or with adapters."""
    try:
        flow = StepFlow(graph, "")
    except GraphError:
        return Splittable()
    heads = [
        op.inputs[0].shape[HEADS]
        for op in graph.signatures
        if op.kind in ATTENTIONS and op.inputs[0].shape is not None
    ]
    blocks = {block_name(name) for name in graph.parameters.names} - {""}
    return Splittable(heads=gcd(*heads), layers=len(blocks), experts=gcd(*flow.experts.values()))
