"""Argument of a shape function: one node, with the shapes and known values of its inputs.

A `Value` is a small tensor that is known before the graph runs; an element that depends on an
unknown dimension is None. A `Holder` is what a handle leads to: the shape of a variable, of the
elements of a TensorArray, a list or a stack, or of the components of a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod

from driple.errors import GraphError
from driple.graph.tf.raw import RawNode, Shape

__all__ = [
    "LARGEST_SIZE", "MAX_RANK", "RULES", "Holder", "Key", "OpCall", "ShapeRule", "Tables", "Value",
    "broadcast", "is_known", "merged", "num_elements", "refined", "rule", "size_at", "union",
]  # fmt: skip

# A node's position and the number of one of its outputs.
Key = tuple[int, int]
# Shape, and the elements with the last dimension first to change.
Value = tuple[tuple[int, ...], tuple[int | float | None, ...]]


@dataclass(slots=True, eq=False)
class Holder:
    """Target of a handle.

    Attributes:
        shapes: of a variable, an element, or each component; they become known while the graph is
            walked through.
        length: number of elements of a list or an array; None if unknown.
        was_unknown: whether a reader asked before a shape was known.
        learned_late: whether a shape became known after that.
        written: value of what each node puts on a list or stack, by its position; None if unknown.
        kinds: how many nodes write each value.
    """

    shapes: list[Shape] = field(default_factory=lambda: [None])
    length: int | None = None
    was_unknown: bool = False
    learned_late: bool = False
    written: dict[int, Value | None] = field(default_factory=dict)
    kinds: dict[Value | None, int] = field(default_factory=dict)

    def read(self, component: int = 0) -> Shape:
        """Shape of a component, as far as it is known by now."""
        shape = self.shapes[component] if component < len(self.shapes) else None
        if shape is None or -1 in shape:
            self.was_unknown = True
        return shape

    def learn(self, shape: Shape, component: int = 0) -> None:
        """Refine a component by what is written to it."""
        while component >= len(self.shapes):
            self.shapes.append(None)
        known = self.shapes[component]
        better, _ = refined(known, shape)
        if better != known:
            self.shapes[component] = better
            self.learned_late |= self.was_unknown

    def write(self, node: int, value: Value | None) -> None:
        """Note the value that a node writes, the same in every turn of its loop."""
        known = self.written.get(node)
        if node in self.written:
            if known == value:
                return
            self.kinds[known] -= 1
            if not self.kinds[known]:
                del self.kinds[known]
        self.written[node] = value
        self.kinds[value] = self.kinds.get(value, 0) + 1
        # Who asked before may have had the value of other writers alone.
        self.learned_late |= self.was_unknown and self.kinds[value] == 1

    @property
    def value(self) -> Value | None:
        """The value of every element, if all nodes write the same."""
        self.was_unknown = True
        return next(iter(self.kinds)) if len(self.kinds) == 1 else None


@dataclass(slots=True)
class Tables:
    """Known shapes and values of the tensors of a graph so far.

    Attributes:
        nodes: all nodes.
        inputs: what each of them reads.
        shapes: shapes of all outputs of a node; None before the node is reached.
        values: small tensors that are known.
        holders: what handles lead to.
        created: the holder that a node creates, kept when the graph is walked through again.
        num_outputs: outputs of the ops whose number of outputs is an attribute.
        num_folded: elements of all values.
        mirrors: nodes by op type and the tensor that they read at one input; see `OpCall.readers`.
    """

    nodes: Sequence[RawNode]
    inputs: Sequence[Sequence[Key]]
    shapes: list[tuple[Shape, ...] | None]
    values: dict[Key, Value] = field(default_factory=dict)
    holders: dict[Key, Holder] = field(default_factory=dict)
    created: dict[object, Holder] = field(default_factory=dict)
    mirrors: dict[tuple[str, int], dict[Key, list[int]]] = field(default_factory=dict)
    num_outputs: int = 0
    num_folded: int = 0


class OpCall:
    """One node, as its shape function sees it."""

    __slots__ = ("at", "node", "reads", "shapes", "tables")

    def __init__(self, tables: Tables, at: int) -> None:
        self.tables = tables
        self.at = at
        self.node = tables.nodes[at]
        self.reads = tables.inputs[at]
        known = tables.shapes
        shapes: list[Shape] = []
        for source, slot in self.reads:
            there = known[source]
            shapes.append(there[slot] if there is not None and slot < len(there) else None)
        self.shapes = shapes

    def shape(self, number: int) -> Shape:
        """Shape of an input; None if unknown, or if there is no such input."""
        return self.shapes[number] if -len(self.shapes) <= number < len(self.shapes) else None

    def value(self, number: int) -> Value | None:
        """Value of an input; None if unknown, or if a loop changes it in every turn."""
        if not -len(self.reads) <= number < len(self.reads):
            return None
        if self.node.carried and number % len(self.reads) in self.node.carried:
            return None
        return self.tables.values.get(self.reads[number])

    def sizes(self, number: int) -> Shape:
        """A shape that is given as a tensor, -1 where unknown; None for an unknown rank."""
        value = self.value(number)
        if value is not None:
            return tuple(-1 if n is None else _size(n) for n in value[1])
        shape = self.shape(number)
        if shape is not None and len(shape) == 1 and 0 <= shape[0] <= MAX_RANK:
            return (-1,) * shape[0]
        return None

    def whole(self, number: int) -> tuple[int, ...] | None:
        """All elements of a whole-number input; None unless every one is known."""
        value = self.value(number)
        if value is None:
            return None
        known = tuple(n for n in value[1] if n is not None and isfinite(n))
        return tuple(map(int, known)) if len(known) == len(value[1]) else None

    def scalar(self, number: int) -> int | None:
        """The number that an input is."""
        values = self.whole(number)
        return values[0] if values is not None and len(values) == 1 else None

    def number(self, name: str, default: int = 0) -> int:
        """A whole-number attribute."""
        values = self.node.attributes.get(name)
        return values[0] if values else default

    def count(self, name: str, default: int = 1) -> int:
        """Number of outputs of an op, by an attribute.

        Raises:
            GraphError: more than any graph has.
        """
        count = max(0, self.number(name, default))
        self.tables.num_outputs += count
        if self.tables.num_outputs > _MOST_OUTPUTS:
            raise GraphError(
                f"node '{self.node.name[:80]}' has {count} outputs, or the graph over "
                f"{_MOST_OUTPUTS}; the file is corrupt"
            )
        return count

    def numbers(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return self.node.attributes.get(name, ())

    def text(self, name: str, default: str = "") -> str:
        """A text attribute."""
        return self.node.texts.get(name, default)

    def listed(self, name: str) -> tuple[Shape, ...]:
        """An attribute that is a shape or several."""
        return self.node.shape_attributes.get(name, ())

    def num_types(self, name: str) -> int:
        """Number of tensors that a list attribute of types stands for."""
        return len(self.node.types.get(name, ()))

    def holder(self, number: int) -> Holder | None:
        """Target of the handle at an input."""
        if not -len(self.reads) <= number < len(self.reads):
            return None
        return self.tables.holders.get(self.reads[number])

    def create(self, key: object = None, *, output: int = 0) -> Holder:
        """The holder that this node creates, or all nodes with the same key share."""
        holder = self.tables.created.setdefault(self.at if key is None else key, Holder())
        self.tables.holders[self.at, output] = holder
        return holder

    def hand_on(self, number: int, *outputs: int) -> None:
        """Let the handle at an input be that of outputs too."""
        holder = self.holder(number)
        if holder is not None:
            for output in outputs:
                self.tables.holders[self.at, output] = holder

    def readers(self, op: str, number: int, tensor: Key) -> Sequence[int]:
        """Nodes of an op type that read a tensor at one of their inputs."""
        index = self.tables.mirrors.get((op, number))
        if index is None:
            index = self.tables.mirrors[op, number] = {}
            for i, node in enumerate(self.tables.nodes):
                if node.op == op and number < len(self.tables.inputs[i]):
                    index.setdefault(self.tables.inputs[i][number], []).append(i)
        return index.get(tensor, ())

    def shape_of(self, tensor: Key) -> Shape:
        """Shape of any tensor that has been reached."""
        there = self.tables.shapes[tensor[0]]
        return there[tensor[1]] if there is not None and tensor[1] < len(there) else None


ShapeRule = Callable[[OpCall], Sequence[Shape] | None]
# Shape functions by op type; None of a rule means that nothing can be derived.
RULES: dict[str, ShapeRule] = {}
MAX_RANK = 254
_MOST_OUTPUTS = 5_000_000
LARGEST_SIZE = 2**62


def _size(number: int | float) -> int:
    """A size that a tensor gives; -1 for what is none."""
    return int(number) if isfinite(number) and 0 <= number <= LARGEST_SIZE else -1


def rule(*ops: str) -> Callable[[ShapeRule], ShapeRule]:
    """Register a shape function for op types."""

    def register(function: ShapeRule) -> ShapeRule:
        for op in ops:
            if op in RULES:
                raise ValueError(f"op type {op} has two shape functions")
            RULES[op] = function
        return function

    return register


def refined(known: Shape, other: Shape) -> tuple[Shape, bool]:
    """A shape with its unknown dimensions filled by another; and whether the two contradict."""
    if known is None or other is None:
        return (other if known is None else known), False
    if known == other:
        return known, False
    if len(known) != len(other):
        return known, True
    contradicts = any(a != b and a >= 0 and b >= 0 for a, b in zip(known, other, strict=True))
    return tuple(b if a < 0 else a for a, b in zip(known, other, strict=True)), contradicts


def merged(*shapes: Shape) -> Shape:
    """One shape of tensors that must have the same."""
    result: Shape = None
    for shape in shapes:
        result, _ = refined(result, shape)
    return result


def union(shapes: Sequence[Shape]) -> Shape:
    """The shape of a tensor that is one of several; -1 where they differ."""
    first = shapes[0] if shapes else None
    if first is None or any(shape is None or len(shape) != len(first) for shape in shapes):
        return None
    columns = zip(*(shape for shape in shapes if shape is not None), strict=True)
    return tuple(sizes[0] if len(set(sizes)) == 1 else -1 for sizes in columns)


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape of an element-wise op on tensors of these shapes."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not known:
        return None
    first = known[0]
    if all(shape == first for shape in known):
        return first
    rank = max(map(len, known))
    result = [1] * rank
    for shape in known:
        for i, size in enumerate(shape, start=rank - len(shape)):
            there = result[i]
            # An unknown size beside a known one over 1 is that one, or 1.
            if there == 1 or (there < 0 and size > 1) or (there == -1 and size == 0):
                result[i] = size
    return tuple(result)


def size_at(shape: Shape, axis: int) -> int:
    """Size of an axis from the first on; -1 if it, or the shape, is unknown."""
    return shape[axis] if shape is not None and axis < len(shape) else -1


def is_known(shape: Shape) -> bool:
    """Whether a shape has a rank and no unknown dimension."""
    return shape is not None and -1 not in shape


def num_elements(shape: Shape) -> int:
    """Elements of a shape; -1 if unknown."""
    return -1 if shape is None or -1 in shape else prod(shape)
