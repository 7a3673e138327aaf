"""Which stored tensors of a model are its parameters.

    initializers, constants, who reads them -> names of the parameters

A file does not mark what was trained. PyTorch's exporter says of each tensor whether it was a
parameter or a buffer; otherwise a floating-point tensor is a parameter where a layer reads it as a
weight, and an initializer also where it is added, multiplied or joined to data, unless it is a
single number or a mask. Between tensor and reader may stand ops that only rearrange: PyTorch's
older exporter cuts the gates of a recurrent layer by Slice and puts them in ONNX's order by Concat.
There the rearranged weight is the parameter, since the framework keeps it in one tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from driple.graph.onnx.sizes import Sizes, TensorFacts
from driple.graph.onnx.types import FLOATS

__all__ = ["find_parameters"]

# Inputs that are weights of a layer.
_WEIGHTS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "Conv": (1, 2), "ConvTranspose": (1, 2), "Gemm": (0, 1, 2), "MatMul": (0, 1),
        "BatchNormalization": (1, 2), "InstanceNormalization": (1, 2),
        "LayerNormalization": (1, 2), "GroupNormalization": (1, 2), "RMSNormalization": (1,),
        "PRelu": (1,), "LSTM": (1, 2, 3, 7), "GRU": (1, 2, 3), "RNN": (1, 2, 3), "Gather": (0,),
        "Einsum": (0, 1, 2, 3), "DeformConv": (1, 3),
    }
)  # fmt: skip
# Ops that an initializer may reach as a parameter: biases, scales, tokens, positions.
_JOINED = frozenset(
    {"Add", "Sub", "Mul", "Div", "Concat", "Expand", "Where", "Sum", "Tile", "GatherElements",
     "GatherND", "Slice", "Split"}
)  # fmt: skip
# Ops that hand the elements of a tensor on, all or some; of a Concat, of several tensors.
_VIEWS = frozenset(
    {"Identity", "Transpose", "Reshape", "Cast", "Squeeze", "Unsqueeze", "Flatten", "Slice",
     "Concat", "Split"}
)  # fmt: skip
_CUTS = frozenset({"Slice", "Concat", "Split"})
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_STATISTICS: Mapping[str, tuple[int, ...]] = MappingProxyType({"BatchNormalization": (3, 4)})
# Buffers of PyTorch's and transformers' modules.
_BUFFERS = ("running_mean", "running_var", "inv_freq", "original_inv_freq", "masked_bias",
            "attn_mask", "relative_coords_table", "num_batches_tracked")  # fmt: skip
_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
# Nodes that hold a tensor; files of ONNX's own tests fill their weights with ConstantOfShape.
_STORED = frozenset({"Constant", "ConstantOfShape"})
_MASK = -1e4  # what a mask adds to what must not be seen
_MOST_DEPTH = 8
_MOST_STEPS = 100  # from a recurrent layer's weight back to what it is made of


def find_parameters(model: Any, sizes: Sizes) -> tuple[str, ...]:
    """Names of the tensors of a checked model that are parameters, in the order of the file.

    An output of an Identity is one of its own if it stands for a stored tensor of equal values:
    PyTorch's older exporter stores those once.

    Args:
        model: checked (`parse_model`).
        sizes: of its tensors.
    """
    initializers = sizes.stored
    constants = {name for node in sizes.nodes if node.op_type in _STORED for name in node.output}
    stored = {
        name
        for name in (*initializers, *constants)
        if sizes.tensors[name].dtype in FLOATS and prod(sizes.tensors[name].shape or ()) > 0
    }
    stored -= _neutral(sizes)
    copies = _copies(stored, sizes)
    stored |= copies
    rearranged = _rearranged(sizes, stored)
    joined = set(rearranged.values())
    uses = _uses(sizes.nodes, stored)
    marked = _marked(model.graph)
    names = []
    for name in sizes.tensors:
        if name in joined:
            names.append(name)
        if name in rearranged:
            continue
        is_used = name in uses.weights or (
            name in uses.joined
            and name in initializers | copies
            and not marked  # PyTorch marks all of its own; others are constants that it folded
            and _may_join(name, sizes.tensors[name])
        )
        if name not in stored or name in uses.statistics or not marked.get(name, is_used):
            continue
        if marked.get(name) or not name.endswith(_BUFFERS):
            names.append(name)
    return tuple(names)


@dataclass(frozen=True, slots=True)
class _Uses:
    """Stored tensors by what reads them, also through reshapes and the like."""

    weights: set[str] = field(default_factory=set)
    joined: set[str] = field(default_factory=set)
    statistics: set[str] = field(default_factory=set)


def _uses(nodes: Sequence[Any], stored: set[str]) -> _Uses:
    uses = _Uses()
    roots = {name: frozenset({name}) for name in stored}
    depth = dict.fromkeys(stored, 0)
    for node in nodes:
        read = [name for name in node.input if name]
        handed_on = read if node.op_type == "Concat" else read[:1]
        is_view = node.op_type in _VIEWS and handed_on and all(
            depth.get(name, _MOST_DEPTH) < _MOST_DEPTH for name in handed_on
        )  # fmt: skip
        if is_view:
            for name in set(node.output) - stored:
                roots[name] = frozenset().union(*(roots[each] for each in handed_on))
                depth[name] = 1 + max(depth[each] for each in handed_on)
            if node.op_type not in _JOINED:
                continue
        for position, name in enumerate(node.input):
            if name not in roots:
                continue
            if position in _STATISTICS.get(node.op_type, ()):
                uses.statistics.update(roots[name])
            elif position in _WEIGHTS.get(node.op_type, ()):
                uses.weights.update(roots[name])
            elif node.op_type in _JOINED:
                uses.joined.update(roots[name])
    return uses


def _rearranged(sizes: Sizes, stored: set[str]) -> dict[str, str]:
    """Stored tensors that are cut and joined again to one weight of a recurrent layer, and it."""
    maker = {name: node for node in sizes.nodes for name in node.output if name}
    whole: dict[str, str] = {}
    taken: set[str] = set()
    weights = (
        name
        for node in sizes.nodes
        if node.op_type in _RECURRENT
        for name in node.input[1:4]
        if name and name not in stored
    )
    for name in dict.fromkeys(weights):
        leaves, is_cut = _leaves(name, maker, stored)
        shape = sizes.tensors[name].shape
        if len(leaves) != 1 or not is_cut or shape is None or leaves & taken:
            continue
        (leaf,) = leaves
        if prod(shape) == prod(sizes.tensors[leaf].shape or ()):
            whole[leaf] = name
            taken.add(leaf)
    return whole


def _leaves(name: str, maker: Mapping[str, Any], stored: set[str]) -> tuple[frozenset[str], bool]:
    """Stored tensors that a tensor is made of, and whether any is cut; none if data is among it."""
    leaves, waiting, is_cut, steps = set(), [name], False, 0
    while waiting:
        each = waiting.pop()
        steps += 1
        if each in stored:
            leaves.add(each)
            continue
        node = maker.get(each)
        if node is None or node.op_type not in _VIEWS or steps > _MOST_STEPS:
            return frozenset(), False
        is_cut = is_cut or node.op_type in _CUTS
        waiting += node.input if node.op_type == "Concat" else node.input[:1]
    return frozenset(leaves), is_cut


def _marked(graph: Any) -> dict[str, bool]:
    """Whether PyTorch's exporter calls a tensor a parameter, where it calls it anything."""
    marks = {}
    for value in graph.value_info:
        for entry in value.metadata_props:
            if entry.key == _KIND:
                marks[value.name] = entry.value == "PARAMETER"
    return marks


def _may_join(name: str, facts: TensorFacts) -> bool:
    """Whether a tensor that meets data element by element is neither a mask nor one factor."""
    is_named = "." in name and not name.startswith(("/", "onnx::"))
    if prod(facts.shape or ()) <= 1 and not is_named:
        return False
    if facts.value is None:
        return True
    values = np.asarray(facts.value, dtype=np.float64)
    return bool(np.isfinite(values).all()) and float(values.min()) > _MASK


def _neutral(sizes: Sizes) -> set[str]:
    """Constants that are all zeros or all ones, which an exporter gives a norm without weights."""
    neutral = set()
    for node in sizes.nodes:
        value = sizes.tensors[node.output[0]].value if node.op_type == "Constant" else None
        if value is None or not value.size or value.dtype.kind != "f":
            continue
        first = float(value.flat[0])
        if first in (0.0, 1.0) and bool((value == first).all()):
            neutral.add(node.output[0])
    return neutral


def _copies(stored: set[str], sizes: Sizes) -> set[str]:
    """Outputs of Identity nodes that stand for a stored tensor of equal values.

    A tensor all of whose elements are one number (a bias that begins with zeros), or one of one
    dimension whose values are not in the file, was merged with others; any other is shared.
    """
    copies = set()
    for node in sizes.nodes:
        if node.op_type == "Identity" and len(node.input) == 1 and node.input[0] in stored:
            facts = sizes.tensors[node.input[0]]
            if facts.value is None:
                is_merged = len(facts.shape or ()) <= 1
            else:
                values = facts.value.reshape(-1)
                is_merged = bool((values == values[0]).all())
            if is_merged:
                copies.add(node.output[0])
    return copies
