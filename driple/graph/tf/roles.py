"""Parameters and phases of a step: what is forward, backward or update, and who reads what.

    ops of the gradients' scope --data edges--> backward --into a variable--> update

TensorFlow writes a backward pass into a name scope (`gradients`, `gradient_tape`). What reads any
of it is backward too, until it changes a variable; where no name says so, the op types of gradients
(`Conv2DBackpropFilter`, `ReluGrad`) are taken in place of the scope, and what an update takes for
the gradient. A variable that changes by a gradient is a parameter; one that changes by anything
else is none, such as a moving average. Those that never change are left out: a graph does not tell
frozen parameters from data and rates.

Entry point: `find_roles`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt

from driple.graph.cost.updates import UPDATES
from driple.graph.step_facts import ParameterTable, Phase
from driple.graph.tf.describe import DataInputs
from driple.graph.tf.op_kinds import kind_of_op_type
from driple.graph.tf.places import Places
from driple.graph.tf.raw import RawNode
from driple.graph.tf.sizes import OutputSize
from driple.graph.tf.step_ops import StepOps

__all__ = ["Roles", "find_roles"]

BoolArray = npt.NDArray[np.bool_]

# Nodes that the search for the op which completes a gradient may pass.
_MOST_PASSED = 2000
_GRADIENT_ADDED = 2  # after an accumulator's handle and the step


@dataclass(frozen=True, kw_only=True, slots=True)
class Roles:
    """Roles of the kept nodes and of the variables.

    Attributes:
        phases: shape [num_kept], int8, a `Phase` each.
        parameters: variables that the step trains on the kept device.
    """

    phases: npt.NDArray[np.int8]
    parameters: ParameterTable


def find_roles(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    order: Sequence[int],
    *,
    runs: BoolArray,
    places: Places,
    sizes: Sequence[OutputSize | None],
) -> Roles:
    """The roles of a step's nodes.

    Args:
        nodes: all nodes, without function calls.
        inputs: what each of them reads.
        order: positions, a node after all that it reads, but for the edges back of loops.
        runs: shape [num_nodes], whether the step runs it.
        places: where nodes run, and whose variable they hold.
        sizes: size of the outputs of each node that runs.
    """
    return _Roles(nodes, inputs, order, runs=runs, places=places, sizes=sizes).found()


class _Roles:
    """What depends on gradients, and which variables that changes."""

    def __init__(
        self,
        nodes: Sequence[RawNode],
        inputs: DataInputs,
        order: Sequence[int],
        *,
        runs: BoolArray,
        places: Places,
        sizes: Sequence[OutputSize | None],
    ) -> None:
        self.nodes, self.places, self.sizes = nodes, places, sizes
        self.holder, self.kept = places.holder, places.kept.tolist()
        self.ops = StepOps(nodes)
        self.runs = runs.tolist()
        self.sources = [[source for source, _ in read] for read in inputs]
        changes = (self.ops.applies | self.ops.others | self.ops.assigns) & runs
        self.updates: list[int] = np.flatnonzero(changes).tolist()
        # What is read through an accumulator or a slot may come before what is written to it.
        passes = 1 + (self._join_accumulators() | self._join_slots())
        self.is_backward = self._descending(order, passes)

    def _join_accumulators(self) -> bool:
        """What takes a sum of gradients out reads all that was added to it; whether any does."""
        adds: dict[int, list[int]] = {}
        for i in np.flatnonzero(self.ops.applies).tolist():
            if "Accumulator" in self.nodes[i].op and self.sources[i]:
                adds.setdefault(self.sources[i][0], []).append(i)
        for i in np.flatnonzero(self.ops.takes).tolist() if adds else ():
            self.sources[i] = self.sources[i] + adds.get(self.sources[i][0], [])
        return bool(adds)

    def _join_slots(self) -> bool:
        """The value of a slot depends on what is assigned to it; whether there are slots."""
        slots = self.places.slots.variables
        for i in self.updates if slots.any() else ():
            variable = self.holder[i]
            if variable >= 0 and slots[variable]:
                self.sources[variable] = [*self.sources[variable], i]
        return bool(slots.any())

    def _descending(self, order: Sequence[int], passes: int) -> list[bool]:
        """Whether each node is of a backward pass, or reads what such a node gives."""
        scoped = self.ops.gradient_scopes()
        descending: list[bool] = (scoped if scoped.any() else self.ops.gradient_types).tolist()
        sources = self.sources
        for i in np.flatnonzero(self.ops.applies).tolist():
            position = _gradient_input(self.nodes[i].op)
            if position < len(sources[i]):
                descending[sources[i][position]] = True
        for i in chain.from_iterable(repeat(order, passes)):
            if not descending[i]:
                for source in sources[i]:
                    if descending[source]:
                        descending[i] = True
                        break
        return descending

    def found(self) -> Roles:
        """Phases of the kept nodes, and the table of parameters."""
        kept = np.flatnonzero(self.places.kept)
        phases = np.where(np.array(self.is_backward)[kept], Phase.BACKWARD, Phase.FORWARD)
        is_update = self.places.slots.arithmetic.copy()
        is_update[[i for i in self.updates if self.is_backward[i]]] = True
        phases[is_update[kept]] = Phase.UPDATE
        self.is_update = is_update.tolist()
        return Roles(phases=phases.astype(np.int8), parameters=self._parameters(kept))

    def _parameters(self, kept: npt.NDArray[np.int64]) -> ParameterTable:
        trained = self._trained()
        position = np.full(len(self.nodes), -1, dtype=np.int64)
        position[kept] = np.arange(len(kept))
        readers = self._readers(kept.tolist())
        makers = {v: self._makers(updates) for v, updates in trained.items()}
        variables = sorted(v for v in trained if readers.get(v) or makers[v])
        number = {v: i for i, v in enumerate(variables)}
        size = self._sizes_of(number)
        return ParameterTable(
            names=tuple(self.nodes[v].name for v in variables),
            elements=np.array([size[v][0] for v in variables], dtype=np.int64),
            nbytes=np.array([size[v][1] for v in variables], dtype=np.int64),
            is_trained=np.ones(len(variables), dtype=np.bool_),
            readers=_pairs((number[v], position[i]) for v in variables for i in readers.get(v, ())),
            gradients=_pairs((number[v], position[i]) for v in variables for i in makers[v]),
        )

    def _trained(self) -> dict[int, list[int]]:
        """Variables that change by a gradient, with the ops that change them."""
        trained: dict[int, list[int]] = {}
        is_parameter = self.ops.variables & ~self.places.slots.variables
        for i in self.updates:
            variable = self.holder[i]
            if variable >= 0 and is_parameter[variable] and self.is_backward[i]:
                trained.setdefault(variable, []).append(i)
        return trained

    def _readers(self, kept: Iterable[int]) -> dict[int, list[int]]:
        """Kept nodes that read each variable's value, but for those of its update."""
        readers_of: dict[int, list[int]] = {}
        holder = self.holder
        for i in kept:
            for source in self.sources[i]:
                variable = holder[source]
                if variable >= 0 and holder[i] != variable and not self.is_update[i]:
                    readers_of.setdefault(variable, []).append(i)
        is_variable = self.ops.variables
        return {v: list(dict.fromkeys(each)) for v, each in readers_of.items() if is_variable[v]}

    def _sizes_of(self, variables: Iterable[int]) -> dict[int, tuple[int, int]]:
        """Elements and bytes of each variable: of its value, as the step reads or holds it."""
        sizes = dict.fromkeys(variables, (0, 0))
        for i, variable in enumerate(self.holder):
            size = self.sizes[i]
            if variable in sizes and size is not None and self.nodes[i].op != "VarHandleOp":
                sizes[variable] = max(sizes[variable], (size.elements, size.tensor_bytes))
        return sizes

    def _makers(self, updates: Iterable[int]) -> list[int]:
        """Kept nodes of the backward pass that complete the gradient which some updates take."""
        makers, todo = [], list(updates)
        seen = set(todo)
        while todo and len(seen) < _MOST_PASSED:
            i = todo.pop()
            if self.kept[i] and not self.is_update[i]:
                makers.append(i)
                continue
            for source in self.sources[i]:
                if source not in seen and self.is_backward[source] and self.runs[source]:
                    seen.add(source)
                    todo.append(source)
        return sorted(makers)


def _gradient_input(op_type: str) -> int:
    """Position of the gradient among the inputs of what applies it, or adds it to a sum."""
    update = UPDATES.get(kind_of_op_type(op_type))
    return _GRADIENT_ADDED if update is None else update.gradient


def _pairs(pairs: Iterable[tuple[int, int]]) -> npt.NDArray[np.int32]:
    return np.array(list(pairs), dtype=np.int32).reshape(-1, 2)
