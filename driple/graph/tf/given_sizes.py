"""Sizes that a user gives for several inputs of one graph: whether they fit together.

nodes, shapes with the given sizes bound -> nothing, or GraphError
"""

from __future__ import annotations

from collections.abc import Sequence

from driple.errors import GraphError
from driple.graph.options import ReadOptions
from driple.graph.tf.raw import RawNode, Shape

__all__ = ["check_given_sizes"]

# Ops whose first two inputs broadcast: their sizes are equal or 1, from the last one on.
_BROADCAST = frozenset(
    {
        "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Maximum", "Minimum", "SquaredDifference",
        "Pow", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd",
        "LogicalOr", "FloorDiv", "FloorMod",
    }
)  # fmt: skip
# Ops whose first two inputs have a row for each sample.
_ROWS = frozenset({"SparseSoftmaxCrossEntropyWithLogits", "SoftmaxCrossEntropyWithLogits"})


def check_given_sizes(
    nodes: Sequence[RawNode],
    inputs: Sequence[Sequence[tuple[int, int]]],
    shapes: Sequence[tuple[Shape, ...] | None],
    options: ReadOptions,
) -> None:
    """Refuse sizes of which two meet in one op that needs them to be equal.

    Sizes that no option gave are not looked at: the graph may hold what Driple misreads.

    Args:
        nodes: all nodes.
        inputs: data inputs of each: position of the node read, number of its output.
        shapes: shapes of the outputs of each node, as they follow from the options.
        options: what the user gave.

    Raises:
        GraphError: two of the sizes contradict each other.
    """
    given = {size for shape in options.inputs.values() for size in shape}
    given |= {options.batch_size} if options.batch_size else set()
    given.discard(1)
    if len(given) < 2:
        return
    for node, read in zip(nodes, inputs, strict=True):
        if node.op not in _BROADCAST and node.op not in _ROWS:
            continue
        pair = [_shape(shapes, *one) for one in read[:2]]
        if len(pair) == 2 and _contradict(node.op, pair[0], pair[1], given):
            raise GraphError(
                f"sizes contradict each other: '{node.name[:80]}' ({node.op}) would read "
                f"{_written(pair[0])} and {_written(pair[1])}; give inputs of one batch size "
                "(--batch-size, --input)"
            )


def _shape(shapes: Sequence[tuple[Shape, ...] | None], node: int, slot: int) -> Shape:
    known = shapes[node] or ()
    return known[slot] if slot < len(known) else None


def _contradict(op: str, shape: Shape, other: Shape, given: set[int]) -> bool:
    """Whether two shapes differ in two of the given sizes, where they must not."""
    if not shape or not other:
        return False
    pairs = zip(reversed(shape), reversed(other), strict=False)
    if op in _ROWS:
        pairs = zip(shape[:1], other[:1], strict=True)
    return any(a != b and a in given and b in given for a, b in pairs)


def _written(shape: Shape) -> str:
    return "x".join("?" if n < 0 else str(n) for n in shape or ())
