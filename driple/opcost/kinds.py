"""Kinds of ops: a coarse grouping of op types, by what an op does to its data.

op type -> one of `KINDS`
"""

from __future__ import annotations

__all__ = ["KINDS", "kind_of"]

KINDS = (
    "convolution",
    "convolution_gradient",
    "matrix_product",
    "normalisation",
    "pooling",
    "softmax",
    "control_flow",
    "data_movement",
    "other",
)

_CONTROL_FLOW = frozenset(
    {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "ControlTrigger", "NoOp"}
)
_DATA_MOVEMENT = frozenset(
    {
        "Const",
        "Identity",
        "VariableV2",
        "Assign",
        "Reshape",
        "ExpandDims",
        "Squeeze",
        "Slice",
        "StridedSlice",
        "Split",
        "ConcatV2",
        "ConcatOffset",
        "Pack",
        "Pad",
        "Tile",
        "Transpose",
        "GatherV2",
        "Fill",
        "ZerosLike",
        "ShapeN",
        "Shape",
        "StackV2",
        "StackPushV2",
        "StackPopV2",
        "ReverseV2",
        "StopGradient",
        "Range",
        "InvertPermutation",
    }
)


def kind_of(op_type: str) -> str:
    """The kind of an op type; `other` for element-wise ops, reductions and all that is unknown."""
    if op_type in _CONTROL_FLOW:
        return "control_flow"
    if op_type in _DATA_MOVEMENT or op_type.startswith("TensorArray"):
        return "data_movement"
    for kind, words in (
        ("convolution_gradient", ("Conv2DBackprop", "NativeBackprop")),
        ("convolution", ("Conv2D", "Conv3D", "DepthwiseConv2dNative")),
        ("matrix_product", ("MatMul", "Einsum")),
        ("normalisation", ("BatchNorm", "LRN")),
        ("pooling", ("Pool",)),
        ("softmax", ("Softmax",)),
    ):
        if any(word in op_type for word in words):
            return kind
    return "other"
