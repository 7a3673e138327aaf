"""FLOPs of element-wise ops, reductions, norms and losses: a few for each element.

A transcendental or special function counts as one operation, as in TensorFlow's profiler; random
numbers too. An op whose output has no shape counts the elements that broadcasting gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from driple.graph.cost.shapes import Formula, elements_in, elements_out
from driple.graph.signature import OpSignature

__all__ = ["ELEMENTWISE_FLOPS", "RANDOM", "SAME_SHAPE"]

# Of a normalisation over n elements: mean 1, variance 3, normalise and scale 4; its gradient forms
# two sums (3) and combines them (8).
_NORMALISE, _NORMALISE_GRADIENT = 8, 11


def _per_output(flops: float) -> Formula:
    return lambda op: flops * elements_out(op)


def _per_input(flops: float, position: int = 0) -> Formula:
    return lambda op: flops * elements_in(op, position)


def _add_n(op: OpSignature) -> float:
    return float(elements_out(op) * max(len(op.inputs) - 1, 0))


def _reduce(op: OpSignature) -> float:
    """One operation for each element that is folded in."""
    return float(max(elements_in(op, 0) - elements_out(op), 0))


_ONE_PER_OUTPUT = (
    "Add", "AddV2", "Sub", "Mul", "MulNoNan", "RealDiv", "Div", "DivNoNan", "TruncateDiv",
    "FloorDiv", "FloorMod", "TruncateMod", "Mod", "Maximum", "Minimum", "Pow", "Neg", "Abs", "Sign",
    "Square", "Sqrt", "Exp", "Expm1", "Log", "Log1p", "Reciprocal", "Inv", "Tanh", "Sigmoid",
    "Erf", "Erfc", "Erfinv", "Ndtri", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Atan2", "Sinh",
    "Cosh", "Asinh", "Acosh", "Atanh", "Lgamma", "Digamma", "Polygamma", "Igamma", "Igammac",
    "IgammaGradA", "Zeta", "Betainc", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e", "BesselJ0",
    "BesselJ1", "BesselK0", "BesselK0e", "BesselK1", "BesselK1e", "BesselY0", "BesselY1", "Dawsn",
    "Expint", "FresnelCos", "FresnelSin", "Spence", "NextAfter", "Relu", "Relu6", "Elu",
    "LeakyRelu", "Floor", "Ceil", "Round", "Rint", "Less", "LessEqual", "Greater", "GreaterEqual",
    "Equal", "NotEqual", "ApproximateEqual", "LogicalAnd", "LogicalOr", "LogicalNot", "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "Invert", "LeftShift", "RightShift", "PopulationCount", "Select",
    "SelectV2", "IsFinite", "IsInf", "IsNan", "BiasAdd", "BiasAddV1", "ReluGrad", "Relu6Grad",
    "LeakyReluGrad", "EluGrad", "ClipByValue", "Conj", "ComplexAbs", "Angle", "AssignAdd",
    "AssignSub",
)  # fmt: skip
_TWO_PER_OUTPUT = (
    "Rsqrt", "SquaredDifference", "Softplus", "Softsign", "SigmoidGrad", "TanhGrad", "SqrtGrad",
    "ReciprocalGrad", "InvGrad", "SoftplusGrad", "SoftsignGrad", "Selu", "SeluGrad", "Xdivy",
    "Xlogy", "Xlog1py",
)  # fmt: skip
_OTHERS_PER_OUTPUT = ("Where", "Cumsum", "Cumprod", "Range", "LinSpace")
# Draws: they read sizes and seeds, and write numbers.
RANDOM = frozenset(
    {
        "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal",
        "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson", "RandomPoissonV2",
        "StatefulUniform", "StatefulUniformInt", "StatefulUniformFullInt", "StatefulStandardNormal",
        "StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulRandomBinomial",
        "NonDeterministicInts", "StatelessRandomUniform", "StatelessRandomUniformV2",
        "StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessRandomUniformFullInt",
        "StatelessRandomUniformFullIntV2", "StatelessRandomNormal", "StatelessRandomNormalV2",
        "StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "StatelessRandomBinomial",
        "StatelessRandomPoisson", "StatelessRandomGammaV2", "StatelessRandomGammaV3",
        "StatelessParameterizedTruncatedNormal",
    }
)  # fmt: skip
_REDUCTIONS = (
    "Sum", "Prod", "Max", "Min", "All", "Any", "ArgMax", "ArgMin", "EuclideanNorm", "BiasAddGrad",
)  # fmt: skip
# Ops of these types give one element for each of their inputs, broadcast.
SAME_SHAPE = frozenset(
    {*_ONE_PER_OUTPUT, *_TWO_PER_OUTPUT, "RsqrtGrad", "AddN", "AccumulateNV2", "Cumsum", "Cumprod",
     "Cast", "ZerosLike", "OnesLike", "Identity", "Softmax", "LogSoftmax"}
) - {"Select", "BiasAdd", "BiasAddV1"}  # fmt: skip

ELEMENTWISE_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {
        **dict.fromkeys((*_ONE_PER_OUTPUT, *_OTHERS_PER_OUTPUT, *RANDOM), _per_output(1)),
        **dict.fromkeys(_TWO_PER_OUTPUT, _per_output(2)),
        **dict.fromkeys(_REDUCTIONS, _reduce),
        "RsqrtGrad": _per_output(4),
        "CumulativeLogsumexp": _per_output(4),
        "Mean": _per_input(1),
        "L2Loss": _per_input(3),
        "TileGrad": _reduce,
        "AddN": _add_n,
        "AccumulateNV2": _add_n,
        "InTopK": _per_input(1),
        "InTopKV2": _per_input(1),
        "TopK": _per_input(1),
        "TopKV2": _per_input(1),
        "ApproxTopK": _per_input(1),
        "NthElement": _per_input(1),
        "Bucketize": _per_input(1),
        "Multinomial": _per_input(1),
        "StatelessMultinomial": _per_input(1),
        "RandomGammaGrad": _per_output(1),
        "AssignAddVariableOp": _per_input(1, 1),
        "AssignSubVariableOp": _per_input(1, 1),
        "Softmax": _per_output(5),
        "LogSoftmax": _per_output(5),
        "SoftmaxCrossEntropyWithLogits": _per_input(8),
        "SparseSoftmaxCrossEntropyWithLogits": _per_input(7),
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
                "BatchNormWithGlobalNormalizationGrad",
            ),
            _per_input(_NORMALISE_GRADIENT),
        ),
        # Mean and variance are given.
        "BatchNormWithGlobalNormalization": _per_output(4),
        # Clamp (2), scale and shift there (2), round, and back (2); the gradient compares, picks.
        "FakeQuantWithMinMaxArgs": _per_output(7),
        "FakeQuantWithMinMaxVars": _per_output(7),
        "FakeQuantWithMinMaxVarsPerChannel": _per_output(7),
        "FakeQuantWithMinMaxArgsGradient": _per_output(3),
        "FakeQuantWithMinMaxVarsGradient": _per_output(4),
        "FakeQuantWithMinMaxVarsPerChannelGradient": _per_output(4),
        "QuantizeAndDequantizeV2": _per_output(7),
        "QuantizeAndDequantizeV3": _per_output(7),
        "QuantizeAndDequantizeV4": _per_output(7),
        "QuantizeAndDequantizeV4Grad": _per_output(3),
    }
)
