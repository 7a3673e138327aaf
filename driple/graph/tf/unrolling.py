"""Bounds on inlining: what copies of function bodies add is counted before they are made.

    a call, its functions -> UnrollBudget.charge -> nothing, or GraphError
    references to calls   -> CallResults.ends_of -> what each stands for in the end

A small file can hold calls that unroll to any size. Each total is bounded over the whole graph, and
a call over a bound is refused before anything of it is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from driple.errors import GraphError
from driple.graph.tf.raw import RawFunction, RawNode

__all__ = ["CallResults", "UnrollBudget", "node_of", "output_number"]

# Calls vanish, so nodes alone do not bound the work: empty bodies that call twice double per level.
MAX_CALLS = 100_000
MAX_COPIED_NODES = 300_000
# Inputs, outputs and attribute values of copied nodes, and the inputs of each call.
MAX_COPIED_ITEMS = 3_000_000
# Names of copies begin with the name of their call, and those of nested calls with all of them.
MAX_NAME_BYTES = 256 * 2**20
# Control inputs of a call go to every input-less node of its body; together they are bounded too.
MAX_CONTROL_COPIES = MAX_COPIED_ITEMS
_LONGEST_ADDITION = len("/.12345_12/")  # what a prefix holds between and after the names
_WIDEST_BYTES = 4  # of a character in a Python string


def node_of(reference: str) -> str:
    """The node that an input names: without `^` and without the output's number or name."""
    return reference.removeprefix("^").split(":", 1)[0]


def output_number(reference: str) -> int:
    """2 of `node:out:2` or `node:2`; 0 where none is given."""
    if ":" not in reference:
        return 0
    last = reference.rsplit(":", 1)[-1]
    plain = last.isascii() and last.isdigit() and len(last) <= 9
    return int(last) if plain else 0


@dataclass(frozen=True, slots=True)
class _BodySize:
    """Nodes that one copy of a function's body adds, apart from the prefix of their names."""

    num_nodes: int
    num_rootless: int  # nodes without inputs, which get the control inputs of the call
    num_items: int  # inputs, outputs and attribute values, arguments and results
    num_names: int  # names that get a prefix
    num_characters: int  # of these names
    is_ascii: bool

    @classmethod
    def of(cls, function: RawFunction) -> _BodySize:
        """Count one body."""
        names = [
            name
            for node in function.nodes
            for name in (node.name, *node.inputs, *node.colocated, node.frame)
        ]
        names += (*function.returns.values(), *function.control_returns)
        num_items = sum(map(_num_items, function.nodes))
        return cls(
            num_nodes=len(function.nodes),
            num_rootless=sum(not node.inputs for node in function.nodes),
            num_items=num_items + len(function.arguments) + len(function.outputs),
            num_names=len(names),
            num_characters=sum(map(len, names)),
            is_ascii=function.name.isascii() and all(map(str.isascii, names)),
        )


def _num_items(node: RawNode) -> int:
    """Inputs, outputs with their dimensions, and attribute values of a node."""
    attributes: tuple[Mapping[str, Sequence[object]], ...]
    attributes = (node.types, node.functions, node.attributes)
    shapes = [
        *(node.shapes or ()),
        *(one for some in node.shape_attributes.values() for one in some),
    ]
    return (
        len(node.inputs)
        + len(node.colocated)
        + sum(1 + len(shape or ()) for shape in shapes)
        + sum(len(values) for one in attributes for values in one.values())
    )


@dataclass(slots=True)
class UnrollBudget:
    """Totals of all that inlining copies."""

    num_calls: int = 0
    num_nodes: int = 0
    num_items: int = 0
    num_control_copies: int = 0
    name_bytes: int = 0
    _sizes: dict[str, _BodySize] = field(default_factory=dict)

    def charge_names(self, call: RawNode, num_called: int) -> None:
        """Count the functions that a node names, in the file or not.

        Raises:
            GraphError: all calls name too many.
        """
        self.num_calls += num_called
        self._check(call)

    def charge(self, call: RawNode, called: Sequence[RawFunction]) -> None:
        """Count what unrolling a call adds.

        Raises:
            GraphError: a total goes over its bound; nothing of the call is copied yet.
        """
        num_control = sum(item.startswith("^") for item in call.inputs)
        for function in called:
            size = self._sizes.get(function.name)
            if size is None:
                size = self._sizes[function.name] = _BodySize.of(function)
            prefix = len(call.name) + len(function.name) + _LONGEST_ADDITION
            width = 1 if size.is_ascii and call.name.isascii() else _WIDEST_BYTES
            self.num_nodes += size.num_nodes
            self.num_items += len(call.inputs) + size.num_items
            self.num_control_copies += num_control * size.num_rootless
            self.name_bytes += width * (prefix * size.num_names + size.num_characters)
            self._check(call)

    def charge_items(self, node: RawNode, count: int) -> None:
        """Count inputs that stand for results of calls.

        Raises:
            GraphError: there are too many in all.
        """
        self.num_items += count
        self._check(node)

    def _check(self, node: RawNode) -> None:
        totals = (
            (self.num_calls, MAX_CALLS, "calls"),
            (self.num_nodes, MAX_COPIED_NODES, "nodes"),
            (self.num_items, MAX_COPIED_ITEMS, "inputs and attribute values"),
            (self.num_control_copies, MAX_CONTROL_COPIES, "control inputs"),
            (self.name_bytes, MAX_NAME_BYTES, "bytes of names"),
        )
        for total, most, what in totals:
            if total > most:
                raise GraphError(
                    f"functions unroll to over {most} {what}, at node '{node.name[:80]}'; "
                    "write the graph without them"
                )


class CallResults:
    """Replacements for the outputs of calls that were inlined.

    Each reference is followed once, whatever reads it. Calls that return each other's results in a
    circle return nothing.
    """

    def __init__(self) -> None:
        self._results: dict[str, list[str]] = {}
        self._waits: dict[str, list[str]] = {}
        self._ends: dict[str, tuple[str, ...]] = {}

    def add(self, call: str, results: list[str], waits: list[str]) -> None:
        """Set what the outputs of a call are, in order, and what else runs before it is done."""
        self._results[call] = results
        self._waits[call] = waits

    def resolve(self, references: Sequence[str], node: RawNode, budget: UnrollBudget) -> list[str]:
        """Inputs of a node, with inlined calls replaced.

        Raises:
            GraphError: control inputs wait for too many results in all.
        """
        inputs: list[str] = []
        for reference in references:
            if node_of(reference) not in self._results:
                inputs.append(reference)
                continue
            ends = self._ends_of(reference, node, budget)
            budget.charge_items(node, len(ends))
            inputs += ends
        return inputs

    def _ends_of(self, reference: str, node: RawNode, budget: UnrollBudget) -> tuple[str, ...]:
        """Depth first, without recursion: chains of calls may be long."""
        stack: list[tuple[str, list[str], Iterator[str]]] = []
        opened: set[str] = set()

        def enter(output: str) -> None:
            following = self._following(output)
            budget.charge_items(node, len(following))
            opened.add(output)
            stack.append((output, following, iter(following)))

        if reference not in self._ends:
            enter(reference)
        while stack:
            call, following, rest = stack[-1]
            for source in rest:
                if (
                    node_of(source) in self._results
                    and source not in self._ends
                    and source not in opened
                ):
                    enter(source)
                    break
            else:
                stack.pop()
                parts = [self._known(one) for one in following]
                budget.charge_items(node, sum(map(len, parts)))
                # One part is shared, not copied, so that chains of calls stay small.
                self._ends[call] = (
                    parts[0]
                    if len(parts) == 1
                    else tuple(dict.fromkeys(end for part in parts for end in part))
                )
        return self._ends[reference]

    def _known(self, reference: str) -> tuple[str, ...]:
        if node_of(reference) not in self._results:
            return (reference,)
        return self._ends.get(reference, ())

    def _following(self, reference: str) -> list[str]:
        """Replacements of a reference to a call, one step on, each once."""
        call = node_of(reference)
        results = self._results[call]
        if reference.startswith("^"):
            waits = (f"^{node_of(item)}" for item in (*results, *self._waits[call]))
            return list(dict.fromkeys(waits))
        return [results[min(output_number(reference), len(results) - 1)]] if results else []
