"""Shapes, types and small values of all tensors of a model, by `onnx.shape_inference`, op by op.

    inputs with their sizes, weights --infer each node, fold small values--> Sizes

An open dimension counts as 1. What depends on one is found by a second walk with another number in
its place: a shape that differs is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from driple.errors import GraphError
from driple.graph.onnx.branches import same_branches
from driple.graph.onnx.folding import fold
from driple.graph.onnx.inputs import BoundInputs
from driple.graph.onnx.library import (
    array_of,
    checked_attributes,
    name_of,
    outputs_of,
    schema_of,
)
from driple.graph.onnx.model import DEFAULT_DOMAINS, MOST_VALUES
from driple.graph.onnx.types import dtype_of

__all__ = ["Sizes", "TensorFacts", "infer_sizes"]

_LARGEST_ELEMENTS = 2**48
_AS_FIRST_INPUT = frozenset({"GroupNormalization", "MeanVarianceNormalization"})
_MOST_DEPTH = 16  # of branches in branches
_OPEN, _OTHER = 1, 3  # numbers for open sizes: what counts, and one to compare with


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What is known of a tensor.

    Attributes:
        shape: sizes; None for an unknown rank, -1 for a size that only the data decide.
        dtype: number of TensorFlow's DataType; 0 if unknown.
        value: its elements, if it is small and depends on no data.
    """

    shape: tuple[int, ...] | None
    dtype: int
    value: npt.NDArray[Any] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sizes:
    """All tensors of a model.

    Attributes:
        tensors: facts by the tensor's name.
        nodes: nodes of the graph in order, with the chosen branch in place of each If.
        stored: `TensorProto` of each weight, those of chosen branches included, by name.
        guessed: names of the If nodes whose condition depends on data.
        open: names of tensors whose sizes depend on open dimensions of the inputs.
    """

    tensors: Mapping[str, TensorFacts]
    nodes: Sequence[Any]
    stored: frozenset[str]
    guessed: tuple[str, ...] = ()
    open: frozenset[str] = field(default_factory=frozenset)


def infer_sizes(model: Any, inputs: BoundInputs) -> Sizes:
    """Derive the shapes of a model's tensors.

    Args:
        model: checked (`parse_model`).
        inputs: their sizes.

    Raises:
        GraphError: shapes that contradict each other, or nodes in no order.
    """
    walk = _first_walk(model, inputs)
    sizes = Sizes(
        tensors=walk.tensors,
        nodes=tuple(walk.nodes),
        stored=frozenset(walk.stored),
        guessed=tuple(walk.guessed),
    )
    if not inputs.open_forms():
        return sizes
    try:
        other = _Walk(model, inputs, _OTHER).tensors
    except GraphError:
        # The open dimensions do not fit together but as they are: nothing is certain.
        return replace(sizes, open=frozenset(sizes.tensors))
    changed = (
        name
        for name, facts in sizes.tensors.items()
        if name not in other or facts.shape != other[name].shape
    )
    return replace(sizes, open=frozenset(changed))


class _TooSmallError(GraphError):
    """An image or sequence is smaller than the window of a node that reads it."""


def _first_walk(model: Any, inputs: BoundInputs) -> _Walk:
    try:
        return _Walk(model, inputs, _OPEN)
    except _TooSmallError as error:
        open_forms = inputs.open_forms()
        if not open_forms:
            raise GraphError(f"{error}: its inputs are too small for it") from None
        raise GraphError(
            f"{error}, as open sizes of inputs count as {_OPEN}; set them with "
            f"{' '.join(f'--input {form}' for form in open_forms)}, with a number for each ?"
        ) from None


class _Walk:
    """Facts of all tensors, with a number in place of each open size."""

    def __init__(self, model: Any, inputs: BoundInputs, unset: int) -> None:
        graph = model.graph
        self.tensors: dict[str, TensorFacts] = {"": TensorFacts((), 0)}
        self.nodes: list[Any] = []
        self.stored: set[str] = set()
        self.guessed: list[str] = []
        self.inference = _Inference(model)
        for given in graph.input:
            if given.name in inputs.sizes:
                shape = inputs.shape_of(given.name, unset=unset)
                facts = TensorFacts(shape, dtype_of(given.type.tensor_type.elem_type))
                _check(facts, f"input {given.name[:60]!r} is")
                self.tensors[given.name] = facts
        self._store(graph)
        todo: list[Iterator[Any]] = [iter(graph.node)]
        while todo:
            node = next(todo[-1], None)
            if node is None:
                todo.pop()
            elif node.op_type == "If":
                if len(todo) > _MOST_DEPTH:
                    raise GraphError(f"branches are nested over {_MOST_DEPTH} deep")
                todo.append(iter(self._branch(node)))
            else:
                self._add(node)

    def _store(self, graph: Any) -> None:
        """Facts of the weights of a graph or branch."""
        for tensor in graph.initializer:
            shape = tuple(tensor.dims)
            is_here = bool(tensor.raw_data) or not tensor.external_data
            value = None
            if prod(shape) <= MOST_VALUES and is_here:
                value = array_of(tensor, f"weight {tensor.name[:60]!r}")
            self.tensors[tensor.name] = TensorFacts(shape, dtype_of(tensor.data_type), value)
            self.stored.add(tensor.name)

    def _branch(self, node: Any) -> list[Any]:
        """Nodes of the branch that an If takes; of the larger one if its condition is unknown."""
        from onnx import helper

        branches = {one.name: one.g for one in node.attribute}
        then, other = branches.get("then_branch"), branches.get("else_branch")
        condition = next(iter(node.input), "")
        known = self.tensors[condition].value if condition in self.tensors else None
        if then is None or other is None or len(node.input) != 1:
            raise GraphError(f"If {name_of(node)} has no two branches; the file is corrupt")
        if same_branches(then, other):
            chosen = then
        elif known is None or known.size != 1:
            self.guessed.append(node.name or node.output[0])
            chosen = then if len(then.node) >= len(other.node) else other
        else:
            chosen = then if bool(known.reshape(-1)[0]) else other
        self._store(chosen)
        results = zip(chosen.output, node.output, strict=False)
        return [*chosen.node, *(helper.make_node("Identity", [inner.name], [name])
                                for inner, name in results if name)]  # fmt: skip

    def _add(self, node: Any) -> None:
        for name in node.input:
            if name not in self.tensors:
                raise GraphError(
                    f"node {name_of(node)} reads {name[:60]!r}, which nothing before it gives; the "
                    "file is corrupt"
                )
        self.nodes.append(node)
        self.tensors |= self.inference.outputs(node, self.tensors)


class _Inference:
    """Shapes of one node after the other."""

    def __init__(self, model: Any) -> None:
        self.opsets = list(model.opset_import)
        self.version = {one.domain: one.version for one in model.opset_import}

    def outputs(self, node: Any, tensors: Mapping[str, TensorFacts]) -> dict[str, TensorFacts]:
        """Facts of a node's outputs."""
        version = self.version.get(node.domain, 0) or max(
            self.version.get(domain, 0) for domain in DEFAULT_DOMAINS
        )
        schema = schema_of(node, version)
        attributes = checked_attributes(node, schema)
        read = [tensors[name] for name in node.input]
        if node.op_type == "Constant":
            return {node.output[0]: _constant(attributes)}
        shapes = self._shapes(schema, node, read)
        value = None
        if node.op_type in ("Shape", "Size") and read[0].shape is not None:
            value = _size_value(node.op_type, attributes, read[0].shape)
        else:
            known = [facts.value if name else None
                     for name, facts in zip(node.input, read, strict=True)]  # fmt: skip
            op_type = node.op_type
            if op_type == "CastLike":
                op_type, attributes = "Cast", {"to": _ELEM_TYPES.get(read[1].dtype, 0)}
            value = fold(op_type, attributes, known)
        facts_of = {}
        for i, name in enumerate(node.output):
            if name:
                kind = shapes.get(name)
                facts = _facts(kind, read, node)
                if i == 0 and value is not None:
                    facts = TensorFacts(value.shape, facts.dtype, value)
                _check(facts, f"node {name_of(node)} gives")
                facts_of[name] = facts
        return facts_of

    def _shapes(self, schema: Any, node: Any, read: list[TensorFacts]) -> Mapping[str, Any]:
        """`TypeProto` of each output, as far as ONNX's own rules give one."""
        types, values = {}, {}
        for name, facts in zip(node.input, read, strict=True):
            if name:
                types[name] = _type_of(facts)
                if facts.value is not None and facts.value.size <= MOST_VALUES:
                    values[name] = facts.value
        return outputs_of(schema, node, types, values, self.opsets)


def _constant(attributes: Mapping[str, Any]) -> TensorFacts:
    """The tensor that a Constant gives."""
    for name, kind in (("value_float", np.float32), ("value_int", np.int64),
                       ("value_floats", np.float32), ("value_ints", np.int64)):  # fmt: skip
        if name in attributes:
            value = np.asarray(attributes[name], dtype=kind)
            return TensorFacts(value.shape, dtype_of(1 if kind is np.float32 else 7), value)
    tensor = attributes.get("value")
    if tensor is None:
        return TensorFacts((), 0)  # text, or a sparse tensor
    shape = tuple(tensor.dims)
    stored = None
    if prod(shape) <= MOST_VALUES and not tensor.external_data:
        stored = array_of(tensor, "a constant")
    return TensorFacts(shape, dtype_of(tensor.data_type), stored)


def _size_value(
    op_type: str, attributes: Mapping[str, Any], shape: tuple[int, ...]
) -> npt.NDArray[Any] | None:
    if -1 in shape:
        return None
    if op_type == "Size":
        return np.asarray(prod(shape), dtype=np.int64)
    start, end = attributes.get("start", 0), attributes.get("end", len(shape))
    return np.asarray(shape[start:end], dtype=np.int64)


def _facts(kind: Any, read: list[TensorFacts], node: Any) -> TensorFacts:
    if kind is None or not kind.HasField("tensor_type"):
        if node.op_type in _AS_FIRST_INPUT and read:
            return TensorFacts(read[0].shape, read[0].dtype)
        return TensorFacts(None, read[0].dtype if read else 0)
    tensor = kind.tensor_type
    dtype = dtype_of(tensor.elem_type)
    if not tensor.HasField("shape"):
        return TensorFacts(None, dtype)
    given = [int(dim.dim_value) if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    if any(size is not None and size < 0 for size in given):
        raise _TooSmallError(
            f"node {name_of(node)} gives a tensor of the shape {str(given[:9])[:80]}"
        )
    return TensorFacts(tuple(-1 if size is None else size for size in given), dtype)


def _type_of(facts: TensorFacts) -> Any:
    """`TypeProto` of a tensor."""
    import onnx

    shape = None
    if facts.shape is not None:
        shape = [None if size == -1 else size for size in facts.shape]
    return onnx.helper.make_tensor_type_proto(_ELEM_TYPES.get(facts.dtype, 1), shape)


_ELEM_TYPES = {dtype_of(number): number for number in range(1, 27) if dtype_of(number)}


def _check(facts: TensorFacts, what: str) -> None:
    if facts.shape is None:
        return
    if any(size < -1 for size in facts.shape) or prod(map(abs, facts.shape)) > _LARGEST_ELEMENTS:
        raise GraphError(
            f"{what} a tensor of the shape {str(list(facts.shape[:9]))[:80]}; the file is corrupt"
        )
