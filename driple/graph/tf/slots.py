"""Ops of an optimizer's update that a graph writes as plain arithmetic.

    gradient --Square, Mul ...--> slot variables (m, v) --Sqrt, RealDiv ...--> variable

Keras 3's Adam and BERT's AdamWeightDecay have no op of their own: they assign each slot and the
variable, so that several tensors of a variable's size go to variables in a step. An op such as
ApplyAdam runs beside the variable and is handed the gradient alone; `find_slots` finds the ops that
it stands for.

A slot is a variable that a step changes, whose value leads to updates only, without a product or a
gradient between, and to the update of another variable too. A moving average is none: it leads to
its own update.

Entry point: `find_slots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driple.graph.tf.describe import DataInputs
from driple.graph.tf.raw import RawNode
from driple.graph.tf.step_ops import PRODUCTS, StepOps

__all__ = ["Slots", "find_slots"]

BoolArray = npt.NDArray[np.bool_]
# A tensor: the node that makes it, and the number of its output.
_Tensor = tuple[int, int]

# Nodes that the value of a slot passes on its way to updates, and those of all slots together.
_MOST_NODES, _MOST_VISITED = 2000, 5_000_000
_MOST_MERGES = 8
_LONGEST_CHAIN = 32  # ops of one input between a gradient and an update
# Make a dense gradient of slices, once for each op that reads it.
_DENSE_OF_SLICES = frozenset({"UnsortedSegmentSum"})
_ENDS = _DENSE_OF_SLICES | {"IdentityN"}  # of a chain
# Reductions end the way of a slot unless they give one number, such as a norm.
_REDUCTIONS = frozenset({"Sum", "Mean", "Max", "Min", "Prod", "L2Loss", "EuclideanNorm"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Slots:
    """The parts of updates that are written as arithmetic.

    Attributes:
        arithmetic: shape [num_nodes], bool, ops that belong to an update.
        without_gradient: shape [num_nodes], bool, those of them that need no gradient.
        variables: shape [num_nodes], bool, slot variables.
        same_as: the node, by position, that gives what a node gives too, among gradients of them.
    """

    arithmetic: BoolArray
    without_gradient: BoolArray
    variables: BoolArray
    same_as: Mapping[int, int]


def find_slots(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    order: Sequence[int],
    runs: BoolArray,
    holder: Sequence[int],
) -> Slots:
    """Slot variables of a step, and the arithmetic of the updates that read them.

    Args:
        nodes: all nodes, with shapes.
        inputs: what each of them reads.
        order: positions, a node after all that it reads, but for the edges back of loops.
        runs: shape [num_nodes], whether the step runs it.
        holder: the variable whose handle, reference or value each node has, or -1.
    """
    finder = _Finder(nodes, inputs, order, runs, holder)
    slots = finder.slots()
    if slots:
        finder.take_dependent(slots)
        finder.take_local()
        finder.take_shared(slots)
    return Slots(
        arithmetic=_mask(len(nodes), finder.taken),
        without_gradient=_mask(len(nodes), finder.without_gradient(slots)),
        variables=_mask(len(nodes), slots),
        same_as=finder.same_as if slots else {},
    )


def _mask(num_nodes: int, positions: Iterable[int]) -> BoolArray:
    mask = np.zeros(num_nodes, dtype=np.bool_)
    mask[list(positions)] = True
    return mask


class _Finder:
    """Ops that lead to updates only, and what of them belongs to an update."""

    def __init__(
        self,
        nodes: Sequence[RawNode],
        inputs: DataInputs,
        order: Sequence[int],
        runs: BoolArray,
        holder: Sequence[int],
    ) -> None:
        self.nodes, self.inputs, self.holder = nodes, inputs, holder
        ops = StepOps(nodes)
        changes = (ops.applies | ops.others | ops.assigns) & runs
        self.changes: set[int] = {i for i in np.flatnonzero(changes).tolist() if holder[i] >= 0}
        self.changed = {holder[i] for i in self.changes}
        self.order = [i for i in order if runs[i]]
        self.readers: dict[int, list[int]] = {}
        for target in self.order:
            for source, _ in inputs[target]:
                self.readers.setdefault(source, []).append(target)
        blocked = ops.gradients() | ops.matching(PRODUCTS) | ops.inputs | ops.variables
        self.leads = self._leads(blocked)
        self.taken: set[int] = set()
        self.beside: frozenset[int] = frozenset()  # follow from variables and numbers alone
        self.num_visited = 0
        self.same_as: dict[int, int] = {}
        self.same_as = self._equals()

    def _leads(self, blocked: BoolArray) -> set[int]:
        """Ops all of whose readers are updates, or lead to nothing else."""
        leads: set[int] = set()
        if not any(self.nodes[i].op.startswith("Assign") for i in self.changes):
            return leads
        for i in reversed(self.order):
            readers = self.readers.get(i, ())
            if blocked[i] or i in self.changes or not readers:
                continue
            if self.nodes[i].op in _REDUCTIONS and not self._is_number((i, 0)):
                continue
            if all(reader in self.changes or reader in leads for reader in readers):
                leads.add(i)
        return leads

    def _equals(self) -> dict[int, int]:
        """The first node that makes each dense gradient of the same slices, or of their squares."""
        first: dict[tuple[_Tensor, ...], int] = {}
        equals: dict[int, int] = {}
        for i in self.order:
            if i in self.leads and self.nodes[i].op in _DENSE_OF_SLICES and self.inputs[i]:
                values, *others = self.inputs[i][:2]
                known = first.setdefault((self._chain(values)[-1], *others), i)
                if known != i:
                    equals[i] = known
        return equals

    def slots(self) -> set[int]:
        """The slot variables."""
        if not self.leads:
            return set()
        values: dict[int, list[int]] = {}
        for i in self.order:
            if self.holder[i] in self.changed:
                values.setdefault(self.holder[i], []).append(i)
        return {
            variable
            for variable, own in values.items()
            if not all(self._is_number((i, 0)) for i in own if self.nodes[i].shapes)
            and self._is_slot(variable, own)
        }

    def _is_slot(self, variable: int, own: Iterable[int]) -> bool:
        """Whether the values of a variable lead to updates only, and to another variable's too."""
        todo = [
            reader
            for i in own
            if self.nodes[i].op != "VarHandleOp"  # whose readers take the handle
            for reader in self.readers.get(i, ())
            if self.holder[reader] != variable
        ]
        if not todo or not all(i in self.leads for i in todo if i not in self.changes):
            return False
        seen = set(todo)
        while todo and len(seen) < _MOST_NODES and self.num_visited < _MOST_VISITED:
            i = todo.pop()
            self.num_visited += 1
            if i in self.changes:
                if self.holder[i] != variable:
                    return True
                continue
            fresh = [reader for reader in self.readers.get(i, ()) if reader not in seen]
            seen.update(fresh)
            todo += fresh
        return False

    def take_dependent(self, slots: set[int]) -> None:
        """Take what follows from the value of a slot."""
        for i in self.order:
            if i in self.leads and any(
                self.holder[source] in slots or source in self.taken for source, _ in self.inputs[i]
            ):
                self.taken.add(i)

    def take_local(self) -> None:
        """Take what reads changed variables and numbers alone: weight decay, the step's number."""
        local: set[int] = set()
        for i in self.order:
            sources = self.inputs[i]
            if i in self.leads and sources and all(map(self._is_beside(local), sources)):
                local.add(i)
        self.beside = frozenset(local)
        for i in reversed(self.order):
            if i in local and not all(
                reader in self.changes or reader in self.taken or reader in local
                for reader in self.readers[i]
            ):
                local.discard(i)
        self.taken |= local

    def _is_beside(self, local: set[int]) -> Callable[[_Tensor], bool]:
        """Whether a tensor is there where the variables are, or no more than a number."""

        def is_beside(tensor: _Tensor) -> bool:
            source = tensor[0]
            if source in self.taken or source in local or not self.inputs[source]:
                return self.holder[source] < 0 or self._is_kept_there(tensor)
            return self.holder[source] >= 0 and self._is_kept_there(tensor)

        return is_beside

    def _is_kept_there(self, tensor: _Tensor) -> bool:
        return self.holder[tensor[0]] in self.changed or self._is_number(tensor)

    def without_gradient(self, slots: set[int]) -> set[int]:
        """Taken nodes that follow from variables other than slots alone: weight decay."""
        decay: set[int] = set()
        others = self.changed - slots
        for i in self.order:
            sources = [one[0] for one in self.inputs[i] if not self._is_number(one)]
            if i in self.taken and sources and all(
                source in decay or self.holder[source] in others for source in sources
            ):  # fmt: skip
                decay.add(i)
        return decay

    def take_shared(self, slots: set[int]) -> None:
        """Take ops between one gradient and several places of its update: it crosses once."""
        fed = {
            self.holder[reader] for i in self.taken for reader in self.readers.get(i, ())
        } | slots
        targets = [
            i for i in self.order
            if i in self.taken or (i in self.changes and self.holder[i] in fed)
        ]  # fmt: skip
        group = self._groups(targets)
        crossing: dict[int, set[_Tensor]] = {}
        for i in targets:
            for tensor in self.inputs[i]:
                if self._crosses(tensor):
                    crossing.setdefault(group[i], set()).add(self._first(tensor))
        for tensors in crossing.values():
            merged = tensors
            for _ in range(_MOST_MERGES):
                before, merged = merged, self._merged(merged)
                if merged == before:
                    break
        self.take_local()  # what the ops that were taken now read too

    def _groups(self, targets: Sequence[int]) -> dict[int, int]:
        """A number for ops and updates that larger tensors, or a variable, join."""
        parent = {i: i for i in targets}

        def root(i: int) -> int:
            while parent.setdefault(i, i) != i:
                parent[i] = parent[parent[i]]
                i = parent[i]
            return i

        for i in targets:
            if i in self.changes:
                parent[root(i)] = root(self.holder[i])
            for tensor in self.inputs[i]:
                source = tensor[0]
                if self.holder[source] in self.changed and not self._is_number(tensor):
                    parent[root(i)] = root(self.holder[source])
                elif source in self.taken and not self._is_number(tensor):
                    parent[root(i)] = root(source)
        return {i: root(i) for i in targets}

    def _crosses(self, tensor: _Tensor) -> bool:
        """Whether a tensor comes from the forward or backward pass."""
        source = tensor[0]
        return (
            source not in self.taken
            and source not in self.beside
            and self.holder[source] < 0
            and bool(self.inputs[source])
            and not self._is_number(tensor)
        )

    def _first(self, tensor: _Tensor) -> _Tensor:
        """The first of several tensors that are equal."""
        return self.same_as.get(tensor[0], tensor[0]), tensor[1]

    def _merged(self, tensors: set[_Tensor]) -> set[_Tensor]:
        """The tensors, with several that follow from one replaced by it."""
        chains = {tensor: self._chain(tensor) for tensor in tensors}
        count: dict[_Tensor, int] = {}
        for chain in chains.values():
            for tensor in chain:
                count[tensor] = count.get(tensor, 0) + 1
        result = set()
        for tensor, chain in chains.items():
            at = next((k for k, one in enumerate(chain) if count[one] > 1), None)
            if at is None:
                result.add(tensor)
            else:
                self.taken.update(i for i, _ in chain[:at])
                result.add(chain[at])
        return result

    def _chain(self, tensor: _Tensor) -> list[_Tensor]:
        """A tensor, what it follows from, and so on, through ops that read one tensor each."""
        chain = [tensor]
        while chain[-1][0] in self.leads and len(chain) < _LONGEST_CHAIN:
            before = {self._first(one) for one in self.inputs[chain[-1][0]] if self._crosses(one)}
            if len(before) != 1 or self.nodes[chain[-1][0]].op in _ENDS:
                break
            chain.append(before.pop())
        return chain

    def _is_number(self, tensor: _Tensor) -> bool:
        """Whether a tensor has one element at most, as far as its shape is known."""
        shapes = self.nodes[tensor[0]].shapes
        shape = shapes[tensor[1]] if shapes and tensor[1] < len(shapes) else None
        return shape is not None and all(n in (0, 1) for n in shape)
