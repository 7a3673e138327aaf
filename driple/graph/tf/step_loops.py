"""Loops whose turns are training steps: all updates stand inside of them.

    for i in tf.range(10): step(x[i], y[i])        model.compile(steps_per_execution=10)

A call of such a graph runs several steps; its numbers are of one turn. Where a loop computes a part
of a step only (an RNN, accumulation of gradients), an update of a variable stands outside of it.

Entry point: `step_loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.graph.tf.describe import DataInputs
from driple.graph.tf.loop_lengths import Frames
from driple.graph.tf.raw import RawNode, Shape
from driple.graph.tf.shape_rules_basic import INPUT_OPS
from driple.graph.tf.step_ops import StepOps

__all__ = ["NO_STEP_LOOPS", "LoopsAround", "StepLoops", "step_loops"]

# A loop: the name of a While, or the number of a frame of Enter and Exit.
Loop = str | int
# Ops that take one element of a tensor, and those that make a list of all.
_GATHERS = frozenset({"GatherV2", "Gather"})
_LISTS = frozenset({"TensorListFromTensor", "TensorArrayScatterV3"})
_MOST_PASSED = 1000  # nodes that hand an input on
_PASSES_ON = frozenset({"Identity", "Enter", "IdentityN", "Switch"})


@dataclass(frozen=True, kw_only=True, slots=True)
class StepLoops:
    """Loops whose turns are steps.

    Attributes:
        loops: names of Whiles, numbers of frames; empty if a call runs one step.
        stacked: inputs whose first dimension counts the steps, by position: their batch is the
            second.
    """

    loops: frozenset[Loop]
    stacked: frozenset[int]


NO_STEP_LOOPS = StepLoops(loops=frozenset(), stacked=frozenset())


class LoopsAround:
    """The loops that a node stands in, found once for nodes of the same loop.

    Args:
        nodes: all nodes.
        frames: loops of Enter and Exit.
    """

    def __init__(self, nodes: Sequence[RawNode], frames: Frames) -> None:
        self._nodes, self._frames = nodes, frames
        self._outer = {node.name: node.loop for node in nodes if node.starts}
        self._found: dict[tuple[int, str], frozenset[Loop]] = {}

    def of(self, node: int) -> frozenset[Loop]:
        """Names of Whiles and numbers of frames around the node at a position."""
        key = self._frames.of[node], self._nodes[node].loop
        if key not in self._found:
            frame, name = key
            loops: set[Loop] = set()
            while frame:
                loops.add(frame)
                frame = self._frames.parent[frame]
            while name and name not in loops:
                loops.add(name)
                name = self._outer.get(name, "")
            self._found[key] = frozenset(loops)
        return self._found[key]


def step_loops(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    edges: npt.NDArray[np.int32],
    order: Sequence[int],
    *,
    runs: npt.NDArray[np.bool_],
    holder: Sequence[int],
) -> StepLoops:
    """The loops that hold every update of a step, but for counters.

    Args:
        nodes: all nodes, without function calls.
        inputs: what each of them reads.
        edges: shape [num_edges, 2], data and control.
        order: positions, a node after all that it reads, but for the edges back of loops.
        runs: shape [num_nodes], whether the step runs it.
        holder: the variable whose handle, reference or value each node has, or -1.
    """
    if not any(node.op in ("Enter", "RefEnter") or node.starts for node in nodes):
        return NO_STEP_LOOPS
    ops = StepOps(nodes)
    changes = np.flatnonzero((ops.applies | ops.others | ops.assigns) & runs).tolist()
    numbers = _numbers(nodes, holder)
    wide = [i for i in changes if holder[i] >= 0 and holder[i] not in numbers]
    if not wide:
        return NO_STEP_LOOPS
    around = LoopsAround(nodes, Frames(nodes, edges, order))
    common = frozenset.intersection(*{around.of(i) for i in wide})
    if not common:
        return NO_STEP_LOOPS
    inside = [common <= around.of(i) for i in range(len(nodes))]
    return StepLoops(loops=common, stacked=_stacked(nodes, inputs, inside))


def _numbers(nodes: Sequence[RawNode], holder: Sequence[int]) -> set[int]:
    """Variables of one element, such as the number of the step, as far as the file gives shapes."""
    numbers = set()
    for i, variable in enumerate(holder):
        if variable >= 0:
            node = nodes[i]
            is_handle = node.op == "VarHandleOp"
            shapes = node.shape_attributes.get("shape") if is_handle else node.shapes
            if shapes and all(_is_number(shape) for shape in shapes):
                numbers.add(variable)
    return numbers


def _is_number(shape: Shape) -> bool:
    return shape is not None and all(size == 1 for size in shape)


def _stacked(
    nodes: Sequence[RawNode], inputs: DataInputs, inside: Sequence[bool]
) -> frozenset[int]:
    """Inputs of which each turn takes one element of the first dimension."""
    readers: dict[int, list[tuple[int, int]]] = {}
    for target, read in enumerate(inputs):
        for number, (source, _) in enumerate(read):
            readers.setdefault(source, []).append((target, number))
    stacked = set()
    for i, node in enumerate(nodes):
        if node.op not in INPUT_OPS or inside[i]:
            continue
        todo, seen = [i], {i}
        while todo and len(seen) < _MOST_PASSED:
            for target, number in readers.get(todo.pop(), ()):
                takes = (
                    _takes_element(nodes, inputs[target], nodes[target])
                    if inside[target]
                    else nodes[target].op in _LISTS
                )
                if number == 0 and takes:
                    stacked.add(i)
                elif nodes[target].op in _PASSES_ON and target not in seen:
                    seen.add(target)
                    todo.append(target)
    return frozenset(stacked)


def _takes_element(
    nodes: Sequence[RawNode], read: Sequence[tuple[int, int]], node: RawNode
) -> bool:
    """Whether an op in a loop takes the element of its turn."""
    if len(read) < 2:
        return False
    index = nodes[read[1][0]]
    if node.op == "StridedSlice":
        shrinks = bool(node.attributes.get("shrink_axis_mask", (0,))[0] & 1)
        return shrinks and index.op != "Const"
    return node.op in _GATHERS and (1 in node.carried or index.shapes == ((),))
