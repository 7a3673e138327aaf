"""FLOPs and bytes of one execution of an op, from its type and the shapes that it computes on.

A multiply-add counts two FLOPs, as in TensorFlow's profiler (`tensorflow/python/profiler/internal/
flops_registry.py`), whose numbers are kept where it has one. An op reads all its inputs once and
writes all its outputs once, unless a table below says otherwise: views move nothing, gathers read
only what they pick, what the caches save is left to the device model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from driple.graph.signature import OpSignature, Tensor
from driple.opcost.einsum import index_sizes

__all__ = ["OpCost", "cost_of_op", "flops_of_update"]


@dataclass(frozen=True, slots=True)
class OpCost:
    """Cost of one execution.

    Attributes:
        flops: floating-point operations; a multiply-add counts two.
        bytes_read: bytes of memory.
        bytes_written: bytes of memory.
        parameters: elements of the variables that it computes with.
        known: whether there is a formula for the op type, and the graph tells what it needs.
    """

    flops: float
    bytes_read: float
    bytes_written: float
    parameters: float
    known: bool = True


def cost_of_op(op: OpSignature) -> OpCost:
    """Cost of one execution of an op; without a formula no FLOPs, and all of its bytes."""
    if op.op_type in _FREE:
        return OpCost(0.0, 0.0, 0.0, 0.0)
    if op.op_type in _UPDATES:
        return _cost_of_update(op, _UPDATES[op.op_type])
    formula = _FLOPS.get(op.op_type)
    flops = formula(op) if formula else None
    written = float(sum(tensor.nbytes for tensor in op.outputs))
    read = _bytes_read(op, written)
    parameters = float(sum(tensor.elements for tensor in op.inputs if tensor.is_parameter))
    known = flops is not None or op.op_type in _MOVES
    return OpCost(float(flops or 0.0), read, written, parameters, known)


def flops_of_update(op_type: str) -> float:
    """FLOPs for each parameter of an optimizer's update; 0 of what is no update."""
    return float(_UPDATES[op_type].flops) if op_type in _UPDATES else 0.0


def _bytes_read(op: OpSignature, written: float) -> float:
    if op.op_type in _READS_WHAT_IT_WRITES:
        return written
    if op.op_type in _ONLY_WRITES:
        return 0.0
    return float(sum(tensor.nbytes for tensor in op.inputs))


# Helpers: sizes of inputs and outputs; 0 where the graph does not tell.


def _in(op: OpSignature, number: int) -> int:
    return op.inputs[number].elements if number < len(op.inputs) else 0


def _out(op: OpSignature) -> int:
    return op.outputs[0].elements if op.outputs else 0


def _shape(tensors: tuple[Tensor, ...], number: int) -> tuple[int, ...]:
    found = tensors[number].shape if number < len(tensors) else None
    return () if found is None else tuple(max(n, 1) for n in found)


def _window(op: OpSignature) -> int:
    return prod(dict(op.numbers).get("ksize", (1,)))


# Products. A filter is [height, width, in channels / groups, out channels].


def _per_output_of_conv(filter_shape: tuple[int, ...]) -> float:
    """FLOPs for one element of a convolution's output."""
    return 2 * prod(filter_shape[:-1]) if filter_shape else 0


def _conv(op: OpSignature) -> float:
    return _out(op) * _per_output_of_conv(_shape(op.inputs, 1))


def _conv_input_gradient(op: OpSignature) -> float:
    return _in(op, 2) * _per_output_of_conv(_shape(op.inputs, 1))


def _conv_filter_gradient(op: OpSignature) -> float:
    return _in(op, 2) * _per_output_of_conv(_shape(op.outputs, 0))


def _per_output_of_depthwise(filter_shape: tuple[int, ...]) -> float:
    return 2 * prod(filter_shape[:2]) if filter_shape else 0


def _depthwise(op: OpSignature) -> float:
    return _out(op) * _per_output_of_depthwise(_shape(op.inputs, 1))


def _depthwise_input_gradient(op: OpSignature) -> float:
    return _in(op, 2) * _per_output_of_depthwise(_shape(op.inputs, 1))


def _depthwise_filter_gradient(op: OpSignature) -> float:
    return _in(op, 2) * _per_output_of_depthwise(_shape(op.outputs, 0))


def _matmul(op: OpSignature) -> float:
    """2 m n k; k is the side of the first matrix that is not a side of the product."""
    made, left = _shape(op.outputs, 0), _shape(op.inputs, 0)
    if len(made) < 2 or len(left) < 2:
        return 0
    rows = left[-1] * left[-2]
    return 2 * prod(made) * (rows / made[-2])


def _einsum(op: OpSignature) -> float | None:
    """A multiply-add for every combination of indices; of one input, an addition."""
    sizes = index_sizes(op)
    if sizes is None:
        return None
    return float(prod(sizes.values())) * (2 if len(op.inputs) > 1 else 1)


# Element-wise and reductions.


def _per_output(flops: float) -> Callable[[OpSignature], float]:
    return lambda op: flops * _out(op)


def _per_input(flops: float, number: int = 0) -> Callable[[OpSignature], float]:
    return lambda op: flops * _in(op, number)


def _add_n(op: OpSignature) -> float:
    return _out(op) * max(len(op.inputs) - 1, 0)


def _reduce(op: OpSignature) -> float:
    """One operation for each element that is folded in."""
    return max(_in(op, 0) - _out(op), 0)


def _mean(op: OpSignature) -> float:
    return _in(op, 0)


def _pool(op: OpSignature) -> float:
    return _out(op) * _window(op)


def _max_pool_gradient(op: OpSignature) -> float:
    """Each window's search again, then one addition."""
    return _in(op, 1) * (_window(op) + 1)


def _average_pool_gradient(op: OpSignature) -> float:
    return 2 * _in(op, 1) * _window(op)


def _response_normalisation(op: OpSignature) -> float:
    """Squares, a sliding sum over 2 r + 1 channels, a power and a product per element."""
    radius = dict(op.numbers).get("depth_radius", (5,))[0]
    return _out(op) * (2 * radius + 1 + 4)


# Of a normalisation over n elements: mean 1, variance 3, normalise and scale 4; its gradient forms
# two sums (3) and combines them (8).
_NORMALISE, _NORMALISE_GRADIENT = 8, 11


# Updates of variables by optimizers.


@dataclass(frozen=True, slots=True)
class _Update:
    """What an optimizer does to one parameter, from its equations, and where its op has what.

    Attributes:
        flops: of one parameter.
        num_variables: the variable and its slots, the first inputs; all are read and written.
        gradient: position of the gradient among the inputs, sparse or not.
    """

    flops: int
    num_variables: int
    gradient: int


_UPDATES: Mapping[str, _Update] = MappingProxyType(
    {
        f"{kind}Apply{name}": update
        for kind in ("", "Resource", "Sparse", "ResourceSparse")
        for name, update in (
            ("GradientDescent", _Update(2, 1, 2)),
            ("Momentum", _Update(4, 2, 3)),
            ("KerasMomentum", _Update(4, 2, 3)),
            ("Adagrad", _Update(6, 2, 3)),
            ("AdagradV2", _Update(7, 2, 4)),
            ("RMSProp", _Update(11, 3, 7)),
            ("CenteredRMSProp", _Update(14, 4, 8)),
            ("Adam", _Update(12, 3, 9)),
        )
    }
)


def _cost_of_update(op: OpSignature, update: _Update) -> OpCost:
    """Variable and slots are read and written, as far as there is a gradient for them.

    That of a sparse gradient is for some rows only. Variables of a `Resource` op are handles, whose
    shape tells nothing.
    """
    gradient = op.inputs[update.gradient : update.gradient + 1]
    whole = () if "Resource" in op.op_type or "Sparse" in op.op_type else op.inputs[:1]
    told = next((tensor for tensor in (*whole, *gradient) if tensor.shape is not None), None)
    if told is None:
        return OpCost(0.0, 0.0, 0.0, 0.0, known=False)
    changed = float(update.num_variables * told.nbytes)
    handed = float(sum(tensor.nbytes for tensor in op.inputs[update.num_variables :]))
    return OpCost(
        flops=float(update.flops * told.elements),
        bytes_read=changed + handed,
        bytes_written=changed,
        parameters=float(update.num_variables * told.elements),
    )


_ONE_PER_OUTPUT = (
    "Add", "AddV2", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "TruncateDiv", "FloorDiv",
    "FloorMod", "Mod", "Maximum", "Minimum", "Pow", "Neg", "Abs", "Sign", "Square", "Sqrt", "Exp",
    "Expm1", "Log", "Log1p", "Reciprocal", "Inv", "Tanh", "Sigmoid", "Erf", "Sin", "Cos", "Relu",
    "Relu6", "Elu", "LeakyRelu", "Floor", "Ceil", "Round", "Rint", "Less", "LessEqual", "Greater",
    "GreaterEqual", "Equal", "NotEqual", "LogicalAnd", "LogicalOr", "LogicalNot", "Select",
    "SelectV2", "Where", "IsFinite", "IsInf", "IsNan", "BiasAdd", "BiasAddV1", "Cumsum", "ReluGrad",
    "Relu6Grad", "LeakyReluGrad", "EluGrad", "OneHot", "Range", "ClipByValue", "RandomUniform",
    "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "StatelessRandomUniformV2",
)  # fmt: skip
_TWO_PER_OUTPUT = ("Rsqrt", "SquaredDifference", "Softplus", "Softsign", "SigmoidGrad", "TanhGrad",
                   "SqrtGrad", "ReciprocalGrad", "InvGrad", "SoftplusGrad", "Selu")  # fmt: skip
_REDUCTIONS = ("Sum", "Prod", "Max", "Min", "All", "Any", "ArgMax", "ArgMin", "EuclideanNorm",
               "BiasAddGrad", "UnsortedSegmentSum", "SegmentSum")  # fmt: skip

_FLOPS: Mapping[str, Callable[[OpSignature], float | None]] = MappingProxyType(
    {
        **dict.fromkeys(_ONE_PER_OUTPUT, _per_output(1)),
        **dict.fromkeys(_TWO_PER_OUTPUT, _per_output(2)),
        **dict.fromkeys(_REDUCTIONS, _reduce),
        "Conv2D": _conv,
        "_FusedConv2D": _conv,
        "Conv2DBackpropInput": _conv_input_gradient,
        "Conv2DBackpropFilter": _conv_filter_gradient,
        "DepthwiseConv2dNative": _depthwise,
        "DepthwiseConv2dNativeBackpropInput": _depthwise_input_gradient,
        "DepthwiseConv2dNativeBackpropFilter": _depthwise_filter_gradient,
        **dict.fromkeys(
            ("MatMul", "_FusedMatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _matmul
        ),
        "Einsum": _einsum,
        "MaxPool": _pool,
        "MaxPoolV2": _pool,
        "MaxPoolWithArgmax": _pool,
        "AvgPool": _pool,
        "MaxPoolGrad": _max_pool_gradient,
        "AvgPoolGrad": _average_pool_gradient,
        "LRN": _response_normalisation,
        "LRNGrad": _response_normalisation,
        **dict.fromkeys(
            ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", "_FusedBatchNormEx"),
            _per_output(_NORMALISE),
        ),
        **dict.fromkeys(
            (
                "FusedBatchNormGrad",
                "FusedBatchNormGradV2",
                "FusedBatchNormGradV3",
                "_FusedBatchNormGradEx",
            ),
            _per_input(_NORMALISE_GRADIENT),
        ),
        "Softmax": _per_output(5),
        "LogSoftmax": _per_output(5),
        "SoftmaxCrossEntropyWithLogits": _per_input(8),
        "SparseSoftmaxCrossEntropyWithLogits": _per_input(7),
        "RsqrtGrad": _per_output(4),
        "L2Loss": _per_input(3),
        "AddN": _add_n,
        "AccumulateNV2": _add_n,
        "Mean": _mean,
        "InTopK": _per_input(1),
        "InTopKV2": _per_input(1),
        "TopKV2": _per_input(1),
    }
)

# Ops that copy: bytes, no arithmetic.
_MOVES = frozenset(
    {
        "Concat", "ConcatV2", "Split", "SplitV", "Slice", "StridedSlice", "StridedSliceGrad", "Pad",
        "PadV2", "MirrorPad", "Transpose", "Tile", "Pack", "Unpack", "Gather", "GatherV2",
        "GatherNd", "ResourceGather", "ScatterNd", "Cast", "Fill", "ZerosLike", "OnesLike", "Copy",
        "ReverseV2", "ReverseSequence", "DynamicStitch", "DynamicPartition", "TensorArrayGatherV3",
        "TensorArrayScatterV3", "TensorArrayReadV3", "TensorArrayWriteV3", "TensorArrayConcatV3",
        "TensorArraySplitV3", "TensorListStack", "TensorListGetItem", "TensorListSetItem",
        "TensorListFromTensor", "BroadcastTo", "Unique", "UniqueV2", "ExtractImagePatches",
        "Assign", "AssignAdd", "AssignSub", "ResizeBilinear", "SpaceToDepth", "DepthToSpace",
        "Roll", "StackPushV2", "StackPopV2", "InvertPermutation", "MatrixBandPart",
        "TensorScatterUpdate",
    }
)  # fmt: skip
# Of their inputs they read only what they hand on.
_READS_WHAT_IT_WRITES = frozenset(
    {
        "Slice", "StridedSlice", "Gather", "GatherV2", "GatherNd", "ResourceGather",
        "TensorArrayReadV3", "TensorListGetItem", "TensorArrayGatherV3", "TensorListStack",
    }
)  # fmt: skip
_ONLY_WRITES = frozenset(
    {
        "Fill", "ZerosLike", "OnesLike", "OneHot", "Range", "RandomUniform", "RandomUniformInt",
        "RandomStandardNormal", "TruncatedNormal", "StatelessRandomUniformV2",
    }
)  # fmt: skip
# Neither arithmetic nor bytes: names, views, control flow, and handles of what lies elsewhere.
_FREE = frozenset(
    {
        "Const", "Placeholder", "PlaceholderWithDefault", "Identity", "IdentityN", "Snapshot",
        "Reshape", "ExpandDims", "Squeeze", "Shape", "ShapeN", "Size", "Rank", "NoOp",
        "ControlTrigger", "StopGradient", "PreventGradient", "Enter", "RefEnter", "Exit", "RefExit",
        "Merge", "RefMerge", "Switch", "RefSwitch", "NextIteration", "RefNextIteration", "LoopCond",
        "BroadcastGradientArgs", "ConcatOffset", "Variable", "VariableV2", "VarHandleOp",
        "ReadVariableOp", "VarIsInitializedOp", "IsVariableInitialized", "Assert", "CheckNumerics",
        "TensorArrayV3", "TensorArraySizeV3", "TensorArrayGradV3", "TensorArrayCloseV3",
        "TensorListReserve", "EmptyTensorList", "TensorListElementShape", "TensorListLength",
        "StackV2", "StackCloseV2", "Bitcast", "EnsureShape", "Send", "Recv", "_Send", "_Recv",
        "_HostSend", "_HostRecv", "_Arg", "_Retval", "RefIdentity", "DebugIdentity",
        "ScalarSummary", "HistogramSummary", "MergeSummary",
    }
)  # fmt: skip
