"""Graphs as they stand in a file, before anything is decided about them.

text or binary reader -> RawGraph (nodes, function library) -> functions -> select -> OpGraph
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "EQUATION",
    "MAX_NODES",
    "NUMBERS",
    "RawFunction",
    "RawGraph",
    "RawNode",
    "Shape",
    "letters_of",
]

# A hundred times the largest graph of the paper; beyond it a file is refused.
MAX_NODES = 2_000_000

# Whole-number attributes that are kept: the window of a pooling, of a local normalisation.
NUMBERS = frozenset({"ksize", "depth_radius"})
# The one text that matters, the indices of an Einsum; kept as numbers too, those of its letters.
EQUATION = "equation"
_LONGEST_EQUATION = 200

# Sizes of the dimensions, -1 where unknown; None for an unknown rank.
Shape = tuple[int, ...] | None


def letters_of(equation: str) -> tuple[int, ...]:
    """Numbers of an equation's letters; empty for one that no op has."""
    return tuple(map(ord, equation)) if len(equation) <= _LONGEST_EQUATION else ()


@dataclass(slots=True)
class RawNode:
    """One NodeDef.

    Attributes:
        name: name of the node.
        op: op type.
        device: device string; empty if it names none.
        inputs: `node`, `node:1`, or `^node` for control inputs.
        shapes: shape of each output (`_output_shapes`); None if the node does not tell.
        types: dtype attributes by name; numbers of TensorFlow's DataType.
        functions: names of the functions it calls, by attribute name.
        numbers: whole-number attributes that decide what an op costs (`ksize`), the letters of an
            `equation`, and the `value` of a scalar constant.
        frame: the while-loop that an Enter belongs to.
    """

    name: str
    op: str
    device: str = ""
    inputs: list[str] = field(default_factory=list)
    shapes: tuple[Shape, ...] | None = None
    types: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    frame: str = ""


@dataclass(slots=True)
class RawFunction:
    """One FunctionDef.

    Attributes:
        name: name of the function.
        arguments: names of its inputs, in order.
        outputs: names of its outputs, in order.
        nodes: its body.
        returns: which tensor of the body each output is.
    """

    name: str
    arguments: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list[RawNode] = field(default_factory=list)
    returns: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class RawGraph:
    """A GraphDef: its nodes, and the functions they may call."""

    nodes: list[RawNode] = field(default_factory=list)
    functions: dict[str, RawFunction] = field(default_factory=dict)
