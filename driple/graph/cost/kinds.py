"""Kinds of ops: op types that a device runs at one speed, few enough to learn from a hundred runs.

op type -> one of KINDS
"""

from __future__ import annotations

from driple.graph.cost.recurrent import RECURRENT

__all__ = ["CONVOLUTION_KINDS", "KINDS", "PRODUCTS", "kind_of"]

KINDS = (
    "convolution",
    "input_gradient",
    "filter_gradient",
    "matmul",
    "normalisation",
    "pooling",
    "softmax",
    "control",
    "lists",
    "elementwise",
)
# Kinds whose time follows from their multiply-adds; all others move memory.
PRODUCTS = KINDS[:4]
# A convolution and its two gradients.
CONVOLUTION_KINDS = KINDS[:3]

_CONTROL = {
    "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "Identity", "IdentityN",
    "Const", "NoOp", "VarHandleOp", "Placeholder", "StopGradient", "Reshape", "Shape", "ShapeN",
    "Squeeze", "ExpandDims", "Rank", "Size", "BroadcastGradientArgs", "ControlTrigger", "RefEnter",
    "RefSwitch", "RefExit", "RefMerge", "RefNextIteration", "RefIdentity", "ReadVariableOp",
    "_ReadVariablesOp", "_VarHandlesOp", "VariableShape", "PlaceholderWithDefault", "HostConst",
    "PreventGradient", "Snapshot", "EnsureShape", "Bitcast", "_Arg", "_Retval", "_Send", "_Recv",
    "Assert", "CheckNumerics", "TensorListReserve", "EmptyTensorList",
}  # fmt: skip
# The first part of a name that is found in the op type decides.
_PARTS = (
    ("SparseTensorDenseMatMul", "elementwise"),  # bound by the rows that it picks
    ("TridiagonalMatMul", "elementwise"),
    ("Conv2DBackpropInput", "input_gradient"),
    ("Conv2dNativeBackpropInput", "input_gradient"),
    ("Conv2DBackpropFilter", "filter_gradient"),
    ("Conv2dNativeBackpropFilter", "filter_gradient"),
    ("Conv3DBackpropInput", "input_gradient"),
    ("Conv3DBackpropFilter", "filter_gradient"),
    ("Conv2D", "convolution"),
    ("Conv2d", "convolution"),
    ("Conv3D", "convolution"),
    ("MatMul", "matmul"),
    ("Einsum", "matmul"),
    ("BatchNorm", "normalisation"),
    ("LayerNorm", "normalisation"),
    ("Pool", "pooling"),
    ("LRN", "pooling"),
    ("Softmax", "softmax"),
    ("TensorList", "lists"),
    ("TensorArray", "lists"),
    ("Stack", "lists"),
)


def kind_of(op_type: str) -> str:
    """The kind of an op type; `elementwise` is all that is nothing else.

    Local response normalisation slides over channels as pooling does over pixels, and takes as
    long: it counts as `pooling`.
    """
    if op_type in _CONTROL:
        return "control"
    if op_type in RECURRENT:
        return "matmul"
    for part, kind in _PARTS:
        if part in op_type:
            return kind
    return "elementwise"
