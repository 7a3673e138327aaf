"""Lists of tensors that only take a tensor apart, as plain splits.

    SplitToSequence -> list -> SequenceAt(0), SequenceAt(1), ...  ==>  Split -> tensors

`torch.onnx.export(..., optimize=False)` writes `x.split(n)` and `x.chunk(n)` so. Other lists stay.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from driple.graph.onnx.library import array_of

__all__ = ["without_split_lists"]

_LIST, _PLACE = "SplitToSequence", "SequenceAt"
_MOST_PARTS = 4096


def without_split_lists(model: Any) -> None:
    """Replace in the graph each list of which single tensors of known sizes are taken."""
    if not any(node.op_type == _LIST for node in model.graph.node):
        return
    lists = _Lists(model.graph)
    splits = {
        node.output[0]: parts
        for node in model.graph.node
        if node.op_type == _LIST and (parts := lists.parts(node))
    }
    kept: list[Any] = []
    for node in model.graph.node:
        if node.op_type == _LIST and node.output[0] in splits:
            kept += lists.split(node, splits[node.output[0]])
        elif node.op_type != _PLACE or not any(name in splits for name in node.input[:1]):
            kept.append(node)
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del model.graph.node[:]
    model.graph.node.extend(copies)


class _Lists:
    """What is known of the lists of a graph.

    Args:
        graph: to which sizes of splits are added.
    """

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._outputs = {one.name for one in graph.output}
        self._readers: dict[str, list[Any]] = defaultdict(list)
        for node in graph.node:
            for name in node.input:
                self._readers[name].append(node)
        self._constants = _constants(graph)
        described = (*graph.value_info, *graph.input)
        self._dims = {one.name: one.type.tensor_type.shape.dim for one in described}

    def parts(self, node: Any) -> list[int]:
        """Sizes of the tensors of a list; empty if they are not known, or it is used otherwise."""
        if len(node.input) != 2 or len(node.output) != 1 or node.output[0] in self._outputs:
            return []
        given, users = self._constants.get(node.input[1]), self._readers[node.output[0]]
        places = [self._place(user) for user in users]
        if given is None or not places or min(places) < 0:
            return []
        sizes, is_scalar = given
        if is_scalar:
            sizes = self._equal(node, sizes[0])
        return sizes if max(places) < len(sizes) <= _MOST_PARTS else []

    def _place(self, user: Any) -> int:
        """Number of the tensor that a node takes from a list; -1 if it does something else."""
        if user.op_type != _PLACE or len(user.input) != 2 or len(user.output) != 1:
            return -1
        values, _ = self._constants.get(user.input[1], ([], False))
        return values[0] if len(values) == 1 else -1

    def _equal(self, node: Any, size: int) -> list[int]:
        """Parts of one size, the last of which may be smaller, where the file states the whole."""
        dims, axis = self._dims.get(node.input[0], ()), _axis_of(node)
        if not -len(dims) <= axis < len(dims) or not dims[axis].HasField("dim_value"):
            return []
        whole = int(dims[axis].dim_value)
        if not size > 0 or whole > size * _MOST_PARTS:
            return []
        return [size] * (whole // size) + [whole % size] * (whole % size > 0)

    def split(self, node: Any, sizes: list[int]) -> list[Any]:
        """The split, and copies of tensors that are taken from the list more than once."""
        from onnx import TensorProto, helper

        name = node.output[0]
        stored = helper.make_tensor(f"{name}/sizes", TensorProto.INT64, [len(sizes)], sizes)
        self._graph.initializer.append(stored)
        outputs = [f"{name}/{place}" for place in range(len(sizes))]
        copies = []
        named: set[int] = set()
        for user in self._readers[name]:
            place = self._place(user)
            if place in named:
                copies.append(helper.make_node("Identity", [outputs[place]], [user.output[0]]))
            else:
                outputs[place] = user.output[0]
                named.add(place)
        inputs = [node.input[0], stored.name]
        split = helper.make_node("Split", inputs, outputs, name=node.name, axis=_axis_of(node))
        split.metadata_props.extend(node.metadata_props)
        return [split, *copies]


def _axis_of(node: Any) -> int:
    return next((int(one.i) for one in node.attribute if one.name == "axis"), 0)


def _constants(graph: Any) -> dict[str, tuple[list[int], bool]]:
    """Sizes and places of lists by name, and whether each is a scalar; constants of this file."""
    from onnx import TensorProto

    wanted = {
        node.input[1]
        for node in graph.node
        if node.op_type in (_LIST, _PLACE) and len(node.input) > 1
    }
    tensors = {one.name: one for one in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.output) == 1:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    tensors[node.output[0]] = attribute.t
    constants = {}
    for name in wanted & set(tensors):
        tensor = tensors[name]
        small = len(tensor.dims) <= 1 and all(0 < size <= _MOST_PARTS for size in tensor.dims)
        is_whole = tensor.data_type in (TensorProto.INT64, TensorProto.INT32)
        if small and is_whole and not tensor.external_data:
            values = [int(size) for size in array_of(tensor, f"list {name[:60]!r}").reshape(-1)]
            constants[name] = (values, not tensor.dims)
    return constants
