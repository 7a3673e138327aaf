"""Replace what feeds a training step from outside by placeholders with known shapes.

Queues, iterators, lookups and Python functions cannot run without their files; the step only needs
tensors of their types and shapes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["StepInput", "TruthError", "base_name", "replace_inputs", "value_of"]

_INPUTS = re.compile(
    r"IteratorGetNext\w*|Queue\w*Dequeue\w*|PyFunc\w*|EagerPyFunc|.*PlaceholderWithDefault"
    r"|Placeholder(V2)?|ReadFile|ReaderRead\w*|Unstage|StagePeek|LookupTableFind(V2)?"
)
_ATTRS_OF_TYPES = ("component_types", "output_types", "Tout", "dtypes", "dtype", "T")


class TruthError(Exception):
    """A graph cannot be run as it is; says what is missing."""


def base_name(name: str) -> str:
    """The op of an input: without the mark of a control edge and the number of the output."""
    return name.lstrip("^").split(":")[0]


def _types(node: Any) -> list[int]:
    for name in _ATTRS_OF_TYPES:
        if name in node.attr:
            attribute = node.attr[name]
            return list(attribute.list.type) if attribute.HasField("list") else [attribute.type]
    raise TruthError(f"input {node.name} ({node.op}) names no type")


def _shapes(node: Any, nodes: Mapping[str, Any]) -> list[Any]:
    for name in ("_output_shapes", "output_shapes", "shapes", "shape"):
        if name in node.attr:
            value = node.attr[name]
            shapes = list(value.list.shape) if value.HasField("list") else [value.shape]
            # Before version 24 of TensorFlow's graphs, a placeholder without a shape had rank 0.
            is_open = node.op == "Placeholder" and name == "shape" and not shapes[0].dim
            if shapes and not is_open and not all(s.unknown_rank for s in shapes):
                return shapes
    if "Dequeue" in node.op:
        return _queue_shapes(node, nodes)
    return []


def _queue_shapes(node: Any, nodes: Mapping[str, Any]) -> list[Any]:
    from tensorflow.core.framework import tensor_shape_pb2
    from tensorflow.python.framework import tensor_util

    queue = nodes[base_name(node.input[0])]
    shapes = list(queue.attr["shapes"].list.shape)
    if "Many" not in node.op and "UpTo" not in node.op:
        return shapes
    count = nodes[base_name(node.input[1])]
    size = int(tensor_util.MakeNdarray(count.attr["value"].tensor)) if count.op == "Const" else -1
    batched = []
    for shape in shapes:
        shape_with_batch = tensor_shape_pb2.TensorShapeProto()
        shape_with_batch.dim.add().size = size
        shape_with_batch.dim.extend(shape.dim)
        batched.append(shape_with_batch)
    return batched


@dataclass(frozen=True)
class StepInput:
    """A placeholder that stands for a tensor from outside; a shape of None is unknown."""

    name: str
    dtype: int
    shape: tuple[int, ...] | None


def replace_inputs(
    graph: Any, target: str, batch: int | None, given: Mapping[str, Sequence[int]]
) -> tuple[Any, list[StepInput]]:
    """The ancestors of a train op; what feeds them from outside becomes placeholders."""
    from tensorflow.core.framework import graph_pb2

    nodes = {node.name: node for node in graph.node}
    replaced = graph_pb2.GraphDef(versions=graph.versions, library=graph.library)
    inputs: dict[str, StepInput] = {}
    done, waiting = set(), [target]
    cut: dict[str, list[int]] = {}
    while waiting:
        name = waiting.pop()
        if name in done or name in cut:
            continue
        node = nodes[name]
        if _INPUTS.fullmatch(node.op) or any(k.split(":")[0] == name for k in given):
            cut[name] = _types(node)
            continue
        done.add(name)
        waiting.extend(base_name(n) for n in node.input)
    for name in sorted(done):
        node = replaced.node.add()
        node.CopyFrom(nodes[name])
        kept: list[str] = []
        for entry in node.input:
            if base_name(entry) not in cut:
                kept.append(entry)
                continue
            if entry.startswith("^"):
                continue
            number = int(entry.split(":")[1]) if ":" in entry else 0
            fed = f"{base_name(entry)}_fed{number}"
            if fed not in inputs:
                source = nodes[base_name(entry)]
                inputs[fed] = StepInput(
                    fed,
                    cut[source.name][number],
                    _bound(source, number, nodes, batch, given),
                )
            kept.append(fed)
        del node.input[:]
        node.input.extend(kept)
    for step_input in inputs.values():
        node = replaced.node.add(name=step_input.name, op="Placeholder")
        node.attr["dtype"].type = step_input.dtype
        node.attr["shape"].shape.SetInParent()
        for size in step_input.shape or ():
            node.attr["shape"].shape.dim.add().size = size
    return replaced, list(inputs.values())


def _bound(
    node: Any, number: int, nodes: Mapping[str, Any], batch: int | None, given: Mapping[str, Any]
) -> tuple[int, ...]:
    for key in (f"{node.name}:{number}", node.name):
        if key in given:
            return tuple(given[key])
    if (
        node.op == "PlaceholderWithDefault"
        and node.input
        and nodes[base_name(node.input[0])].op == "Const"
    ):
        return tuple(
            d.size for d in nodes[base_name(node.input[0])].attr["value"].tensor.tensor_shape.dim
        )
    shapes = _shapes(node, nodes)
    if number >= len(shapes) or shapes[number].unknown_rank:
        raise TruthError(f"input {node.name}:{number} ({node.op}) has no shape; give one")
    sizes = [d.size for d in shapes[number].dim]
    if sizes and sizes[0] < 0 and batch:
        sizes[0] = batch
    if any(size < 0 for size in sizes):
        raise TruthError(f"input {node.name}:{number} ({node.op}) has shape {sizes}; give one")
    return tuple(sizes)


def value_of(
    step_input: StepInput, given: Mapping[str, float | Sequence[float]], rng: np.random.Generator
) -> Any:
    """Values of an input: given ones, repeated to its shape; else 1, true, "0" or random."""
    import tensorflow as tf

    dtype = tf.dtypes.as_dtype(step_input.dtype).as_numpy_dtype
    name, _, number = step_input.name.rpartition("_fed")
    value = given.get(f"{name}:{number}", given.get(name))
    shape = step_input.shape or ()
    if value is not None:
        return np.resize(np.array(value), shape).astype(dtype)
    if dtype is object:
        return np.full(shape, b"0", dtype=object)
    if np.issubdtype(dtype, np.floating):
        return rng.uniform(0.05, 0.95, shape).astype(dtype)
    return np.ones(shape, dtype)
