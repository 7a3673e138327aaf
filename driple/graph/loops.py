"""How often each node runs in a step: once, or as often as the while-loops around it turn.

    Enter -> Merge -> Switch -> body -> NextIteration -> Merge ...        Switch -> Exit
              `-> Less(counter, length) -> LoopCond

The nodes between Enter and Exit of the same frame name are one loop. Its length is read off its
condition, if a counter is compared with a constant, or with what another loop counted up to, as the
loops of a backward pass do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.graph.describe import DataInputs
from driple.graph.raw import Constant, RawNode

__all__ = ["Executions", "count_executions"]

_ENTER = frozenset({"Enter", "RefEnter"})
_EXIT = frozenset({"Exit", "RefExit"})
_MERGE = frozenset({"Merge", "RefMerge"})
_NEXT = frozenset({"NextIteration", "RefNextIteration"})
_PASSES_ON = frozenset({"Identity", "Enter", "RefEnter", "Cast", "Switch", "RefSwitch"})
_COMPARISONS = frozenset({"Less", "LessEqual", "Greater", "GreaterEqual"})
_ARITHMETIC = frozenset({"Add", "AddV2", "Sub", "Mul", "Minimum", "Maximum"})
# Bounds of the search for a number: nodes on one path, nodes in all, and the number itself.
_MAX_DEPTH, _MAX_STEPS, _MAX_NUMBER = 40, 100_000, 2**31
_MOST = 10**9  # turns of all loops around a node


@dataclass(frozen=True, kw_only=True, slots=True)
class Executions:
    """How often nodes run.

    Attributes:
        count: shape [num_nodes], int64, 1 outside of loops.
        num_loops: loops in the graph.
        num_unknown: loops whose length cannot be read off; they count one turn.
    """

    count: npt.NDArray[np.int64]
    num_loops: int
    num_unknown: int


def count_executions(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    edges: npt.NDArray[np.int32],
    order: Iterable[int],
) -> Executions:
    """How often each node runs in one step.

    Args:
        nodes: all nodes.
        inputs: what each of them reads.
        edges: shape [num_edges, 2], data and control.
        order: positions, a node after all that it reads, but for the edges back of loops.
    """
    count = np.ones(len(nodes), dtype=np.int64)
    if not any(node.op in _ENTER for node in nodes):
        return Executions(count=count, num_loops=0, num_unknown=0)
    frames = _Frames(nodes, edges, order)
    lengths = _Lengths(nodes, inputs, frames)
    turns = [1] + [lengths.of(frame) or 1 for frame in range(1, len(frames.parent))]
    for frame in range(1, len(turns)):  # a frame comes after the one around it
        turns[frame] = min(turns[frame] * turns[frames.parent[frame]], _MOST)
    for i, frame in enumerate(frames.of):
        count[i] = turns[frame]
    known = [lengths.of(frame) is not None for frame in range(1, len(turns))]
    return Executions(count=count, num_loops=len(known), num_unknown=known.count(False))


class _Frames:
    """Which loop each node is in.

    Attributes:
        of: number of the frame of each node; 0 is outside of all loops.
        parent: the frame around each frame.
        condition: the LoopCond of each frame, by number.
    """

    def __init__(
        self, nodes: Sequence[RawNode], edges: npt.NDArray[np.int32], order: Iterable[int]
    ) -> None:
        read: list[list[int]] = [[] for _ in nodes]
        for source, target in edges.tolist():
            if nodes[source].op not in _NEXT:
                read[target].append(source)
        self.of = [0] * len(nodes)
        self.parent, self.depth = [0], [0]
        self.condition: dict[int, int] = {}
        gives = [0] * len(nodes)  # the frame that the readers of a node are in
        numbers: dict[tuple[int, str], int] = {}
        for i in order:
            node = nodes[i]
            here = max((gives[j] for j in read[i]), key=self.depth.__getitem__, default=0)
            self.of[i] = gives[i] = here
            if node.op in _ENTER:
                key = (here, node.frame)
                if key not in numbers:
                    numbers[key] = len(self.parent)
                    self.parent.append(here)
                    self.depth.append(self.depth[here] + 1)
                gives[i] = numbers[key]
            elif node.op in _EXIT:
                gives[i] = self.parent[here]
            elif node.op == "LoopCond":
                self.condition[here] = i


class _Lengths:
    """How often each loop turns, as far as its condition tells."""

    def __init__(self, nodes: Sequence[RawNode], inputs: DataInputs, frames: _Frames) -> None:
        self.nodes, self.inputs, self.frames = nodes, inputs, frames
        self.found: dict[int, int | None] = {}
        self.steps = 0

    def of(self, frame: int) -> int | None:
        """Turns of a loop; None if unknown."""
        if frame not in self.found:
            self.found[frame] = None  # so that loops which wait for each other end
            start = self.frames.condition.get(frame)
            if start is not None:
                self.found[frame] = self._turns(self._input(start, 0), 0)
        return self.found[frame]

    def _turns(self, at: int | None, depth: int) -> int | None:
        """How often a condition holds before it fails."""
        self.steps += 1
        if at is None or depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            return None
        op = self.nodes[at].op
        if op == "Identity":
            return self._turns(self._input(at, 0), depth + 1)
        if op == "LogicalAnd":
            both = [self._turns(self._input(at, side), depth + 1) for side in (0, 1)]
            return min((turns for turns in both if turns is not None), default=None)
        return self._distance(at, depth) if op in _COMPARISONS else None

    def _distance(self, at: int, depth: int) -> int | None:
        """Steps of a counter from its start to what it is compared with."""
        op = self.nodes[at].op
        left = self._counter(self._input(at, 0), depth + 1)
        right = self._value(self._input(at, 1), depth + 1)
        if left is None or right is None:
            return None
        start, step = left
        away = right - start if op.startswith("Less") else start - right
        if (step > 0) != op.startswith("Less"):
            return None
        away += op.endswith("Equal")
        return max(0, -(-away // abs(step)))

    def _counter(self, at: int | None, depth: int) -> tuple[int, int] | None:
        """Start and step of a number that a loop carries on: Merge(Enter, NextIteration)."""
        while at is not None and self.nodes[at].op == "Identity":
            at = self._input(at, 0)
        if at is None or self.nodes[at].op not in _MERGE:
            return None
        ends = [self._input(at, 0), self._input(at, 1)]
        first = next((e for e in ends if e is not None and self.nodes[e].op in _ENTER), None)
        back = next((e for e in ends if e is not None and self.nodes[e].op in _NEXT), None)
        if first is None or back is None:
            return None
        start, step = self._value(first, depth + 1), self._step(self._input(back, 0), depth + 1)
        return None if start is None or not step else (start, step)

    def _step(self, at: int | None, depth: int) -> int | None:
        """What is added in a turn: Add(counter, 1) or Sub(counter, 1)."""
        while at is not None and self.nodes[at].op == "Identity":
            at = self._input(at, 0)
        if at is None:
            return None
        op = self.nodes[at].op
        for side in (1, 0):
            value = self._value(self._input(at, side), depth + 1)
            if value is not None and op in ("Add", "AddV2"):
                return value
            if value is not None and op == "Sub" and side == 1:
                return -value
        return None

    def _value(self, at: int | None, depth: int) -> int | None:
        """A whole number that the graph fixes; None if it does not."""
        self.steps += 1
        if at is None or depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            return None
        node = self.nodes[at]
        if node.op == "Const":
            return _whole(node.constant)
        if node.op in _PASSES_ON:
            return self._value(self._input(at, 0), depth + 1)
        if node.op in _EXIT:
            return self._counted(at, depth + 1)
        if node.op in _ARITHMETIC:
            a = self._value(self._input(at, 0), depth + 1)
            b = None if a is None else self._value(self._input(at, 1), depth + 1)
            if a is not None and b is not None:
                made = _calculate(node.op, a, b)
                return made if abs(made) <= _MAX_NUMBER else None
        return None

    def _counted(self, at: int, depth: int) -> int | None:
        """What a counter has come to when its loop ends: Exit <- Switch <- Merge."""
        switch = self._input(at, 0)
        merge = None if switch is None else self._input(switch, 0)
        counter = self._counter(merge, depth)
        turns = None if merge is None else self.of(self.frames.of[merge])
        return None if counter is None or turns is None else counter[0] + counter[1] * turns

    def _input(self, at: int, number: int) -> int | None:
        read = self.inputs[at]
        return read[number][0] if number < len(read) else None


def _calculate(op: str, a: int, b: int) -> int:
    if op == "Sub":
        return a - b
    if op == "Mul":
        return a * b
    if op == "Minimum":
        return min(a, b)
    return max(a, b) if op == "Maximum" else a + b


def _whole(constant: Constant | None) -> int | None:
    """The number of a scalar whole-number constant."""
    if constant is None or constant.shape != () or not constant.values:
        return None
    value = constant.values[0]
    return value if isinstance(value, int) else None
