"""FLOPs of element-wise ops, reductions, norms and losses: a few for each element.

A transcendental or special function counts as one operation, as in TensorFlow's profiler; random
numbers too. An op whose output has no shape counts the elements that broadcasting gives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from types import MappingProxyType

from driple.graph.cost.shapes import Formula, elements_in, elements_out, shape_in
from driple.graph.signature import OpSignature

__all__ = ["ELEMENTWISE_FLOPS", "INFERENCE", "RANDOM", "SAME_SHAPE"]

# Number of a batch norm's signature: mean and variance are kept ones, not the batch's.
INFERENCE = ("inference", (1,))

# Of a normalisation over n elements: mean 1, variance 3, normalise and scale 4; its gradient forms
# two sums (3) and combines them (8).
_NORMALISE, _NORMALISE_GRADIENT = 8, 11
_WITH_GIVEN = 4  # normalise and scale, mean and variance being given
# By the root of the mean square alone: squares and their mean 2, normalise and scale 2; its
# gradient forms one sum (3) and combines it (5).
_BY_ROOT, _BY_ROOT_GRADIENT = 4, 8


def _per_output(flops: float) -> Formula:
    return lambda op: flops * elements_out(op)


def _per_input(flops: float, position: int = 0) -> Formula:
    return lambda op: flops * elements_in(op, position)


def _add_n(op: OpSignature) -> float:
    return float(elements_out(op) * max(len(op.inputs) - 1, 0))


def _reduce(op: OpSignature) -> float:
    """One operation for each element that is folded in."""
    return float(max(elements_in(op, 0) - elements_out(op), 0))


def _norm(op: OpSignature) -> float:
    """Statistics of the batch are computed first, unless kept ones are used."""
    return float(elements_out(op) * (_WITH_GIVEN if INFERENCE in op.numbers else _NORMALISE))


def _sort(op: OpSignature) -> float:
    """Comparisons of a sort over the last dimension: n log2 n."""
    return elements_in(op, 0) * log2(max(shape_in(op, 0, 1)[-1], 2))


_ONE_PER_OUTPUT = (
    "add", "sub", "mul", "div", "floor_div", "modulo", "maximum", "minimum", "pow", "neg", "abs",
    "sign", "square", "sqrt", "exp", "expm1", "log", "log1p", "reciprocal", "tanh", "sigmoid",
    "erf", "special_function", "trigonometric", "relu", "relu6", "elu", "leaky_relu", "floor",
    "ceil", "round", "compare", "logical", "bitwise", "select", "where", "is_finite", "bias_add",
    "relu_gradient", "relu6_gradient", "leaky_relu_gradient", "elu_gradient", "clip",
    "complex_part", "assign_sum", "elementwise", "prelu", "hard_tanh", "hard_tanh_gradient",
)  # fmt: skip
_TWO_PER_OUTPUT = (
    "rsqrt", "squared_difference", "softplus", "softsign", "sigmoid_gradient", "tanh_gradient",
    "sqrt_gradient", "reciprocal_gradient", "softplus_gradient", "softsign_gradient", "selu",
    "selu_gradient", "x_log_y", "silu", "hard_sigmoid_gradient", "dropout_gradient",
)  # fmt: skip
_OTHERS_PER_OUTPUT = ("nonzero", "cumulative", "arange")
# Draws: they read sizes and seeds, and write numbers.
RANDOM = frozenset({"random"})
_REDUCTIONS = (
    "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_logical", "arg_max",
    "reduce_norm", "bias_gradient",
)  # fmt: skip
# What else is computed for each element: a sigmoid and a product (silu), the normal distribution
# and its density by an error function and an exponential (gelu and its gradient), and so on.
_MORE_PER_OUTPUT = {
    "rsqrt_gradient": 4, "cumulative_logsumexp": 4, "dropout": 3, "prelu_gradient": 3,
    "hard_sigmoid": 3, "hard_swish": 4, "hard_swish_gradient": 4, "gelu": 5, "gelu_gradient": 11,
    "silu_gradient": 6, "mish": 4, "mish_gradient": 10,
}  # fmt: skip
# Ops of these kinds give one element for each of their inputs, broadcast.
SAME_SHAPE = frozenset(
    {*_ONE_PER_OUTPUT, *_TWO_PER_OUTPUT, *_MORE_PER_OUTPUT, "add_n", "cumulative", "cast",
     "fill_like", "identity", "softmax", "log_softmax"}
) - {"select", "bias_add", "cumulative_logsumexp", "dropout", "prelu_gradient"}  # fmt: skip
# Statistics of all elements, of a batch, a layer, a group or an instance: one formula for each.
_NORMS = ("batch_norm", "layer_norm", "group_norm", "instance_norm")

ELEMENTWISE_FLOPS: Mapping[str, Formula] = MappingProxyType(
    {
        **dict.fromkeys((*_ONE_PER_OUTPUT, *_OTHERS_PER_OUTPUT, *RANDOM), _per_output(1)),
        **dict.fromkeys(_TWO_PER_OUTPUT, _per_output(2)),
        **dict.fromkeys(_REDUCTIONS, _reduce),
        **{kind: _per_output(flops) for kind, flops in _MORE_PER_OUTPUT.items()},
        "reduce_mean": _per_input(1),
        "reduce_variance": _per_input(4),
        "sum_of_squares": _per_input(3),
        "tile_gradient": _reduce,
        "add_n": _add_n,
        "in_top_k": _per_input(1),
        "top_k": _per_input(1),
        "sort": _sort,
        "bucketize": _per_input(1),
        "random_choice": _per_input(1),
        "random_gamma_gradient": _per_output(1),
        "assign_sum_to_handle": _per_input(1, 1),
        "softmax": _per_output(5),
        "log_softmax": _per_output(5),
        # The softmax, or its exponential, times the sum of its gradient; the difference.
        "softmax_gradient": _per_output(4),
        "log_softmax_gradient": _per_output(4),
        "soft_cross_entropy": _per_input(8),
        "cross_entropy": _per_input(7),
        # Softmax less label, times the gradient of the loss.
        "cross_entropy_gradient": _per_output(2),
        "mean_squared_error": _per_input(3),
        "mean_squared_error_gradient": _per_output(3),
        "binary_cross_entropy": _per_input(8),
        "binary_cross_entropy_gradient": _per_output(5),
        **dict.fromkeys(_NORMS, _norm),
        **dict.fromkeys(
            (*(f"{norm}_gradient" for norm in _NORMS), "given_batch_norm_gradient"),
            _per_input(_NORMALISE_GRADIENT),
        ),
        "rms_norm": _per_output(_BY_ROOT),
        "rms_norm_gradient": _per_input(_BY_ROOT_GRADIENT),
        "given_batch_norm": _per_output(_WITH_GIVEN),
        # Clamp (2), scale and shift there (2), round, and back (2); the gradient compares, picks.
        "fake_quantize": _per_output(7),
        "fake_quantize_gradient": _per_output(3),
        "fake_quantize_range_gradient": _per_output(4),
        "fake_quantize_channel_gradient": _per_output(4),
    }
)
