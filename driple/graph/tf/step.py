"""Nodes that one training step runs: the ancestors of the updates of its variables.

    nodes, edges --updates--> train ops --choose one--> ancestors --by data, by control--> Step

An update changes a variable: Apply*, scatter updates, AssignAdd and AssignSub wherever they are; a
plain Assign counts only if the train op leads to it, since most of them initialise or restore. A
train op is a node without readers that waits for updates; a graph may hold several (a GAN, a
notebook that was run twice). What only a control edge leads to does not run unless it has a side
effect: TensorFlow's Grappler turns it into a NoOp (dependency_optimizer.cc).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.tf.describe import DataInputs
from driple.graph.tf.left_out import leads_only_to, left_out
from driple.graph.tf.links import GraphLinks
from driple.graph.tf.raw import RawNode
from driple.graph.tf.step_ops import VARIABLES, StepOps
from driple.remarks import Remark, remark

__all__ = ["TrainStep", "find_step"]

BoolArray = npt.NDArray[np.bool_]

# Bits of work that are spent on telling train ops apart.
_MOST_BITS = 4 * 10**9
_MOST_COMPARED = 64
_USUAL_SIGNATURE = "serving_default"
_MOST_LIGHT = 200  # nodes that a loose update may add


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainStep:
    """The nodes that one step runs.

    Attributes:
        runs: shape [num_nodes], bool.
        is_training: whether it computes gradients and updates variables, or hands gradients on.
        train_ops: names of the train ops found, the largest first.
        target: name of the one that was taken; empty if there is none.
        handed_on: positions of gradients that nobody in the graph reads, where it has no updates.
        left_out: number of nodes that do not run, by reason.
        notes: what a user should know.
    """

    runs: BoolArray
    is_training: bool
    train_ops: tuple[str, ...] = ()
    target: str = ""
    handed_on: tuple[int, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Remark, ...] = ()


def find_step(
    nodes: Sequence[RawNode],
    inputs: DataInputs,
    links: GraphLinks,
    order: Sequence[int],
    *,
    target: str | None = None,
    named: Sequence[str] = (),
    signatures: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> TrainStep:
    """The step of a graph.

    Args:
        nodes: all nodes, without function calls.
        inputs: what each of them reads.
        links: the same with control edges.
        order: positions, a node after all that it reads, but for the edges back of loops.
        target: name of the train op that the user wants.
        named: names of train ops that the file lists itself (a MetaGraphDef's collection); the
            step is that of one of them.
        signatures: names of the nodes that each signature of a SavedModel gives; one of several is
            what runs where the graph does not train, and `target` may name it.

    Raises:
        GraphError: `target` names no node that leads to an update.
    """
    finder = _Finder(nodes, inputs, links, order)
    names = {node.name for node in nodes}
    signatures = {name: each for name, each in signatures.items() if not names.isdisjoint(each)}
    if target is not None:
        if target in signatures and target not in names:
            return finder.step_of_signature(target, signatures)
        return finder.step_of_target(target)
    step = finder.step(named)
    if not step.is_training and len(signatures) > 1:
        usual = _USUAL_SIGNATURE if _USUAL_SIGNATURE in signatures else min(signatures)
        return finder.step_of_signature(usual, signatures)
    return step


class _Finder:
    """Positions of updates and train ops, and what runs for them."""

    def __init__(
        self, nodes: Sequence[RawNode], inputs: DataInputs, links: GraphLinks, order: Sequence[int]
    ) -> None:
        self.nodes, self.links, self.order = nodes, links, order
        self.ops = StepOps(nodes)
        self.applies: list[int] = np.flatnonzero(self.ops.applies).tolist()
        self.others: list[int] = np.flatnonzero(self.ops.others).tolist()
        self.ignored = self.ops.summaries | self.ops.savers
        self._join_accumulators(inputs)

    def _join_accumulators(self, inputs: DataInputs) -> None:
        """Taking a sum of gradients waits for what was added to it, though no edge says so."""
        adds: dict[int, list[int]] = {}
        for i in self.applies:
            if "Accumulator" in self.nodes[i].op and inputs[i]:
                adds.setdefault(inputs[i][0][0], []).append(i)
        for i in np.flatnonzero(self.ops.takes).tolist() if adds else ():
            for added in adds.get(inputs[i][0][0], ()) if inputs[i] else ():
                self.links.control[i].append(added)
                self.links.readers[added].append(i)

    def step_of_target(self, target: str) -> TrainStep:
        """The step of the train op that a user names."""
        place = next((i for i, node in enumerate(self.nodes) if node.name == target), None)
        train_ops = self._train_ops(())
        if place is None:
            names = ", ".join(self.nodes[i].name for i in train_ops[:5]) or "none"
            raise GraphError(f"--set target={target[:80]} is not a node; train ops here: {names}")
        runs = self._run([place])
        if not self._is_training(runs):
            raise GraphError(
                f"--set target={target[:80]} leads to no update of a variable; name a train op"
            )
        return self._made([place], train_ops, runs)

    def step_of_signature(self, name: str, signatures: Mapping[str, Sequence[str]]) -> TrainStep:
        """The nodes that one signature of a SavedModel runs."""
        wanted = set(signatures[name])
        runs = self._run([i for i, node in enumerate(self.nodes) if node.name in wanted])
        others = tuple(other for other in sorted(signatures) if other != name)
        return TrainStep(
            runs=runs,
            is_training=self._is_training(runs),
            target=name,
            left_out=left_out(self.ops, self.links, runs),
            notes=(
                remark(
                    "signature_of_several",
                    num_signatures=len(signatures),
                    name=name,
                    others=others,
                ),
            )
            if others
            else (),
        )

    def step(self, named: Sequence[str]) -> TrainStep:
        """The step of the largest train op, all updates, gradients alone, or everything."""
        train_ops = self._train_ops(named)
        starts = self.applies + self.others
        if train_ops:
            runs = self._run(train_ops[:1])
            # Updates that no train op waits for are a step of their own.
            covered = self._run(train_ops)
            loose = [] if named else [i for i in self.applies if not covered[i]]
            if not loose or self._run(loose).sum() <= runs.sum():
                return self._made(train_ops[:1], train_ops, runs)
        runs = self._run(starts)
        if starts and self._is_training(runs):
            return self._made(starts, [], runs)
        gradients = self._gradients_nobody_reads()
        if gradients:
            runs = self._run(gradients)
            return TrainStep(
                runs=runs,
                is_training=True,
                handed_on=tuple(gradients),
                left_out=left_out(self.ops, self.links, runs),
                notes=(remark("gradients_handed_on", num_gradients=len(gradients)),),
            )
        runs = self._everything()
        return TrainStep(
            runs=runs, is_training=False, left_out=left_out(self.ops, self.links, runs)
        )

    def _made(self, starts: list[int], train_ops: list[int], runs: BoolArray) -> TrainStep:
        if train_ops:
            runs |= self._loose_updates(runs)
        names = tuple(self.nodes[i].name for i in train_ops)
        notes: tuple[Remark, ...] = ()
        target = self.nodes[starts[0]].name if len(starts) == 1 else ""
        if len(names) > 1:
            others = [name for name in names if name != target]
            notes = (
                remark(
                    "train_op_of_several",
                    num_train_ops=len(names),
                    target=target,
                    others=tuple(others[:5]),
                ),
            )
        return TrainStep(
            runs=runs,
            is_training=True,
            train_ops=names,
            target=target if train_ops else "",
            left_out=left_out(self.ops, self.links, runs),
            notes=notes,
        )

    def _is_training(self, runs: BoolArray) -> bool:
        """Whether gradients are applied, or computed and added to variables by hand."""
        if runs[self.applies].any():
            return True
        changes = (self.ops.others | self.ops.assigns) & runs
        if not changes.any():
            return False
        return bool((self.ops.gradients() & runs).any()) or self._trained_by_hand(changes)

    def _trained_by_hand(self, changes: BoolArray) -> bool:
        """Whether a variable that is a factor of a product is changed by what follows from one."""
        products = self.ops.products
        value_of = np.full(len(self.nodes), -1)  # the variable whose value a node hands on
        after = products.copy()
        factors: set[int] = set()
        variables = self.ops.variables
        for i in self.order:
            sources = self.links.data[i]
            if variables[i]:
                value_of[i] = i
            elif self.ops.hands_on[i] and sources:
                value_of[i] = value_of[sources[0]]
            if sources:
                after[i] |= after[sources].any()
                if products[i]:
                    factors.update(value_of[sources].tolist())
        return any(
            self.links.data[i] and int(value_of[self.links.data[i][0]]) in factors and after[i]
            for i in np.flatnonzero(changes).tolist()
        )

    def _gradients_nobody_reads(self) -> list[int]:
        """Ends of a backward pass: gradients without data readers, constants apart."""
        read = np.zeros(len(self.nodes), dtype=np.bool_)
        for sources in self.links.data:
            read[sources] = True
        ends = self.ops.gradients() & ~read & ~self.ops.named({"Const", "NoOp", "Shape"})
        computes = self.ops.gradient_types
        ends_read: list[int] = np.flatnonzero(ends).tolist()
        return ends_read if computes.any() else []

    def _train_ops(self, named: Iterable[str]) -> list[int]:
        """Nodes that wait for updates and that nobody waits for, the largest step first."""
        updates = self.applies or self.others + self._computed_assigns()
        if not updates:
            return []
        masks = self._updates_before(updates)
        if masks is None:
            return []
        own = set(updates)
        wanted = {name.split(":", 1)[0] for name in named}
        listed = [i for i in masks if self.nodes[i].name in wanted and i not in own]
        ends = listed or [
            i
            for i in masks
            if i not in own and not any(reader in masks for reader in self.links.readers[i])
        ]
        largest: list[int] = []
        for i in sorted(ends, key=lambda i: -masks[i].bit_count())[:_MOST_COMPARED]:
            if not any(masks[i] | masks[j] == masks[j] != masks[i] for j in largest):
                largest.append(i)
        run = {i: self._run([i]) for i in largest}
        if not self.applies:
            largest = [i for i in largest if self._is_training(run[i])]
        sizes = {i: int(run[i].sum()) for i in largest}
        best: dict[int, int] = {}  # of those that wait for the same updates, the largest
        for i in sorted(largest, key=lambda i: -sizes[i]):
            best.setdefault(masks[i], i)
        return list(best.values())

    def _computed_assigns(self) -> list[int]:
        """Plain assignments of something computed from a variable or an input."""
        assigns = self.ops.assigns
        if not assigns.any():
            return []
        computed = self.ops.variables | self.ops.inputs
        restored = self.ops.savers
        for i in self.order:
            sources = self.links.data[i][1:] if assigns[i] else self.links.data[i]
            computed[i] |= bool(sources) and bool(computed[sources].any())
            computed[i] &= not restored[i]
        assigned: list[int] = np.flatnonzero(assigns & computed).tolist()
        return assigned

    def _updates_before(self, updates: list[int]) -> dict[int, int] | None:
        """Updates that lead to each node, as bits; None if it would take too long.

        Summaries and savers are passed over: they wait for updates, but do not train.
        """
        after = self._after(updates)
        if len(updates) * int(after.sum()) > _MOST_BITS:
            return None
        masks = {i: 1 << k for k, i in enumerate(updates)}
        places = [i for i in self.order if after[i]]
        for _ in range(2):  # accumulators close a second way round
            for i in places:
                mask = masks.get(i, 0)
                for source in (*self.links.data[i], *self.links.control[i]):
                    mask |= masks.get(source, 0)
                if mask:
                    masks[i] = mask
        return masks

    def _after(self, starts: Iterable[int]) -> BoolArray:
        reached = np.zeros(len(self.nodes), dtype=np.bool_)
        todo = list(starts)
        reached[todo] = True
        while todo:
            for reader in self.links.readers[todo.pop()]:
                if not reached[reader] and not self.ignored[reader]:
                    reached[reader] = True
                    todo.append(reader)
        return reached

    def _run(self, starts: Iterable[int]) -> BoolArray:
        """Ancestors of some nodes: their inputs, and nodes with effects that they wait for."""
        runs = np.zeros(len(self.nodes), dtype=np.bool_)
        waited = np.zeros(len(self.nodes), dtype=np.bool_)
        todo = [(i, self.nodes[i].op != "NoOp") for i in starts]
        acts = self.ops.acts.tolist()
        data, control = self.links.data, self.links.control
        while todo:
            i, is_read = todo.pop()
            is_read = is_read or acts[i]
            if runs[i] or (waited[i] and not is_read):
                continue
            if is_read:
                runs[i] = True
                todo += [(source, True) for source in data[i]]
            else:
                waited[i] = True
                todo += [(source, False) for source in data[i]]
            todo += [(source, False) for source in control[i]]
        return runs

    def _loose_updates(self, runs: BoolArray) -> BoolArray:
        """Moving averages and counters of this step that its train op does not wait for."""
        heavy = (self.ops.heavy | self.ops.applies | self.ignored).tolist()
        added = np.zeros_like(runs)
        others = set(self.others)
        for i in self.others:
            if not runs[i] and (new := self._light_need(i, runs, heavy, others)) is not None:
                added[new] = True
        return added

    def _light_need(
        self, start: int, runs: BoolArray, heavy: list[bool], others: set[int]
    ) -> list[int] | None:
        """Nodes that an update needs and that do not run yet; None if these are many."""
        needed, todo = {start}, [start]
        while todo:
            i = todo.pop()
            if i != start and (heavy[i] or i in others):
                return None
            for source in self.links.data[i]:
                if not runs[source] and source not in needed:
                    if len(needed) > _MOST_LIGHT:
                        return None
                    needed.add(source)
                    todo.append(source)
        return list(needed)

    def _everything(self) -> BoolArray:
        """Nodes of a graph without a training step: all but saving, summaries and initialisers."""
        initial = self.ops.assigns.copy()
        initial[self._computed_assigns()] = False
        starts = initial | self.ignored
        without_readers = np.array([not readers for readers in self.links.readers])
        idle = without_readers & self.ops.named({"NoOp"} | VARIABLES)
        return ~leads_only_to(self.links, starts, ~self.ops.variables) & ~idle
