"""Inlining: calls of functions in the library become the nodes of their bodies.

    RawGraph with PartitionedCall, While, If ...  ->  RawGraph of plain ops

A plain call disappears: who reads it reads what its function returns. So does a call of the old
kind, whose op is the name of the function. A While or an If stays as one node that reads what its
functions return (both branches; condition and body once), since only one of them runs, or runs
several times, which a graph cannot tell. Iterative, and bounded before anything is copied
(`unrolling`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from driple.errors import GraphError
from driple.graph.tf.outputs import output_of
from driple.graph.tf.raw import RawFunction, RawGraph, RawNode
from driple.graph.tf.unrolling import CallResults, UnrollBudget, node_of, output_number

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
_LOOPS = ("While", "StatelessWhile")
# An argument of a While: the name of its node, and the number of the argument.
_Argument = tuple[str, int]
_MAX_DEPTH = 64
# Prefixes that are tried for the body of a call until none of its names is taken.
_MOST_PREFIXES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Inlined:
    """A graph without calls.

    Attributes:
        nodes: all nodes; inputs name nodes of this list.
        num_inlined: how many of them came out of the library.
        unresolved: called functions that the library does not hold; their calls stay as nodes.
        signatures: names of the nodes whose outputs each signature of a SavedModel gives.
    """

    nodes: list[RawNode]
    num_inlined: int
    unresolved: tuple[str, ...]
    signatures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _State:
    nodes: list[RawNode] = field(default_factory=list)
    # All names that were ever given; a call that disappeared keeps its own.
    names: set[str] = field(default_factory=set)
    # What stands for output i of a call that disappeared.
    outputs: CallResults = field(default_factory=CallResults)
    num_inlined: int = 0
    budget: UnrollBudget = field(default_factory=UnrollBudget)
    unresolved: dict[str, None] = field(default_factory=dict)


def inline_functions(graph: RawGraph) -> Inlined:
    """Replace every call by the body of its function.

    Raises:
        GraphError: functions that call themselves, or unroll to more than the bounds allow.
    """
    if not graph.functions:
        names = {name for node in graph.nodes for name in _called(node)}
        return Inlined(
            nodes=graph.nodes,
            num_inlined=0,
            unresolved=tuple(sorted(names)),
            signatures={
                name: tuple(map(node_of, outputs)) for name, outputs in graph.signatures.items()
            },
        )
    state = _State(names={node.name for node in graph.nodes})
    todo = [(node, 0) for node in reversed(graph.nodes)]
    while todo:
        node, depth = todo.pop()
        calls = [node.op] if node.op in graph.functions else _called(node)
        state.budget.charge_names(node, len(calls))
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
        state.budget.charge(node, called)
        body = _expand(node, called, state)
        state.num_inlined += len(body)
        todo.extend((inner, depth + 1) for inner in reversed(body))
    for node in state.nodes:
        node.inputs = state.outputs.resolve(node.inputs, node, state.budget)
        node.starts = tuple(
            "".join(state.outputs.resolve([item], node, state.budget)[:1]) if item else ""
            for item in node.starts
        )
    return Inlined(
        nodes=state.nodes,
        num_inlined=state.num_inlined,
        unresolved=tuple(state.unresolved),
        signatures={
            name: tuple(
                map(node_of, state.outputs.resolve(outputs, RawNode(name, ""), state.budget))
            )
            for name, outputs in graph.signatures.items()
        },
    )


def _called(node: RawNode) -> list[str]:
    """Names of the functions that a node calls, if it is a call that is inlined."""
    if node.op not in _CALLS:
        return []
    return [name for key in _CALLS[node.op][0] for name in node.functions.get(key, ())]


def _expand(call: RawNode, called: Sequence[RawFunction], state: _State) -> list[RawNode]:
    """The nodes that a call becomes: the bodies, and for While and If the node itself."""
    data = [item for item in call.inputs if not item.startswith("^")]
    control = [item for item in call.inputs if item.startswith("^")]
    is_plain = call.op in _PLAIN_CALLS or call.op == called[0].name
    first = 0 if is_plain else _CALLS[call.op][1]
    nodes: list[RawNode] = []
    returned: list[list[str]] = []
    is_loop = call.op in _LOOPS and len(called) == len(_CALLS[call.op][0])
    changing = _changing(call, called[-1], first, is_loop=is_loop)
    carried: dict[int, _Argument] = {}
    waits: list[str] = []
    for i, function in enumerate(called):
        wanted = f"{call.name}/{function.name}.{i}" if len(called) > 1 else call.name
        prefix = _free_prefix(wanted, function, state.names)
        body, returns = _instantiate(function, prefix, data[first:], control, call.device)
        mine = {
            function.arguments[k]: at for k, at in changing.items() if k < len(function.arguments)
        }
        for node, original in zip(body, function.nodes, strict=True):
            node.carried = _carried(original.inputs, function, mine)
            node.loop = call.name if is_loop else call.loop
        position = first + sum(map(len, returned))
        reads = [function.returns[name] for name in function.outputs if name in function.returns]
        carried |= {position + k: at for k, at in _carried(reads, function, mine).items()}
        nodes += body
        returned.append(returns)
        waits += [f"^{prefix}{name}" for name in function.control_returns]
    if is_plain:
        # Control dependencies on the call wait for what it returns or must run, or for its inputs.
        waits = waits or ([] if returned[0] else [f"^{node_of(item)}" for item in call.inputs])
        state.outputs.add(call.name, returned[0], waits)
        return nodes
    results = [item for returns in returned for item in returns]
    gives_nothing = not results and len(called) == len(_called(call))
    stays = replace(
        call,
        shapes=() if gives_nothing else call.shapes,  # TensorFlow writes none where there is none
        inputs=[*data[:first], *(results or data[first:]), *control, *waits],
        functions={},
        carried=carried | {k: at for k, at in call.carried.items() if k < first},
        starts=tuple("" if k in call.carried else item for k, item in enumerate(data))
        if is_loop
        else (),
    )
    return [*nodes, stays]


def _changing(
    call: RawNode, body: RawFunction, first: int, *, is_loop: bool
) -> dict[int, _Argument]:
    """Arguments of a function that have another value in every turn of a loop, by number.

    They are those of a While that its body does not return as they are, and what the call itself is
    given of a loop around it.
    """
    changing = {k - first: at for k, at in call.carried.items() if k >= first}
    if is_loop:
        returned = [body.returns.get(name, "") for name in body.outputs]
        identity = {node.name: node for node in body.nodes if node.op == "Identity" and node.inputs}
        for k, name in enumerate(body.arguments):
            source, steps = returned[k] if k < len(returned) else "", len(identity)
            while source != name and steps and node_of(source) in identity:
                source, steps = identity[node_of(source)].inputs[0], steps - 1
            if source != name:
                changing[k] = (call.name, k)
    return changing


def _carried(
    inputs: Sequence[str], function: RawFunction, changing: Mapping[str, _Argument]
) -> dict[int, _Argument]:
    """Positions of a node's data inputs that are arguments that a loop changes."""
    if not changing:
        return {}
    own = {node.name for node in function.nodes} if any(":" in item for item in inputs) else set()
    data = [item for item in inputs if not item.startswith("^")]
    return {
        k: changing[item] for k, item in enumerate(data) if item in changing and item not in own
    }


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
    own = {node.name: node.op for node in function.nodes}
    renamed: dict[str, str] = {}

    def rename(reference: str) -> str:
        known = renamed.get(reference)
        if known is None:
            known = renamed[reference] = rename_once(reference)
        return known

    def rename_once(reference: str) -> str:
        mark = "^" if reference.startswith("^") else ""
        name = node_of(reference)
        if name in own:
            number = _output_in_body(reference, own[name])
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


def _output_in_body(reference: str, op: str) -> int:
    """Number of the output that `node:name:index` is."""
    parts = reference.split(":")
    number = output_number(reference)
    return output_of(op, parts[1], number) if len(parts) == 3 else number
