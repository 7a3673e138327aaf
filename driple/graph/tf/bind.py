"""Bind the open sizes of a graph's inputs: `--batch-size` and `--input NAME=AxBxC`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from driple.errors import GraphError
from driple.graph.datatypes import BOOL
from driple.graph.options import ReadOptions
from driple.graph.tf.raw import RawNode, Shape
from driple.graph.tf.shape_call import size_at
from driple.graph.tf.shape_rules_basic import INPUT_OPS

__all__ = [
    "bound_inputs",
    "fixed_batches",
    "input_positions",
    "likely_numbers",
    "open_forms",
    "scalar_inputs",
    "unit_batch",
]

_MOST_LISTED = 8
_FEW = 3  # inputs in a short message
_SCALAR = "scalar"
_Shapes = Sequence[tuple[Shape, ...] | None]
_RESOURCE, _VARIANT = 20, 21
# Ops that read a learning rate, a keep probability or a summary's number.
_NUMBER_READERS = frozenset(
    {
        "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "Neg", "Maximum", "Minimum", "Pow", "Floor",
        "Less", "LessEqual", "Greater", "GreaterEqual", "ScalarSummary", "LogicalNot", "LogicalAnd",
        "LogicalOr", "Assign", "AssignVariableOp", "If", "StatelessIf", "Reciprocal", "Sqrt",
    }
)  # fmt: skip
# What the gradient of an element-wise op reads to sum what was broadcast.
_GRADIENT_READERS = frozenset({"Shape", "ShapeN", "Reshape", "Sum", "BroadcastGradientArgs"})


def input_positions(
    nodes: Sequence[RawNode], inputs: Sequence[Sequence[tuple[int, int]]], shapes: _Shapes
) -> list[int]:
    """Nodes that hand data to the step: placeholders, iterators, dequeues.

    A constant whose size the file leaves open counts too.
    """
    return [
        i
        for i, node in enumerate(nodes)
        if not _is_handle(node)
        and (
            node.op in INPUT_OPS
            or (node.op == "Const" and node.constant is None and _is_open(shapes[i]))
        )
    ]


def scalar_inputs(
    nodes: Sequence[RawNode],
    inputs: Sequence[Sequence[tuple[int, int]]],
    sources: Sequence[int],
    shapes: _Shapes,
) -> list[int]:
    """Placeholders of unknown rank that are numbers: a learning rate, a keep probability, a flag.

    They are those that only element-wise ops, conditions and updates read, or that are booleans;
    data reach a product, a convolution, a lookup or a reshape too.
    """
    wanted = {
        i
        for i in sources
        if nodes[i].op.startswith("Placeholder") and (shapes[i] is None or shapes[i] == (None,))
    }
    if not wanted:
        return []
    is_data = set()
    for target, read in enumerate(inputs):
        for number, (source, _) in enumerate(read):
            if source in wanted and not _takes_number(nodes[target], number):
                is_data.add(source)
    return [
        i for i in sorted(wanted)
        if i not in is_data or nodes[i].types.get("dtype", (0,))[0] == BOOL
    ]  # fmt: skip


def _takes_number(node: RawNode, position: int) -> bool:
    """Whether an op may read a number at an input, by its kind."""
    if node.op.startswith(("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")):
        return True
    if node.op in ("Switch", "RefSwitch"):
        return position == 1
    return node.op in _NUMBER_READERS


def _is_handle(node: RawNode) -> bool:
    return node.types.get("dtype", (0,))[0] in (_RESOURCE, _VARIANT)


def _is_open(shapes: tuple[Shape, ...] | None) -> bool:
    return shapes is None or any(shape is None or -1 in shape for shape in shapes)


def bound_inputs(
    nodes: Sequence[RawNode],
    sources: Sequence[int],
    shapes: _Shapes,
    options: ReadOptions,
    *,
    stacked: Collection[int] = (),
    numbers: Collection[int] = (),
) -> dict[int, tuple[Shape, ...]]:
    """Shapes of the inputs that the options bind, by position.

    Args:
        nodes: all nodes.
        sources: the inputs among them.
        shapes: shapes of their outputs, as far as the graph fixes them.
        options: what the user gives.
        stacked: inputs of several steps; their batch is the second dimension, not the first.
        numbers: inputs that are numbers by all that reads them, for messages.

    Raises:
        GraphError: no such input, or a size that differs from one that the graph or another option
            fixes.
    """
    bound = _named(nodes, sources, shapes, options.inputs, numbers)
    if options.batch_size is None:
        return bound
    size = options.batch_size
    fits = False
    others: list[str] = []
    fixed: tuple[int, int] | None = None
    for i in sources:
        axis = int(i in stacked)
        before, known = shapes[i] or (), bound.get(i) or shapes[i] or ()
        for old, shape in zip(before, known, strict=True) if before else ():
            if not shape or len(shape) <= axis:
                continue
            end = axis + 1
            if old is not None and old[:end] != shape[:end]:  # an option gives what was open
                fits |= size in shape
                others += [] if size in shape else [f"{nodes[i].name[:60]}={_written(shape)}"]
            elif shape[axis] < 0:
                fits = True
            else:
                fits |= shape[axis] == size
                fixed = fixed or (i, shape[axis])
        if not before and known:  # of unknown rank
            fits |= any(size in (shape or ()) for shape in known)
        if any(shape and size_at(shape, axis) < 0 and len(shape) > axis for shape in known):
            bound[i] = tuple(_with_batch(shape, size, axis) for shape in known)
    if not fits and others:
        raise GraphError(
            f"--batch-size {size} contradicts --input {', '.join(others[:_FEW])}, and no other "
            "input has such a size; give one of them"
        )
    if not fits and fixed is not None:
        raise GraphError(
            f"--batch-size {size}: the graph has a fixed batch of {fixed[1]}, at its input "
            f"'{nodes[fixed[0]].name[:80]}'; leave the option out, or export the graph again"
        )
    return bound


def fixed_batches(
    sources: Sequence[int], shapes: _Shapes, stacked: Collection[int]
) -> dict[int, frozenset[int]]:
    """First sizes of the outputs of each input, as far as they are known; -1 for an open one.

    Args:
        sources: the inputs, without those that are numbers.
        shapes: shapes of the outputs of all nodes, with the sizes that the user gives.
        stacked: inputs of several steps; their batch is the second dimension.
    """
    return {
        i: frozenset(
            shape[int(i in stacked)]
            for shape in shapes[i] or ()
            if shape is not None and len(shape) > int(i in stacked)
        )
        for i in sources
    }


def _with_batch(shape: Shape, size: int, axis: int) -> Shape:
    if not shape or len(shape) <= axis or shape[axis] >= 0:
        return shape
    return (*shape[:axis], size, *shape[axis + 1 :])


def _named(
    nodes: Sequence[RawNode],
    sources: Sequence[int],
    shapes: _Shapes,
    wanted: Mapping[str, tuple[int, ...]],
    numbers: Collection[int],
) -> dict[int, tuple[Shape, ...]]:
    """Shapes that are given by the name of an input, `NAME` or `NAME:1`."""
    bound: dict[int, tuple[Shape, ...]] = {}
    # A flag or a rate is no input of data, but its shape may be given all the same.
    position = {node.name: i for i, node in enumerate(nodes) if node.op in INPUT_OPS}
    position |= {nodes[i].name: i for i in sources}
    for text, shape in wanted.items():
        name, _, number = text.partition(":")
        i, slot = position.get(name), int(number or 0)
        if i is None or slot >= max(1, len(shapes[i] or ())):
            raise GraphError(
                f"--input {text[:80]}: the graph has no such input; it has "
                f"{_listing(nodes, sources, shapes, numbers)}"
            )
        known = list(bound.get(i) or shapes[i] or (None,))
        old = known[slot]
        if old is not None and (
            len(old) != len(shape) or any(a not in (-1, b) for a, b in zip(old, shape, strict=True))
        ):
            several = len(known) > 1 and not number
            form = f", which has {len(known)} outputs: name one as NAME:OUTPUT" if several else ""
            raise GraphError(
                f"--input {text[:80]}={_written(shape)}{form}; the graph fixes "
                f"{name[:80]}:{slot} to {_written(old)}; its inputs are "
                f"{_listing(nodes, sources, shapes, numbers)}"
            )
        known[slot] = shape
        bound[i] = tuple(known)
    return bound


def likely_numbers(
    nodes: Sequence[RawNode],
    inputs: Sequence[Sequence[tuple[int, int]]],
    sources: Sequence[int],
    shapes: _Shapes,
) -> frozenset[int]:
    """Placeholders of unknown rank that are numbers, but for what their own gradient reads."""
    wanted = {i for i in sources if shapes[i] in (None, (None,))}
    for target, read in enumerate(inputs) if wanted else ():
        if nodes[target].op not in _GRADIENT_READERS:
            wanted -= {i for k, (i, _) in enumerate(read) if not _takes_number(nodes[target], k)}
    return frozenset(i for i in wanted if nodes[i].op.startswith("Placeholder"))


def open_forms(
    nodes: Sequence[RawNode], sources: Sequence[int], shapes: _Shapes, numbers: Collection[int]
) -> tuple[str, ...]:
    """The open outputs of some inputs as `--input` takes them, with `?` for unknown sizes.

    `NAME=?x28x28x1` where a node has one output, else `NAME:OUTPUT=?x28x28x1`; `NAME=scalar` for
    one of `numbers` of unknown rank, `NAME=SHAPE` for another.
    """
    return tuple(form for form, is_open in _forms(nodes, sources, shapes, numbers) if is_open)


def _forms(
    nodes: Sequence[RawNode], sources: Sequence[int], shapes: _Shapes, numbers: Collection[int]
) -> list[tuple[str, bool]]:
    """Every output as `--input` takes it, and whether a size of it is unknown; these come first."""
    forms = []
    for i in sources:
        known = shapes[i] or (None,)
        for slot, shape in enumerate(known):
            name = f"{nodes[i].name[:100]}:{slot}" if len(known) > 1 else nodes[i].name[:100]
            of_unknown_rank = _SCALAR if i in numbers else "SHAPE"
            written = of_unknown_rank if shape is None else _written(shape)[:80]
            forms.append((f"{name}={written}", shape is None or -1 in shape))
    return sorted(forms, key=lambda pair: not pair[1])


def _listing(
    nodes: Sequence[RawNode], sources: Sequence[int], shapes: _Shapes, numbers: Collection[int]
) -> str:
    """The inputs of a graph with their shapes, for a message."""
    if not sources:
        return "no inputs"
    forms = [form for form, _ in _forms(nodes, sources, shapes, numbers)]
    return ", ".join(forms[:_MOST_LISTED]) + (" ..." if len(forms) > _MOST_LISTED else "")


def _written(shape: Shape) -> str:
    if shape is None:
        return "unknown"
    return "x".join("?" if n < 0 else str(n) for n in shape) or _SCALAR


def unit_batch(open_sources: Sequence[int], shapes: _Shapes) -> dict[int, tuple[Shape, ...]]:
    """Inputs whose open dimensions count as 1, so that what is derived from them has a size."""
    result = {}
    for i in open_sources:
        known = shapes[i]
        if known is not None and any(shape is not None for shape in known):
            result[i] = tuple(
                None if shape is None else tuple(max(n, 1) if n < 0 else n for n in shape)
                for shape in known
            )
    return result
