"""Shapes that a file leaves open: from what each op does with the shapes of what it reads.

    nodes in order --rule of the op--> shapes --fold--> small values --> rules of later nodes

Shapes in the file are right but may be partial; a dimension that they give is never changed. Sizes
that depend on data (the batch of a placeholder) are bound by `--batch-size` and `--input`; what is
left open is reported, with the inputs that cause it.

Entry point: `infer_shapes`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from driple.graph.options import ReadOptions
from driple.graph.tf import (
    folding_math,
    shape_rules_choice,
    shape_rules_control,
    shape_rules_layers,
    shape_rules_nn,
    shape_rules_variables,
)
from driple.graph.tf.bind import (
    bound_inputs,
    fixed_batches,
    input_positions,
    likely_numbers,
    open_forms,
    scalar_inputs,
    unit_batch,
)
from driple.graph.tf.describe import DataInputs
from driple.graph.tf.folding import FOLDS, fold
from driple.graph.tf.given_sizes import check_given_sizes
from driple.graph.tf.raw import RawNode, Shape
from driple.graph.tf.shape_call import (
    LARGEST_SIZE,
    MAX_RANK,
    RULES,
    Key,
    OpCall,
    Tables,
    Value,
    refined,
)
from driple.remarks import Remark, remark

__all__ = ["Inferred", "infer_shapes"]

# Modules whose import registers shape functions and foldings.
_RULE_MODULES = (
    folding_math,
    shape_rules_choice,
    shape_rules_control,
    shape_rules_layers,
    shape_rules_nn,
    shape_rules_variables,
)
# Walks through the graph: a stack that is read before it is filled needs a second one.
_MOST_WALKS = 3
# Elements of all values that are kept; beyond it, only values up to `_SHORT`.
_MOST_FOLDED, _SHORT = 2_000_000, 16
_FEW = 3  # nodes named in a note
# A node of such an op does work even when all its shapes are in the file: it leads to others.
_LINKS = frozenset(
    op for op in RULES
    if op.startswith(("TensorArray", "TensorList", "Stack", "Queue", "EmptyTensorList", "Iterator"))
) | {
    "VarHandleOp", "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp",
    "ReadVariableOp", "Placeholder", "_Arg", "Identity", "IdentityN", "Enter",
    "RefEnter", "Exit", "RefExit", "Switch", "RefSwitch", "Merge", "RefMerge", "NextIteration",
    "RefNextIteration", "While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase",
    "Stage", "Unstage", "FIFOQueueV2", "RandomShuffleQueueV2", "PaddingFIFOQueueV2", "FIFOQueue",
    "RandomShuffleQueue", "PaddingFIFOQueue", "OneShotIterator", "ConditionalAccumulator",
    "ResourceConditionalAccumulator", "StackV2", "StackPushV2",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """Known shapes and values of the tensors of a graph.

    Attributes:
        shapes: per node, the shapes of its outputs; None if nothing is known. -1 is an unknown
            dimension; the batch of inputs that nothing binds is 1.
        values: small tensors that do not depend on data: shape and elements, by node and output.
        unknown: shape [num_nodes], whether an unknown dimension, or a batch that counts as 1, is
            part of the node's outputs.
        data_dependent: shape [num_nodes], those of them that stay unknown when every input has a
            size: what an op keeps depends on its data (Where), or it is not known to Driple.
        sources: names of the inputs whose unknown dimensions cause the others.
        open_inputs: their outputs as `--input` takes them, with `?` for unknown dimensions.
        num_contradictions: nodes whose shape in the file differs from the derived one; the file's
            holds.
        notes: for the user.
        batches: first sizes of the outputs of each input, -1 for an open one.
    """

    shapes: list[tuple[Shape, ...] | None]
    values: Mapping[Key, tuple[tuple[int, ...], tuple[int | float, ...]]]
    unknown: npt.NDArray[np.bool_]
    data_dependent: npt.NDArray[np.bool_]
    sources: tuple[str, ...]
    open_inputs: tuple[str, ...]
    num_contradictions: int
    notes: tuple[Remark, ...]
    batches: Mapping[int, frozenset[int]]


def infer_shapes(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    order: Sequence[int],
    options: ReadOptions,
    *,
    stacked: Collection[int] = (),
) -> Inferred:
    """Fill the shapes that a graph leaves open.

    Args:
        nodes: all nodes, calls inlined.
        inputs: data inputs of each node, in order: position of the node read, number of its output.
        order: positions, a node after all that it reads, but for the edges back of loops.
        options: sizes that the user gives.
        stacked: inputs of several steps, by position; their batch is the second dimension.

    Raises:
        GraphError: a size that the graph contradicts, or an input that it does not have.
    """
    first = _walk(nodes, inputs, order, {})
    sources = input_positions(nodes, inputs, first.tables.shapes)
    numbers = scalar_inputs(nodes, inputs, sources, first.tables.shapes)
    given = {name.partition(":")[0] for name in options.inputs}
    numbers = [i for i in numbers if nodes[i].name not in given]
    bound: dict[int, tuple[Shape, ...]] = dict.fromkeys(numbers, ((),))
    sources = [i for i in sources if i not in bound]
    likely = likely_numbers(nodes, inputs, sources, first.tables.shapes)
    bound |= bound_inputs(
        nodes, sources, first.tables.shapes, options, stacked=stacked, numbers=likely
    )
    walked = _walk(nodes, inputs, order, bound) if bound else first
    check_given_sizes(nodes, inputs, walked.tables.shapes, options)
    unknown = _open_nodes(walked)
    open_sources = [i for i in sources if unknown[i]]
    forms = open_forms(nodes, open_sources, walked.tables.shapes, likely)
    batches = fixed_batches(sources, walked.tables.shapes, stacked)
    counted = unit_batch(open_sources, walked.tables.shapes)
    if counted:
        walked = _walk(nodes, inputs, order, bound | counted)
    values = walked.tables.values
    return Inferred(
        shapes=walked.tables.shapes,
        values={key: _known(value) for key, value in values.items() if None not in value[1]},
        unknown=unknown,
        data_dependent=unknown & _open_nodes(walked),
        sources=tuple(nodes[i].name for i in open_sources),
        open_inputs=forms,
        num_contradictions=len(walked.contradictions),
        notes=_notes(nodes, walked, numbers),
        batches=batches,
    )


def _open_nodes(walk: _Walk) -> npt.NDArray[np.bool_]:
    """Nodes with an output whose size is not known in full."""
    return np.array([_is_open(shapes) for shapes in walk.tables.shapes], dtype=np.bool_)


@dataclass(slots=True)
class _Walk:
    tables: Tables
    contradictions: list[int]


def _walk(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    order: Sequence[int],
    bound: Mapping[int, tuple[Shape, ...]],
) -> _Walk:
    """Derive all shapes; again where a stack or a list became known after it was read."""
    tables = Tables(nodes, inputs, [None] * len(nodes))
    given = [bound.get(i, node.shapes) for i, node in enumerate(nodes)]
    contradictions: list[int] = []
    for _ in range(_MOST_WALKS):
        contradictions = _pass(tables, order, given)
        late = [holder for holder in tables.created.values() if holder.learned_late]
        if not late:
            break
        for holder in tables.created.values():
            holder.was_unknown = holder.learned_late = False
    return _Walk(tables, contradictions)


def _pass(
    tables: Tables, order: Sequence[int], given: Sequence[tuple[Shape, ...] | None]
) -> list[int]:
    """One walk through the graph; positions of nodes that contradict the file."""
    nodes, shapes, values = tables.nodes, tables.shapes, tables.values
    contradictions = []
    for i in order:
        op = nodes[i].op
        there = given[i]
        if _misses_input(nodes[i], tables.inputs[i]):
            shapes[i] = there  # the others are not at their places
            continue
        function, folds = RULES.get(op), op in FOLDS
        is_complete = (
            there is not None
            and None not in there
            and not any(-1 in shape for shape in there if shape)
        )
        if is_complete and not folds and op not in _LINKS:
            shapes[i] = there
            continue
        call = OpCall(tables, i)
        if function is not None and not (is_complete and op not in _LINKS):
            derived = function(call)
            result, contradicts = _combined(there, derived)
            if contradicts:
                contradictions.append(i)
        else:
            result = there
        shapes[i] = result
        if folds and result is not None and _may_fold(result, tables.num_folded):
            for slot, value in enumerate(fold(call, result)):
                if value is None:
                    values.pop((i, slot), None)  # of an earlier walk
                else:
                    values[i, slot] = value
                    tables.num_folded += len(value[1])
                    shapes[i] = _with_shape(shapes[i], slot, value[0])
    return contradictions


def _misses_input(node: RawNode, read: Sequence[Key]) -> bool:
    """Whether an input names a node that is not in the file."""
    return len(read) < len(node.inputs) and len(read) < sum(
        not item.startswith("^") for item in node.inputs
    )


def _with_shape(
    shapes: tuple[Shape, ...] | None, slot: int, known: tuple[int, ...]
) -> tuple[Shape, ...] | None:
    """Shapes of outputs, one of which is known because its value is."""
    if shapes is None or slot >= len(shapes) or shapes[slot] == known:
        return shapes
    better, _ = refined(shapes[slot], known)
    return (*shapes[:slot], better, *shapes[slot + 1 :])


def _may_fold(shapes: Sequence[Shape], num_folded: int) -> bool:
    """Whether the first output is a scalar, vector or matrix; a short one after many others."""
    shape = shapes[0] if shapes else None
    if num_folded > _MOST_FOLDED:
        return shape is not None and len(shape) < 2 and 0 <= prod(shape) <= _SHORT
    return shape is None or len(shape) <= 2


def _combined(
    given: tuple[Shape, ...] | None, derived: Sequence[Shape] | None
) -> tuple[tuple[Shape, ...] | None, bool]:
    """The file's shapes, refined; and whether the two contradict."""
    if derived is None:
        return given, False
    derived = [_bounded(shape) for shape in derived]
    if given is None or (not given and derived):
        is_known = not derived or any(shape is not None for shape in derived)
        return (tuple(derived) if is_known else given), False
    result, contradicts = [], False
    for number, known in enumerate(given):
        shape, differs = refined(known, derived[number] if number < len(derived) else None)
        contradicts |= differs
        result.append(shape)
    return tuple(result), contradicts


def _bounded(shape: Shape) -> Shape:
    """A derived shape without sizes that no tensor has; those count as unknown."""
    if not shape:
        return shape
    if len(shape) > MAX_RANK:
        return None
    if min(shape) < -1 or max(shape) > LARGEST_SIZE:
        return tuple(n if 0 <= n <= LARGEST_SIZE else -1 for n in shape)
    return shape


def _is_open(shapes: tuple[Shape, ...] | None) -> bool:
    return shapes is None or any(shape is None or -1 in shape for shape in shapes)


def _known(value: Value) -> tuple[tuple[int, ...], tuple[int | float, ...]]:
    return value[0], tuple(n for n in value[1] if n is not None)


def _notes(nodes: Sequence[RawNode], walk: _Walk, numbers: Sequence[int]) -> tuple[Remark, ...]:
    def few(positions: Sequence[int]) -> tuple[str, ...]:
        return tuple(nodes[i].name[:80] for i in positions[:_FEW])

    odd, remarks = walk.contradictions, []
    if odd:
        remarks.append(remark("shapes_contradict", num_names=len(odd), names=few(odd)))
    if numbers:
        remarks.append(remark("inputs_without_shape", num_names=len(numbers), names=few(numbers)))
    return tuple(remarks)
