"""Graphs as they stand in a file, before anything is decided about them.

text or binary reader -> RawGraph (nodes, function library) -> functions -> select -> OpGraph
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

__all__ = [
    "LETTERS",
    "MAX_NODES",
    "MAX_VALUES",
    "NUMBERS",
    "TEXTS",
    "Constant",
    "RawFunction",
    "RawGraph",
    "RawNode",
    "Shape",
    "colocated_with",
    "costly_numbers",
    "letters_of",
]

# A hundred times the largest graph of the paper; beyond it a file is refused.
MAX_NODES = 2_000_000

# Whole-number attributes (a bool counts as 0 or 1) that decide what an op costs: they become part
# of its signature.
NUMBERS = frozenset(
    {
        "ksize", "depth_radius", "strides", "dilations", "rates", "explicit_paddings",
        "transpose_a", "transpose_b", "adj_x", "adj_y", "groups", "block_size", "num_proj",
        "use_peephole", "is_training", "num_bins", "max_output_size",
    }
)  # fmt: skip
# Texts that decide what an op costs, the indices of an Einsum and the cell of a CudnnRNN; kept in
# `RawNode.numbers` too, as the numbers of their letters.
LETTERS = frozenset({"equation", "rnn_mode", "direction", "input_mode"})
# Texts that shapes depend on, or that join two nodes.
TEXTS = frozenset({"padding", "data_format", "shared_name", "container", "filter_format"})
_LONGEST_TEXT = 200
# Values of a constant are kept up to this number: sizes, axes, permutations, lengths of loops.
MAX_VALUES = 1024

# Sizes of the dimensions, -1 where unknown; None for an unknown rank.
Shape = tuple[int, ...] | None


def letters_of(text: str) -> tuple[int, ...]:
    """Numbers of a text's letters; empty for one that is longer than any op has."""
    return tuple(map(ord, text)) if len(text) <= _LONGEST_TEXT else ()


def costly_numbers(
    letters: Mapping[str, tuple[int, ...]], attributes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """`RawNode.numbers`: letters, and those attributes that decide a cost; zeros say nothing."""
    numbers = {name: values for name, values in letters.items() if any(values)}
    for name, values in attributes.items():
        if name in NUMBERS and any(values):
            numbers[name] = values
    return numbers


def colocated_with(classes: Iterable[str]) -> tuple[str, ...]:
    """The nodes that a `_class` attribute names: `loc:@w` is w."""
    mark = "loc:@"
    return tuple(text.removeprefix(mark) for text in classes if text.startswith(mark))


@dataclass(frozen=True, slots=True)
class Constant:
    """The tensor of a Const.

    Attributes:
        dtype: number of TensorFlow's DataType.
        shape: its shape.
        values: all elements, the last dimension first to change; None if there are over
            `MAX_VALUES`, or they are no numbers.
    """

    dtype: int
    shape: Shape
    values: tuple[int | float, ...] | None


@dataclass(slots=True)
class RawNode:
    """One NodeDef.

    Attributes:
        name: name of the node.
        op: op type.
        device: device string; empty if it names none.
        inputs: `node`, `node:1`, or `^node` for control inputs.
        shapes: shape of each output (`_output_shapes`); None if the node has none.
        types: dtype attributes by name; numbers of TensorFlow's DataType.
        functions: names of the functions it calls, by attribute name.
        numbers: attributes that decide what an op costs (`NUMBERS`, `LETTERS`), without zeros.
        attributes: all whole-number attributes by name, a bool as 0 or 1; zeros are kept.
        texts: text attributes that shapes depend on (`TEXTS`).
        shape_attributes: attributes that are shapes, such as `shape` of a variable or placeholder.
        constant: the tensor of a Const.
        colocated: names of the nodes on whose device it must run (`_class`, without `loc:@`).
        frame: the while-loop that an Enter belongs to.
        loop: name of the While node whose function this node was inlined from; empty outside.
        carried: data inputs that are arguments which a While changes in every turn, by position:
            name of the While, number of the argument.
        starts: data inputs of a While whose functions were inlined.
    """

    name: str
    op: str
    device: str = ""
    inputs: list[str] = field(default_factory=list)
    shapes: tuple[Shape, ...] | None = None
    types: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    attributes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    shape_attributes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)
    constant: Constant | None = None
    colocated: tuple[str, ...] = ()
    frame: str = ""
    loop: str = ""
    carried: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    starts: tuple[str, ...] = ()


@dataclass(slots=True)
class RawFunction:
    """One FunctionDef.

    Attributes:
        name: name of the function.
        arguments: names of its inputs, in order.
        outputs: names of its outputs, in order.
        nodes: its body.
        returns: which tensor of the body each output is.
        control_returns: nodes of the body that run though nobody reads them.
    """

    name: str
    arguments: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    nodes: list[RawNode] = field(default_factory=list)
    returns: dict[str, str] = field(default_factory=dict)
    control_returns: tuple[str, ...] = ()


@dataclass(slots=True)
class RawGraph:
    """A GraphDef: its nodes, and the functions they may call.

    Attributes:
        nodes: its nodes.
        functions: functions by name.
        train_ops: names of the train ops that a MetaGraphDef lists in its collection `train_op`.
        signatures: tensors that each signature of a SavedModel gives, by its name.
    """

    nodes: list[RawNode] = field(default_factory=list)
    functions: dict[str, RawFunction] = field(default_factory=dict)
    train_ops: tuple[str, ...] = ()
    signatures: dict[str, tuple[str, ...]] = field(default_factory=dict)
