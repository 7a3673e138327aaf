"""What each module of a model costs, from the modules or name scopes of a graph's ops.

    OpGraph, numbers per op -> ModuleNode: a tree in which a module includes the modules within it

A PyTorch graph names the module of each op. A TensorFlow graph has name scopes instead: those of
the backward pass repeat the scopes of the forward pass after `gradients/`, and count there.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from driple.estimate import optional_estimate
from driple.graph.opgraph import OpGraph

if TYPE_CHECKING:
    from driple.api.json_types.inspect import ModuleJson

__all__ = ["ModuleNode", "module_tree"]

FloatArray = npt.NDArray[np.float64]

# Scopes of TensorFlow that hold a backward pass: tf.gradients, tf.GradientTape.
_BACKWARD_SCOPE = re.compile(r"(gradients|gradient_tape)(_\d+)?")
_MOST_LEVELS = 100  # of a path; a graph may come from anywhere


@dataclass(slots=True)
class ModuleNode:
    """A module with all that is within it.

    Attributes:
        name: last part of its path; the whole path of a chain of modules with one child each.
        path: its path in the graph; empty for the whole model.
        ops: ops of a step.
        flops: FLOPs of a step.
        moved_bytes: bytes of memory that a step reads and writes.
        time_s: seconds of a step on the device; None if unknown.
        parameters: number of parameters, in elements.
        parameter_bytes: bytes of these.
        children: modules within it, the one with the most time or FLOPs first.
    """

    name: str
    path: str
    ops: int = 0
    flops: float = 0.0
    moved_bytes: float = 0.0
    time_s: float | None = None
    parameters: int = 0
    parameter_bytes: int = 0
    children: list[ModuleNode] = field(default_factory=list)

    def to_dict(self, depth: int) -> ModuleJson:
        """The module with `depth` levels below it."""
        return {
            "name": self.name,
            "path": self.path,
            "ops": self.ops,
            "flops": self.flops,
            "memory_bytes": self.moved_bytes,
            "time_s": optional_estimate(self.time_s, "simulator"),
            "parameters": self.parameters,
            "parameter_bytes": self.parameter_bytes,
            "children": [child.to_dict(depth - 1) for child in self.children] if depth > 0 else [],
        }


def module_tree(
    graph: OpGraph, flops: FloatArray, moved_bytes: FloatArray, times_s: FloatArray | None
) -> ModuleNode | None:
    """The modules of a graph; None where neither modules nor name scopes group its ops.

    Args:
        graph: of a training step.
        flops: shape [num_nodes], of a step.
        moved_bytes: shape [num_nodes].
        times_s: shape [num_nodes], seconds on the device; None if unknown.
    """
    separator = "." if graph.modules else "/"
    paths = _paths(graph)
    if not any(paths):
        return None
    tree = _Tree(separator, timed=times_s is not None)
    ops: Counter[str] = Counter(paths)
    sums: dict[str, list[float]] = {path: [0.0, 0.0, 0.0] for path in ops}
    seconds = np.zeros(len(paths)) if times_s is None else times_s
    for path, *numbers in zip(
        paths, flops.tolist(), moved_bytes.tolist(), seconds.tolist(), strict=True
    ):
        total = sums[path]
        for i, number in enumerate(numbers):
            total[i] += number
    for path, count in ops.items():
        tree.add_ops(path, count, *sums[path])
    for path, elements, nbytes in _parameters(graph, paths):
        tree.add_parameters(path, elements, nbytes)
    return _joined(tree.root, separator)


def _paths(graph: OpGraph) -> list[str]:
    """Path of each op's module; empty for ops of the model itself."""
    if graph.modules:
        return ["" if i < 0 else graph.modules[i] for i in graph.module_of.tolist()]
    return [_scope(name) for name in graph.names]


def _scope(name: str) -> str:
    """Scope of the forward op that a TensorFlow op is, or is the gradient of."""
    parts = name.split("/")[:-1]
    for i in range(len(parts) - 1, -1, -1):
        if _BACKWARD_SCOPE.fullmatch(parts[i]):
            parts = parts[i + 1 :]
            break
    for i, part in enumerate(parts):
        if part.endswith("_grad"):
            return "/".join(parts[:i])
    return "/".join(parts)


def _parameters(graph: OpGraph, paths: list[str]) -> list[tuple[str, int, int]]:
    """Module, elements and bytes of each parameter: its name's, else that of the first reader."""
    table = graph.parameters
    known = set(graph.modules)
    readers: dict[int, int] = {}
    for parameter, node in table.readers.tolist():
        readers.setdefault(parameter, node)
    rows = []
    for i, (name, elements, nbytes) in enumerate(
        zip(table.names, table.elements.tolist(), table.nbytes.tolist(), strict=True)
    ):
        own = name.rpartition(".")[0]
        reader = readers.get(i)
        if own not in known and reader is not None:
            own = paths[reader]
        elif own not in known and not graph.modules:
            own = _scope(name)
        rows.append((own, elements, nbytes))
    return rows


class _Tree:
    """Modules by path, each with its parent."""

    def __init__(self, separator: str, *, timed: bool) -> None:
        self.separator, self.timed = separator, timed
        self.root = self._node("", "")
        self.nodes = {"": self.root}

    def _node(self, name: str, path: str) -> ModuleNode:
        return ModuleNode(name=name, path=path, time_s=0.0 if self.timed else None)

    def add_ops(
        self, path: str, ops: int, flops: float, moved_bytes: float, seconds: float
    ) -> None:
        """Count ops of a module in it and in all modules around it."""
        for node in self._chain(path):
            node.ops += ops
            node.flops += flops
            node.moved_bytes += moved_bytes
            if node.time_s is not None:
                node.time_s += seconds

    def add_parameters(self, path: str, elements: int, nbytes: int) -> None:
        """Count a parameter of a module in it and in all modules around it."""
        for node in self._chain(path):
            node.parameters += elements
            node.parameter_bytes += nbytes

    def _chain(self, path: str) -> list[ModuleNode]:
        """The module and all around it, the model first."""
        chain, walked = [self.root], ""
        for part in path.split(self.separator)[:_MOST_LEVELS] if path else ():
            walked = f"{walked}{self.separator}{part}" if walked else part
            if walked not in self.nodes:
                self.nodes[walked] = self._node(part, walked)
                chain[-1].children.append(self.nodes[walked])
            chain.append(self.nodes[walked])
        return chain


def _joined(root: ModuleNode, separator: str) -> ModuleNode:
    """The tree with chains of single children as one module, and the costliest modules first."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        while node.path and len(node.children) == 1 and node.children[0].ops == node.ops:
            (only,) = node.children
            node.name, node.path = f"{node.name}{separator}{only.name}", only.path
            node.children = only.children
        node.children.sort(key=lambda one: (-(one.time_s or 0.0), -one.flops, one.path))
        waiting += node.children
    return root
