"""A model in another precision: all of it, or products alone as PyTorch's autocast has it.

    nodes, sizes, "bf16"      --> every float is half                      (model.to(bfloat16))
    nodes, sizes, "amp-bf16"  --> casts before products and before sums, weights stay single

The lists are those of `torch.autocast` for CUDA, by the operators of ONNX.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from driple.graph.datatypes import NUMBER_OF
from driple.graph.onnx.sizes import Sizes, TensorFacts

__all__ = ["HALF_OF", "is_autocast", "with_precision"]

_FLOAT = NUMBER_OF["DT_FLOAT"]
_BFLOAT16, _HALF = NUMBER_OF["DT_BFLOAT16"], NUMBER_OF["DT_HALF"]
HALF_OF: Mapping[str, int] = MappingProxyType(
    {"bf16": _BFLOAT16, "amp-bf16": _BFLOAT16, "fp16": _HALF, "amp-fp16": _HALF}
)
_ELEM_TYPES = {_FLOAT: 1, _HALF: 10, _BFLOAT16: 16}  # onnx.TensorProto.DataType
_AUTOCAST = "amp-"
_LOWER = frozenset(
    {
        "Conv",
        "ConvTranspose",
        "MatMul",
        "Gemm",
        "Einsum",
        "LSTM",
        "GRU",
        "RNN",
        "PRelu",
        "Attention",
    }
)
_SINGLE = frozenset(
    {"Exp", "Log", "Pow", "Reciprocal", "Softplus", "LayerNormalization", "GroupNormalization",
     "RMSNormalization", "Softmax", "LogSoftmax", "Resize", "Upsample", "ReduceSum", "ReduceProd",
     "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "CumSum", "LpNormalization",
     "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "Acos", "Asin", "Cosh", "Sinh", "Tan"}
)  # fmt: skip
# Those whose result is of the type of their first input, whatever their weights are.
_AS_FIRST = frozenset({"BatchNormalization", "InstanceNormalization", "Dropout"})


def is_autocast(precision: str) -> bool:
    """Whether weights stay in single precision and products do not."""
    return precision.startswith(_AUTOCAST)


def with_precision(
    nodes: Sequence[Any], sizes: Sizes, parameters: Collection[str], precision: str
) -> tuple[Sequence[Any], Sizes]:
    """The nodes and tensors of a model in a precision; as they are in `fp32`.

    Args:
        nodes: of the forward pass, in order.
        sizes: of its tensors.
        parameters: names of the parameters, each of which is cast once a step.
        precision: such as `bf16` or `amp-bf16`.
    """
    half = HALF_OF.get(precision)
    if half is None:
        return nodes, sizes
    if is_autocast(precision):
        return _Autocast(sizes, frozenset(parameters), half).run(nodes)
    tensors = {
        name: replace(facts, dtype=half) if facts.dtype == _FLOAT else facts
        for name, facts in sizes.tensors.items()
    }
    return nodes, replace(sizes, tensors=tensors)


class _Autocast:
    """Types of all tensors so far, and the nodes with the casts between them."""

    def __init__(self, sizes: Sizes, parameters: frozenset[str], half: int) -> None:
        self._sizes, self._parameters, self._half = sizes, parameters, half
        self._tensors: dict[str, TensorFacts] = dict(sizes.tensors)
        self._open = set(sizes.open)
        self._cast: dict[tuple[str, int], str] = {}
        self._nodes: list[Any] = []

    def run(self, nodes: Sequence[Any]) -> tuple[Sequence[Any], Sizes]:
        """All nodes, in order."""
        for node in nodes:
            wanted = self._half if node.op_type in _LOWER else _FLOAT
            if node.op_type in _LOWER or node.op_type in _SINGLE:
                self._nodes.append(self._with_casts(node, wanted))
                self._give(node, wanted)
                continue
            self._nodes.append(node)
            if node.op_type not in ("Cast", "CastLike", "Constant"):
                self._give(node, self._widest(node))
        return self._nodes, replace(
            self._sizes, tensors=self._tensors, nodes=self._nodes, open=frozenset(self._open)
        )

    def _give(self, node: Any, dtype: int) -> None:
        """Set the type of the node's results that are floats."""
        for name in node.output:
            facts = self._tensors[name]
            if name and facts.dtype in (_FLOAT, self._half):
                self._tensors[name] = replace(facts, dtype=dtype)

    def _widest(self, node: Any) -> int:
        """Type of what several inputs give: single if one that is no mere number is."""
        names = node.input[:1] if node.op_type in _AS_FIRST else node.input
        facts = [self._tensors[name] for name in names if name]
        floats = [each for each in facts if each.dtype in (_FLOAT, self._half)]
        large = [each for each in floats if each.value is None or each.value.size > 1]
        is_half = bool(large) and all(each.dtype == self._half for each in large)
        return self._half if is_half else _FLOAT

    def _with_casts(self, node: Any, dtype: int) -> Any:
        """The node, reading its floats in a type."""
        from onnx import NodeProto

        cast_node = NodeProto()
        cast_node.CopyFrom(node)
        for place, name in enumerate(node.input):
            if name and self._tensors[name].dtype in (_FLOAT, self._half) and (
                self._tensors[name].dtype != dtype
            ):  # fmt: skip
                cast_node.input[place] = self._casted(name, dtype, node.name)
        return cast_node

    def _casted(self, name: str, dtype: int, reader: str) -> str:
        """Name of a tensor's copy of another type; of a parameter there is one in a step."""
        from onnx import helper

        known = self._cast.get((name, dtype))
        if known is not None and name in self._parameters:
            return known
        copy = f"{name}/cast_{len(self._cast)}"
        label = f"{reader}/cast" if reader else ""
        self._nodes.append(
            helper.make_node("Cast", [name], [copy], name=label, to=_ELEM_TYPES[dtype])
        )
        self._tensors[copy] = replace(self._tensors[name], dtype=dtype)
        self._cast[name, dtype] = copy
        self._open |= {copy} if name in self._open else set()
        return copy
