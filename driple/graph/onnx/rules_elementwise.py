"""Element-wise ops, with broadcast; the gradient of what was broadcast is summed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from driple.graph.onnx.rules import (
    Call,
    Gradients,
    Rule,
    Tensors,
    first_gradient,
    no_gradient,
)
from driple.graph.onnx.tape import StepTensor
from driple.graph.onnx.types import FLOATS

__all__ = ["ELEMENTWISE_RULES"]

_RELU6 = 6.0


def _plain(kind: str) -> Callable[[Call], Tensors]:
    return lambda call: call.made(kind, call.inputs)


def _activation(kind: str, *, reads: str = "x", kernels: Sequence[str] = ()) -> Rule:
    """An op of one input.

    Args:
        kind: of the forward op.
        reads: `x` if the gradient reads the input, `y` for the output, `` for neither.
        kernels: kinds of the backward pass, one after the other; `KIND_gradient` if empty.
    """
    steps = tuple(kernels) or (f"{kind}_gradient",)

    def backward(call: Call, gradients: Gradients) -> Gradients:
        gradient = first_gradient(gradients)
        if gradient is None:
            return ()
        kept = {"x": call.inputs[0], "y": call.outputs[0]}.get(reads)
        for step in steps[:-1]:
            kept = call.like(step, [kept], call.x())
        return (call.like(steps[-1], [gradient, kept], call.x()),)

    return Rule(_plain(kind), backward)


def _is_relu6(call: Call) -> bool:
    low, high = call.value(1), call.value(2)
    least = call.attributes.get("min") if low is None or not low.size else float(low.reshape(-1)[0])
    most = (
        call.attributes.get("max") if high is None or not high.size else float(high.reshape(-1)[0])
    )
    return least == 0.0 and most == _RELU6


def _clip(call: Call) -> Tensors:
    return call.made("relu6" if _is_relu6(call) else "clip", call.inputs[:1])


def _clip_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    kind = "relu6_gradient" if _is_relu6(call) else "where"
    return (call.like(kind, [given, call.x()], call.x()),)


def _add_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    return _to_each(call, lambda _: given)


def _to_each(call: Call, gradient: Callable[[int], StepTensor]) -> Gradients:
    """For each input that needs one, the gradient in the output's shape, summed to the input's."""
    return tuple(
        call.summed(gradient(i), target) if target is not None and call.needs(i) else None
        for i, target in enumerate(call.inputs)
    )


def _in_output_shape(call: Call, kind: str, reads: Sequence[StepTensor | None]) -> StepTensor:
    output = call.y()
    return call.tape.run(kind, reads, [(output.shape, output.dtype)])[0]


def _sub_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    return _to_each(call, lambda i: _in_output_shape(call, "neg", [given]) if i else given)


def _mul_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    return _to_each(call, lambda i: _in_output_shape(call, "mul", [given, call.inputs[1 - i]]))


def _div_gradient(call: Call, gradients: Gradients) -> Gradients:
    """DA = dY / B; dB = -dY Y / B."""
    given = first_gradient(gradients)
    if given is None:
        return ()

    def by(i: int) -> StepTensor:
        if i == 0:
            return _in_output_shape(call, "div", [given, call.inputs[1]])
        part = _in_output_shape(call, "div", [call.y(), call.inputs[1]])
        part = _in_output_shape(call, "neg", [part])
        return _in_output_shape(call, "mul", [given, part])

    return _to_each(call, by)


def _pow_gradient(call: Call, gradients: Gradients) -> Gradients:
    """DA = dY b A^(b - 1); db = dY Y log A."""
    given = first_gradient(gradients)
    if given is None:
        return ()

    def by(i: int) -> StepTensor:
        kind, reads = ("pow", call.inputs[:2]) if i == 0 else ("log", call.inputs[:1])
        part = _in_output_shape(call, kind, reads)
        part = _in_output_shape(call, "mul", [part, call.inputs[1] if i == 0 else call.outputs[0]])
        return _in_output_shape(call, "mul", [given, part])

    return _to_each(call, by)


def _chosen_gradient(call: Call, gradients: Gradients) -> Gradients:
    """Max and Min hand the gradient to the input that was chosen."""
    given = first_gradient(gradients)
    if given is None:
        return ()
    return _to_each(
        call, lambda i: _in_output_shape(call, "where", [given, call.inputs[i], call.outputs[0]])
    )


def _where_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    by = [_in_output_shape(call, "where", [call.inputs[0], given]) if call.needs(i) else None
          for i in (1, 2)]  # fmt: skip
    summed = [
        None if gradient is None or target is None else call.summed(gradient, target)
        for gradient, target in zip(by, call.inputs[1:3], strict=True)
    ]
    return (None, *summed)


def _mean_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    part = _in_output_shape(call, "div", [given])
    return _to_each(call, lambda _: part)


def _sum(call: Call) -> Tensors:
    if len(call.inputs) == 1:
        return (call.x(),)
    return call.made("add" if len(call.inputs) == 2 else "add_n", call.inputs)


def _prelu_gradient(call: Call, gradients: Gradients) -> Gradients:
    given, slope = first_gradient(gradients), call.input(1)
    if given is None or slope is None:
        return ()
    by_input, by_slope = call.tape.run(
        "prelu_gradient", [given, call.x(), slope],
        [(call.x().shape, call.x().dtype), (call.x().shape, slope.dtype)],
    )  # fmt: skip
    return by_input, call.summed(by_slope, slope) if call.needs(1) else None


def _cast_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None or call.x().dtype not in FLOATS:
        return ()
    return (given if given.dtype == call.x().dtype else call.like("cast", [given], call.x()),)


def _cast(call: Call) -> Tensors:
    if call.results[0][1] == call.x().dtype:
        return (call.x(),)
    return call.made("cast", call.inputs[:1])


def _power(call: Call) -> Tensors:
    """A square is a product, as PyTorch computes it."""
    exponent = call.value(1)
    is_square = (
        exponent is not None and exponent.size == 1 and float(np.reshape(exponent, -1)[0]) == 2
    )
    if is_square:
        return call.made("square", call.inputs[:1])
    return call.made("pow", call.inputs)


_TRIGONOMETRIC = (
    "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
)  # fmt: skip
_COMPARISONS = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
_WITHOUT_GRADIENT = {
    "Floor": "floor", "Ceil": "ceil", "Round": "round", "Sign": "sign",
    "And": "logical", "Or": "logical", "Xor": "logical", "Not": "logical",
    "BitShift": "bitwise", "BitwiseAnd": "bitwise", "BitwiseOr": "bitwise",
    "BitwiseXor": "bitwise", "BitwiseNot": "bitwise", "IsNaN": "is_finite", "IsInf": "is_finite",
    **dict.fromkeys(_COMPARISONS, "compare"),
}  # fmt: skip

ELEMENTWISE_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **{name: Rule(_plain(kind), no_gradient) for name, kind in _WITHOUT_GRADIENT.items()},
        "Relu": _activation("relu", reads="y"),
        "ThresholdedRelu": _activation("relu", reads="x"),
        "LeakyRelu": _activation("leaky_relu"),
        "Elu": _activation("elu", reads="y"),
        "Celu": _activation("elu", reads="y"),
        "Selu": _activation("selu", reads="y"),
        "Gelu": _activation("gelu"),
        "Mish": _activation("mish"),
        "Swish": _activation("silu"),
        "HardSigmoid": _activation("hard_sigmoid"),
        "HardSwish": _activation("hard_swish"),
        "Sigmoid": _activation("sigmoid", reads="y"),
        "Tanh": _activation("tanh", reads="y"),
        "Softplus": _activation("softplus"),
        "Softsign": _activation("softsign"),
        "Shrink": _activation("hard_tanh", kernels=("where",)),
        "Exp": _activation("exp", reads="y", kernels=("mul",)),
        "Log": _activation("log", kernels=("div",)),
        "Sqrt": _activation("sqrt", reads="y", kernels=("sqrt_gradient",)),
        "Reciprocal": _activation("reciprocal", reads="y", kernels=("reciprocal_gradient",)),
        "Neg": _activation("neg", reads="", kernels=("neg",)),
        "Abs": _activation("abs", kernels=("sign", "mul")),
        # exp(-x^2) by two over the root of pi.
        "Erf": _activation("erf", kernels=("square", "neg", "exp", "mul", "mul")),
        **dict.fromkeys(_TRIGONOMETRIC,
                        _activation("trigonometric", kernels=("trigonometric", "mul"))),
        "Clip": Rule(_clip, _clip_gradient),
        "PRelu": Rule(_plain("prelu"), _prelu_gradient),
        "Add": Rule(_plain("add"), _add_gradient),
        "Sub": Rule(_plain("sub"), _sub_gradient),
        "Mul": Rule(_plain("mul"), _mul_gradient),
        "Div": Rule(_plain("div"), _div_gradient),
        "Mod": Rule(_plain("modulo"), _add_gradient),
        "Pow": Rule(_power, _pow_gradient),
        "Max": Rule(_plain("maximum"), _chosen_gradient),
        "Min": Rule(_plain("minimum"), _chosen_gradient),
        "Sum": Rule(_sum, _add_gradient),
        "Mean": Rule(_plain("add_n"), _mean_gradient),
        "Where": Rule(_plain("where"), _where_gradient),
        "Cast": Rule(_cast, _cast_gradient),
        "CastLike": Rule(_cast, _cast_gradient),
    }
)  # fmt: skip
