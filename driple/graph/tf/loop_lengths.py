"""Loop of each node, and number of turns of each loop, as far as its condition decides it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from driple.graph.tf.describe import DataInputs
from driple.graph.tf.functions import node_of, output_number
from driple.graph.tf.raw import RawNode
from driple.graph.tf.shape_call import Key

__all__ = ["NEXT", "Frames", "Lengths"]

NEXT = frozenset({"NextIteration", "RefNextIteration"})
_ENTER = frozenset({"Enter", "RefEnter"})
_EXIT = frozenset({"Exit", "RefExit"})
_MERGE = frozenset({"Merge", "RefMerge"})
_IDENTITY = frozenset({"Identity", "Cast", "LoopCond"})
# Take the one element of a condition that is a vector of one.
_ONE_ELEMENT = frozenset({"StridedSlice", "Squeeze", "Reshape"})
_PASSES_ON = _IDENTITY | {"Enter", "RefEnter", "Switch", "RefSwitch"}
_COMPARISONS = frozenset({"Less", "LessEqual", "Greater", "GreaterEqual", "NotEqual"})
_MIRRORED = {
    "Less": "Greater", "LessEqual": "GreaterEqual", "Greater": "Less", "GreaterEqual": "LessEqual",
    "NotEqual": "NotEqual",
}  # fmt: skip
_ARITHMETIC = frozenset({"Add", "AddV2", "Sub", "Mul", "Minimum", "Maximum"})
_IF_READS = 3  # an If that gives one tensor reads its condition and what each branch returns
_ALWAYS = 2**62  # turns of a condition that always holds
# Bounds of the search for a number: nodes on one path, nodes in all, and the number itself.
_MAX_DEPTH, _MAX_STEPS, _MAX_NUMBER = 40, 100_000, 2**31
# Loops that wait for the length of another at the same time; asked in order, there are two or so.
_MAX_NESTED = 8


class Frames:
    """Loop of Enter and Exit that each node is in.

    Attributes:
        of: number of the frame of each node; 0 is outside of all loops.
        parent: the frame around each frame.
        names: name of each frame.
        condition: the LoopCond of each frame, by number.
    """

    def __init__(
        self, nodes: Sequence[RawNode], edges: npt.NDArray[np.int32], order: Iterable[int]
    ) -> None:
        self.of = [0] * len(nodes)
        self.parent, self.depth, self.names = [0], [0], [""]
        self.condition: dict[int, int] = {}
        if not any(node.op in _ENTER for node in nodes):
            return
        read: list[list[int]] = [[] for _ in nodes]
        for source, target in edges.tolist():
            if nodes[source].op not in NEXT:
                read[target].append(source)
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
                    self.names.append(node.frame)
                gives[i] = numbers[key]
            elif node.op in _EXIT:
                gives[i] = self.parent[here]
            elif node.op == "LoopCond":
                self.condition[here] = i


class _Ref(NamedTuple):
    """A tensor that a node reads.

    Attributes:
        at: position of the node that makes it.
        slot: number of the output.
        argument: the argument of a While that it is, if the While changes it in every turn.
    """

    at: int
    slot: int
    argument: tuple[str, int] | None


class Lengths:
    """Number of turns of each loop; None where the graph does not fix it."""

    def __init__(
        self,
        nodes: Sequence[RawNode],
        inputs: DataInputs,
        frames: Frames,
        whiles: Mapping[str, int],
        values: Mapping[Key, tuple[tuple[int, ...], tuple[int | float, ...]]],
    ) -> None:
        self.nodes, self.inputs, self.frames = nodes, inputs, frames
        self.whiles, self.values = whiles, values
        self.found: dict[int | str, int | None] = {}
        self.steps = self.nested = 0
        self._index: dict[str, int] | None = None
        self._pushes: dict[int, list[int]] | None = None

    def of_frame(self, frame: int) -> int | None:
        """Turns of a loop of Enter and Exit."""
        at = self.frames.condition.get(frame)
        return None if at is None else self._of(frame, at)

    def of_while(self, name: str) -> int | None:
        """Turns of a While, whose first input is its condition."""
        return self._of(name, self.whiles[name])

    def _of(self, loop: int | str, at: int) -> int | None:
        """Turns of a loop whose condition is what node `at` reads first."""
        if loop not in self.found:
            if self.nested > _MAX_NESTED:
                return None
            self.found[loop] = None  # so that loops which wait for each other end
            self.nested += 1
            turns = self._turns(self._input(at, 0), 0)
            self.nested -= 1
            self.found[loop] = None if turns is None or turns >= _ALWAYS else turns
        return self.found[loop]

    def _turns(self, ref: _Ref | None, depth: int) -> int | None:
        """Number of times that a condition holds before it fails."""
        self.steps += 1
        if ref is None or ref.argument or depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            return None
        fixed = self._fixed(ref)
        if fixed is not None:
            return _ALWAYS if fixed else 0
        op = self.nodes[ref.at].op
        if op in _IDENTITY or op in _ONE_ELEMENT:
            return self._turns(self._input(ref.at, 0), depth + 1)
        return self._distance(ref.at, depth) if op in _COMPARISONS else self._joined(ref.at, depth)

    def _joined(self, at: int, depth: int) -> int | None:
        """Turns of two conditions joined by and, or, or an If whose other branch is false."""
        op = self.nodes[at].op
        is_if = op in ("If", "StatelessIf") and len(self.inputs[at]) == _IF_READS
        if is_if and self._turns(self._input(at, 2), depth + 1) != 0:
            return None
        if not is_if and op not in ("LogicalAnd", "LogicalOr"):
            return None
        both = [self._turns(self._input(at, side), depth + 1) for side in (0, 1)]
        known = [turns for turns in both if turns is not None]
        if op == "LogicalOr":
            return max(known) if len(known) == len(both) else None
        return min(known, default=None)

    def _distance(self, at: int, depth: int) -> int | None:
        """Steps of a counter from its start to what it is compared with."""
        op, sides = self.nodes[at].op, [self._input(at, 0), self._input(at, 1)]
        counter = self._counter(sides[0], depth + 1)
        if counter is None:
            sides.reverse()
            op = _MIRRORED[op]
            counter = self._counter(sides[0], depth + 1)
        limit = self._value(sides[1], depth + 1)
        if counter is None or limit is None:
            return None
        start, step = counter
        if op == "NotEqual":
            away, rest = divmod(limit - start, step)
            return None if rest or away < 0 else away
        away = limit - start if op.startswith("Less") else start - limit
        if (step > 0) != op.startswith("Less"):
            return None
        away += op.endswith("Equal")
        return max(0, -(-away // abs(step)))

    def _counter(self, ref: _Ref | None, depth: int) -> tuple[int, int] | None:
        """Start and step of a number that a loop carries on."""
        ref = self._past_identities(ref)
        if ref is None or depth > _MAX_DEPTH:
            return None
        if ref.argument:
            name, number = ref.argument
            at = self.whiles.get(name)
            if at is None:
                return None
            start = self._value(self._start(at, number), depth + 1)
            step = self._step(self._input(at, number + 1), ref, depth + 1)
            return None if start is None or not step else (start, step)
        if self.nodes[ref.at].op not in _MERGE:
            return None
        ends = [self._input(ref.at, 0), self._input(ref.at, 1)]
        first = next((e for e in ends if e is not None and self.nodes[e.at].op in _ENTER), None)
        back = next((e for e in ends if e is not None and self.nodes[e.at].op in NEXT), None)
        if first is None or back is None:
            return None
        start = self._value(first, depth + 1)
        step = self._step(self._input(back.at, 0), ref, depth + 1)
        return None if start is None or not step else (start, step)

    def _step(self, ref: _Ref | None, counter: _Ref, depth: int) -> int | None:
        """Number that is added in a turn: Add(counter, 1) or Sub(counter, 1)."""
        ref = self._past_identities(ref)
        if ref is None or ref.argument:
            return None
        op = self.nodes[ref.at].op
        for side in (1, 0):
            if not self._is_same(self._input(ref.at, 1 - side), counter):
                continue
            value = self._value(self._input(ref.at, side), depth + 1)
            if value is not None and op in ("Add", "AddV2"):
                return value
            if value is not None and op == "Sub" and side == 1:
                return -value
        return None

    def _is_same(self, ref: _Ref | None, counter: _Ref) -> bool:
        """Whether a tensor is the counter as the body sees it."""
        ref = self._past_identities(ref)
        if (
            ref is not None
            and not ref.argument
            and self.nodes[ref.at].op in ("Switch", "RefSwitch")
        ):
            ref = self._past_identities(self._input(ref.at, 0))
        if ref is None or counter.argument:
            return ref is not None and ref.argument == counter.argument
        return not ref.argument and ref.at == counter.at

    def _value(self, ref: _Ref | None, depth: int) -> int | None:
        """A whole number that the graph fixes; None if it does not."""
        self.steps += 1
        if ref is None or ref.argument or depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            return None
        fixed = self._fixed(ref)
        if fixed is not None:
            return fixed
        return self._derived(ref, depth)

    def _derived(self, ref: _Ref, depth: int) -> int | None:
        """A number that follows from a loop, a stack or arithmetic."""
        node = self.nodes[ref.at]
        result: int | None = None
        if node.op in _PASSES_ON:
            result = self._value(self._input(ref.at, 0), depth + 1)
        elif node.op in _EXIT:
            result = self._counted(ref.at, depth + 1)
        elif node.starts:
            result = self._counted_by_while(ref, depth + 1)
        elif node.op in ("TensorListPopBack", "StackPopV2"):
            result = self._popped(ref, depth + 1)
        elif node.op == "TensorListLength":
            result = self._pushed(self._input(ref.at, 0))
        elif node.op in _ARITHMETIC:
            a = self._value(self._input(ref.at, 0), depth + 1)
            b = None if a is None else self._value(self._input(ref.at, 1), depth + 1)
            result = None if a is None or b is None else _calculate(node.op, a, b)
        return result if result is not None and abs(result) <= _MAX_NUMBER else None

    def _counted(self, at: int, depth: int) -> int | None:
        """Value of a counter when its loop ends: Exit <- Switch <- Merge."""
        switch = self._input(at, 0)
        merge = None if switch is None else self._input(switch.at, 0)
        counter = self._counter(merge, depth)
        turns = None if merge is None else self.of_frame(self.frames.of[merge.at])
        return None if counter is None or turns is None else counter[0] + counter[1] * turns

    def _counted_by_while(self, ref: _Ref, depth: int) -> int | None:
        """Value of a counter, or of an argument that the body leaves unchanged, after a While."""
        name = self.nodes[ref.at].name
        counter = self._counter(_Ref(ref.at, ref.slot, (name, ref.slot)), depth)
        if counter is None:
            return None
        turns = self.of_while(name)
        return None if turns is None else counter[0] + counter[1] * turns

    def _popped(self, ref: _Ref, depth: int) -> int | None:
        """The number that a forward loop put on a stack or a list in every turn."""
        handle, seen = self._input(ref.at, 0), 0
        while handle is not None and seen < _MAX_DEPTH:
            seen += 1
            if handle.argument:
                name, number = handle.argument
                at = self.whiles.get(name)
                handle = None if at is None else self._start(at, number)
                continue
            node = self.nodes[handle.at]
            if node.op == "TensorListPushBack":
                return self._value(self._input(handle.at, 1), depth + 1)
            if node.op == "StackV2":
                pushes = self._stack_pushes().get(handle.at, [])
                return self._value(self._input(pushes[0], 1), depth + 1) if pushes else None
            if node.starts:
                handle = self._input(handle.at, handle.slot + 1)
            elif node.op in _PASSES_ON or node.op == "TensorListPopBack":
                handle = self._input(handle.at, 0)
            else:
                return None
        return None

    def _pushed(self, ref: _Ref | None) -> int | None:
        """Elements of a list that a While pushes one onto in every turn."""
        ref = self._past_identities(ref)
        if ref is None or ref.argument or not self.nodes[ref.at].starts:
            return None
        name, start = self.nodes[ref.at].name, self._start(ref.at, ref.slot)
        push = self._input(ref.at, ref.slot + 1)
        if push is None or start is None or self.nodes[push.at].op != "TensorListPushBack":
            return None
        before = self._past_identities(self._input(push.at, 0))
        if before is None or before.argument != (name, ref.slot):
            return None
        is_empty = self.nodes[start.at].op == "EmptyTensorList"
        return self.of_while(name) if is_empty else None

    def _stack_pushes(self) -> dict[int, list[int]]:
        """The StackPushV2 nodes of each StackV2."""
        if self._pushes is None:
            self._pushes = {}
            for i, node in enumerate(self.nodes):
                if node.op == "StackPushV2":
                    ref, seen = self._input(i, 0), 0
                    while ref is not None and self.nodes[ref.at].op in _PASSES_ON:
                        seen += 1
                        ref = self._input(ref.at, 0) if seen < _MAX_DEPTH else None
                    if ref is not None:
                        self._pushes.setdefault(ref.at, []).append(i)
        return self._pushes

    def _fixed(self, ref: _Ref) -> int | None:
        """A whole number that was found by folding, or stands in a Const."""
        value = self.values.get((ref.at, ref.slot))
        if value is not None:
            elements = value[1]
        else:
            constant = self.nodes[ref.at].constant
            if constant is None or constant.shape != () or not constant.values:
                return None
            elements = constant.values
        return int(elements[0]) if len(elements) == 1 and isinstance(elements[0], int) else None

    def _past_identities(self, ref: _Ref | None) -> _Ref | None:
        seen = 0
        while ref is not None and not ref.argument and self.nodes[ref.at].op in _IDENTITY:
            seen += 1
            ref = self._input(ref.at, 0) if seen < _MAX_DEPTH else None
        return ref

    def _input(self, at: int, number: int) -> _Ref | None:
        read = self.inputs[at]
        if number >= len(read):
            return None
        return _Ref(*read[number], self.nodes[at].carried.get(number))

    def _start(self, at: int, number: int) -> _Ref | None:
        """Value of an argument of a While; None if a loop around it changes it."""
        starts = self.nodes[at].starts
        text = starts[number] if number < len(starts) else ""
        if self._index is None:
            self._index = {node.name: i for i, node in enumerate(self.nodes)}
        source = self._index.get(node_of(text)) if text else None
        return None if source is None else _Ref(source, output_number(text), None)


def _calculate(op: str, a: int, b: int) -> int:
    if op == "Sub":
        return a - b
    if op == "Mul":
        return a * b
    if op == "Minimum":
        return min(a, b)
    return max(a, b) if op == "Maximum" else a + b
