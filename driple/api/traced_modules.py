"""Modules of a job and modules that a trace names: which is which.

    paths of the graph, names of the trace -> seconds of each path of the graph

The profiler names a module by class and number (`Conv2d_3`), a graph by its path
(`layer1.0.conv1`). Both are trees in order of the first call: they are matched from the model down,
as long as a module has as many modules in it here as there, and classes fit the kinds of op. An
annotation (`record_function`) that has a path as its name is that module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from driple.api.module_tree import ModuleNode
    from driple.graph.opgraph import OpGraph

__all__ = ["match_modules", "module_paths", "predicted_seconds"]

_MOST_LEVELS = 100
# Classes whose modules have only views, and classes of which a graph may leave the op out.
_WITHOUT_OPS = ("Identity", "Flatten", "Unflatten")
_MAYBE_WITHOUT_OPS = ("Dropout",)
# Beginning of a class's name, and the kind of op that its module has.
_KIND_OF_CLASS: Mapping[str, str] = {
    "Conv": "conv",
    "BatchNorm": "batch_norm",
    "LayerNorm": "layer_norm",
    "Embedding": "embedding",
    "MaxPool": "max_pool",
}


@dataclass(slots=True)
class _Module:
    """A module of either side, and the modules in it in order of their first call."""

    name: str
    path: str
    order: int = 0
    seconds: float = 0.0
    kinds: set[str] = field(default_factory=set)
    children: list[_Module] = field(default_factory=list)

    def total_s(self) -> float:
        return self.seconds + sum(child.total_s() for child in self.children)

    def all_kinds(self) -> set[str]:
        return self.kinds.union(*(child.all_kinds() for child in self.children))


def module_paths(graph: OpGraph) -> frozenset[str]:
    """Paths of the graph's modules, those included that have no op of their own."""
    parts = [path.split(".")[:_MOST_LEVELS] for path in graph.modules]
    return frozenset(".".join(names[: i + 1]) for names in parts for i in range(len(names)))


def match_modules(graph: OpGraph, traced: Mapping[tuple[str, ...], float]) -> dict[str, float]:
    """Measured seconds of modules of the graph, each with the modules in it.

    Args:
        graph: of the job.
        traced: seconds of each module without those in it, by names from the outermost on.

    Returns:
        By path, of the modules that were matched; empty where none was.
    """
    known = module_paths(graph)
    by_name: dict[str, float] = {}
    for path, seconds in traced.items():
        for place, name in enumerate(path):  # each path once, though it may be within itself
            if name in known and name not in path[:place]:
                by_name[name] = by_name.get(name, 0.0) + seconds
    if by_name:
        return by_name
    model = _of_graph(graph)
    best: dict[str, float] = {}
    for candidate in _candidates(_of_trace(traced)):
        matched = dict(_matched(model, candidate))
        if len(matched) > max(len(best), 1):
            best = matched
    return best


def predicted_seconds(root: ModuleNode, separator: str) -> dict[str, float]:
    """Predicted seconds by path, those of chains that the tree has as one module included."""
    seconds: dict[str, float] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        if node.time_s is None:
            continue
        path = node.path
        for _ in range(node.name.count(separator) + 1):
            seconds.setdefault(path, node.time_s)
            path = path.rpartition(separator)[0]
    return seconds


def _of_graph(graph: OpGraph) -> _Module:
    from driple.measure.kineto.kinds import group_of_kind

    root = _Module("", "")
    nodes = {"": root}
    kinds = [op.kind for op in graph.signatures]
    rows = zip(graph.module_of.tolist(), graph.signature_of.tolist(), strict=True)
    for order, (number, signature) in enumerate(rows):
        path, around = "", root
        for part in (graph.modules[number].split(".") if number >= 0 else [])[:_MOST_LEVELS]:
            path = f"{path}.{part}" if path else part
            node = nodes.get(path)
            if node is None:
                node = nodes[path] = _Module(part, path, order)
                around.children.append(node)
            around = node
        around.kinds.add(group_of_kind(kinds[signature]))
    return root


def _of_trace(traced: Mapping[tuple[str, ...], float]) -> _Module:
    root = _Module("", "")
    nodes: dict[tuple[str, ...], _Module] = {(): root}
    for path, seconds in traced.items():
        around = root
        for depth in range(1, len(path) + 1):
            node = nodes.get(path[:depth])
            if node is None:
                node = nodes[path[:depth]] = _Module(path[depth - 1], "", len(nodes))
                around.children.append(node)
            around = node
        around.seconds += seconds
    return root


def _candidates(root: _Module) -> Iterator[_Module]:
    """Modules that may be the model: the outermost ones, and those within wrappers of one each."""
    for outer in root.children:
        node = outer
        for _ in range(_MOST_LEVELS):
            yield node
            if len(node.children) != 1:
                break
            node = node.children[0]


def _matched(own: _Module, other: _Module, depth: int = 0) -> Iterator[tuple[str, float]]:
    yield own.path, other.total_s()
    if depth >= _MOST_LEVELS:
        return
    for mine in _forms_of_graph(own):
        for theirs in _forms_of_trace(other):
            if mine and len(mine) == len(theirs) and all(map(_fits, mine, theirs)):
                for node, twin in zip(mine, theirs, strict=True):
                    yield from _matched(node, twin, depth + 1)
                return


def _forms_of_graph(module: _Module) -> Iterator[Sequence[_Module]]:
    """The modules in it; then with lists of modules, which are never called, taken apart."""
    yield module.children
    flat = module.children
    for _ in range(2):
        apart: list[_Module] = []
        for child in flat:
            is_list = bool(child.children) and not child.kinds
            numbered = is_list and all(inner.name.isdecimal() for inner in child.children)
            apart += child.children if numbered else [child]
        if len(apart) == len(flat):
            return
        flat = sorted(apart, key=lambda node: node.order)
        yield flat


def _forms_of_trace(module: _Module) -> Iterator[Sequence[_Module]]:
    """The modules in it; then without those that took no time, or whose ops a graph leaves out."""
    for left_out in ((), _WITHOUT_OPS, (*_WITHOUT_OPS, *_MAYBE_WITHOUT_OPS)):
        named = [child for child in module.children if not child.name.startswith(left_out)]
        yield named
        yield [child for child in named if child.total_s() > 0]


def _fits(own: _Module, other: _Module) -> bool:
    """Whether the class in the trace may have the kinds of op of the graph."""
    wanted = [kind for begin, kind in _KIND_OF_CLASS.items() if other.name.startswith(begin)]
    return not wanted or bool(other.children) or wanted[0] in own.all_kinds()
