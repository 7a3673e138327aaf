"""Inlining: calls of functions in the library become the nodes of their bodies.

    RawGraph with PartitionedCall, While, If ...  ->  RawGraph of plain ops

A plain call disappears: who reads it reads what its function returns. So does a call of the old
kind, whose op is the name of the function. A While or an If stays as one node that reads what its
functions return (both branches; condition and body once), since only one of them runs, or runs
several times, which a graph cannot tell. Iterative and bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from driple.errors import GraphError
from driple.graph.raw import MAX_NODES, RawFunction, RawGraph, RawNode

__all__ = ["Inlined", "inline_functions", "node_of", "output_number"]

# Which attributes of a calling op hold functions, and from which input on theirs begin.
_CALLS: dict[str, tuple[tuple[str, ...], int]] = {
    "PartitionedCall": (("f",), 0),
    "StatefulPartitionedCall": (("f",), 0),
    "While": (("cond", "body"), 0),
    "StatelessWhile": (("cond", "body"), 0),
    "If": (("then_branch", "else_branch"), 1),
    "StatelessIf": (("then_branch", "else_branch"), 1),
    "Case": (("branches",), 1),
    "StatelessCase": (("branches",), 1),
}
_PLAIN_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_MAX_DEPTH = 64
# Calls vanish, so nodes alone do not bound the work: empty bodies that call twice double per level.
_MAX_CALLS = 100_000
# Control inputs of a call go to every input-less node of its body; together they are bounded too.
_MAX_CONTROL_COPIES = 10 * MAX_NODES
# Prefixes that are tried for the body of a call until none of its names is taken.
_MOST_PREFIXES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Inlined:
    """A graph without calls.

    Attributes:
        nodes: all nodes; inputs name nodes of this list.
        num_inlined: how many of them came out of the library.
        unresolved: called functions that the library does not hold; their calls stay as nodes.
    """

    nodes: list[RawNode]
    num_inlined: int
    unresolved: tuple[str, ...]


@dataclass(slots=True)
class _State:
    nodes: list[RawNode] = field(default_factory=list)
    # All names that were ever given; a call that disappeared keeps its own.
    names: set[str] = field(default_factory=set)
    # What stands for output i of a call that disappeared.
    outputs: dict[str, list[str]] = field(default_factory=dict)
    # What else runs before such a call is done.
    waits: dict[str, list[str]] = field(default_factory=dict)
    num_inlined: int = 0
    num_calls: int = 0
    num_control_copies: int = 0
    unresolved: dict[str, None] = field(default_factory=dict)


def node_of(reference: str) -> str:
    """The node that an input names: without `^` and without the output's number or name."""
    return reference.removeprefix("^").split(":", 1)[0]


def inline_functions(graph: RawGraph) -> Inlined:
    """Replace every call by the body of its function.

    Raises:
        GraphError: functions that call themselves, or more nodes than a graph may have.
    """
    if not graph.functions:
        names = {name for node in graph.nodes for name in _called(node)}
        return Inlined(nodes=graph.nodes, num_inlined=0, unresolved=tuple(sorted(names)))
    state = _State(names={node.name for node in graph.nodes})
    todo = [(node, 0) for node in reversed(graph.nodes)]
    while todo:
        node, depth = todo.pop()
        calls = [node.op] if node.op in graph.functions else _called(node)
        missing = [name for name in calls if name not in graph.functions]
        state.unresolved.update(dict.fromkeys(missing))
        called = [graph.functions[name] for name in calls if name in graph.functions]
        if not called or (missing and node.op in _PLAIN_CALLS):
            state.nodes.append(node)
            continue
        if depth >= _MAX_DEPTH:
            raise GraphError(
                f"function {called[0].name} is nested over {_MAX_DEPTH} deep, or calls itself; "
                "such a graph cannot be unrolled"
            )
        _charge(node, called, state)
        body = _expand(node, called, state)
        state.num_inlined += len(body)
        if len(state.nodes) + len(todo) + len(body) > MAX_NODES:
            raise GraphError(
                f"functions unroll to over {MAX_NODES} nodes; write the graph without them"
            )
        todo.extend((inner, depth + 1) for inner in reversed(body))
    for node in state.nodes:
        node.inputs = [found for item in node.inputs for found in _resolve(item, state)]
    return Inlined(
        nodes=state.nodes, num_inlined=state.num_inlined, unresolved=tuple(state.unresolved)
    )


def _called(node: RawNode) -> list[str]:
    """Names of the functions that a node calls, if it is a call that is inlined."""
    if node.op not in _CALLS:
        return []
    return [name for key in _CALLS[node.op][0] for name in node.functions.get(key, ())]


def _charge(call: RawNode, called: Sequence[RawFunction], state: _State) -> None:
    """Refuse a call whose unrolling goes over a bound, before it is unrolled."""
    num_control = sum(item.startswith("^") for item in call.inputs)
    rootless = sum(not node.inputs for function in called for node in function.nodes)
    state.num_calls += 1
    state.num_control_copies += num_control * rootless
    if state.num_calls > _MAX_CALLS or state.num_control_copies > _MAX_CONTROL_COPIES:
        raise GraphError(
            f"functions unroll to over {_MAX_CALLS} calls or {_MAX_CONTROL_COPIES} control inputs, "
            f"at node '{call.name[:80]}'; write the graph without them"
        )


def _expand(call: RawNode, called: Sequence[RawFunction], state: _State) -> list[RawNode]:
    """The nodes that a call becomes: the bodies, and for While and If the node itself."""
    data = [item for item in call.inputs if not item.startswith("^")]
    control = [item for item in call.inputs if item.startswith("^")]
    is_plain = call.op in _PLAIN_CALLS or call.op == called[0].name
    first = 0 if is_plain else _CALLS[call.op][1]
    nodes: list[RawNode] = []
    returned: list[list[str]] = []
    waits: list[str] = []
    for i, function in enumerate(called):
        wanted = f"{call.name}/{function.name}.{i}" if len(called) > 1 else call.name
        prefix = _free_prefix(wanted, function, state.names)
        body, returns = _instantiate(function, prefix, data[first:], control, call.device)
        nodes += body
        returned.append(returns)
        waits += [f"^{prefix}{name}" for name in function.control_returns]
    if is_plain:
        # Control dependencies on the call wait for what it returns or must run, or for its inputs.
        state.outputs[call.name] = returned[0]
        state.waits[call.name] = waits or (
            [] if returned[0] else [f"^{node_of(item)}" for item in call.inputs]
        )
        return nodes
    results = [item for returns in returned for item in returns]
    stays = replace(
        call, inputs=[*data[:first], *(results or data[first:]), *control, *waits], functions={}
    )
    return [*nodes, stays]


def _free_prefix(wanted: str, function: RawFunction, taken: set[str]) -> str:
    """The wanted prefix, numbered if a name under it is taken; the names of the body are now."""
    prefix, number = f"{wanted}/", 0
    while any(prefix + node.name in taken for node in function.nodes):
        number += 1
        if number > _MOST_PREFIXES:
            raise GraphError(
                f"names under '{wanted[:80]}/' to '{wanted[:80]}_{_MOST_PREFIXES}/' are all taken; "
                "rename the node that calls a function"
            )
        prefix = f"{wanted}_{number}/"
    taken.update(prefix + node.name for node in function.nodes)
    return prefix


def _instantiate(
    function: RawFunction, prefix: str, data: list[str], control: list[str], device: str
) -> tuple[list[RawNode], list[str]]:
    """A copy of the body under `prefix`, and what each output is there."""
    given = dict(zip(function.arguments, data, strict=False))
    own = {node.name for node in function.nodes}

    def rename(reference: str) -> str:
        mark = "^" if reference.startswith("^") else ""
        name = node_of(reference)
        if name in own:
            number = output_number(reference)
            return f"{mark}{prefix}{name}:{number}" if number else f"{mark}{prefix}{name}"
        return (
            given.get(name, f"{prefix}{name}") if not mark else f"^{node_of(given.get(name, name))}"
        )

    body = [
        replace(
            node,
            name=prefix + node.name,
            device=node.device or device,
            inputs=[rename(item) for item in node.inputs] + ([] if node.inputs else list(control)),
            colocated=tuple(prefix + name if name in own else name for name in node.colocated),
            frame=f"{prefix}{node.frame}" if node.frame else "",
        )
        for node in function.nodes
    ]
    returns = [
        rename(function.returns[name]) for name in function.outputs if name in function.returns
    ]
    return body, returns


def output_number(reference: str) -> int:
    """2 of `node:out:2` or `node:2`; 0 where none is given."""
    if ":" not in reference:
        return 0
    last = reference.rsplit(":", 1)[-1]
    plain = last.isascii() and last.isdigit() and len(last) <= 9
    return int(last) if plain else 0


def _resolve(reference: str, state: _State) -> list[str]:
    """What a reference to a call stands for; a control reference waits for all that it returns."""
    outputs = state.outputs
    found, todo, seen = [], [reference], set()
    while todo:
        item = todo.pop()
        name = node_of(item)
        if name not in outputs:
            found.append(item)
            continue
        if item in seen:
            continue
        seen.add(item)
        results = outputs[name]
        if item.startswith("^"):
            todo.extend(f"^{node_of(result)}" for result in results)
            todo.extend(state.waits[name])
        elif results:
            todo.append(results[min(output_number(item), len(results) - 1)])
    return found
