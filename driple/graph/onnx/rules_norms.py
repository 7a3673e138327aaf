"""Normalisations, softmax, pools and dropout, each one kernel forward and one backward."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from driple.graph.datatypes import NUMBER_OF
from driple.graph.onnx.rules import (
    Call,
    Gradients,
    Rule,
    Tensors,
    few_numbers,
    first_gradient,
)
from driple.graph.onnx.tape import Read, Shape, StepTensor

__all__ = ["NORM_RULES"]

_FLOAT, _INT64, _BOOL = (NUMBER_OF[f"DT_{name}"] for name in ("FLOAT", "INT64", "BOOL"))
_DEFAULT_RATIO = 0.5  # of Dropout


def _norm(kind: str, statistics: Callable[[Call], Shape]) -> Rule:
    """A normalisation that keeps mean and spread of the shape `statistics` for its gradient."""

    def forward(call: Call) -> Tensors:
        shape = statistics(call)
        output, *kept = call.tape.run(
            kind, call.inputs, [call.results[0], (shape, _FLOAT), (shape, _FLOAT)]
        )
        call.saved = tuple(kept)
        return (output,)

    def backward(call: Call, gradients: Gradients) -> Gradients:
        given = first_gradient(gradients)
        if given is None:
            return ()
        trained = [i for i in (0, 1, 2) if i < len(call.inputs) and (i == 0 or call.needs(i))]
        targets = [call.inputs[i] for i in trained]
        results = call.tape.run(
            f"{kind}_gradient",
            [given, call.x(), call.input(1), *call.saved],
            [(one.shape, one.dtype) for one in targets if one is not None],
        )
        by: dict[int, StepTensor] = dict(zip(trained, results, strict=True))
        return tuple(by.get(i) for i in range(3))

    return Rule(forward, backward)


def _per_channel(call: Call) -> Shape:
    sizes = call.x().sizes
    return sizes[1:2]


def _per_row(call: Call) -> Shape:
    axis = call.attributes.get("axis", -1)
    return call.x().sizes[:axis] or (1,)


def _per_image_and_channel(call: Call) -> Shape:
    return call.x().sizes[:2]


def _per_group(call: Call) -> Shape:
    return (*call.x().sizes[:1], call.attributes.get("num_groups", 1))


def _softmax(kind: str) -> Rule:
    def forward(call: Call) -> Tensors:
        return call.made(kind, call.inputs[:1])

    def backward(call: Call, gradients: Gradients) -> Gradients:
        given = first_gradient(gradients)
        if given is None:
            return ()
        return (call.like(f"{kind}_gradient", [given, call.outputs[0]], call.x()),)

    return Rule(forward, backward)


def _window(call: Call) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Sides of a pool's window as [1, height, width, 1]."""
    sides = call.attributes.get("kernel_shape") or call.x().sizes[2:]
    return (("ksize", (1, *(int(n) for n in sides), 1)),)


def _pool(kind: str, *, keeps_places: bool) -> Rule:
    def forward(call: Call) -> Tensors:
        shape, dtype = call.results[0]
        results = [(shape, dtype), (shape, _INT64)] if keeps_places else [(shape, dtype)]
        output, *kept = call.tape.run(kind, call.inputs[:1], results, numbers=_window(call))
        call.saved = tuple(kept)
        return (output, *kept)

    def backward(call: Call, gradients: Gradients) -> Gradients:
        given = first_gradient(gradients)
        if given is None:
            return ()
        first = [call.x(), *call.saved] if keeps_places else [few_numbers(4)]
        reads: list[StepTensor | Read | None] = [*first, given]
        return (call.like(f"{kind}_gradient", reads, call.x(), numbers=_window(call)),)

    return Rule(forward, backward)


def _global_mean(call: Call) -> Tensors:
    return call.made("avg_pool", call.inputs[:1], numbers=_window(call))


def _response_norm(call: Call) -> Tensors:
    return call.made("local_response_norm", call.inputs[:1], numbers=_radius(call))


def _response_norm_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    reads = [given, call.x(), call.outputs[0]]
    return (call.like("local_response_norm_gradient", reads, call.x(), numbers=_radius(call)),)


def _radius(call: Call) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return (("depth_radius", (int(call.attributes.get("size", 1)) // 2,)),)


def _is_dropout(call: Call) -> bool:
    """Whether anything is dropped: a ratio above 0 is trained with, even in a model for tests."""
    value = call.value(1)
    ratio = float(value.reshape(-1)[0]) if value is not None and value.size else None
    return (call.attributes.get("ratio", _DEFAULT_RATIO) if ratio is None else ratio) > 0


def _dropout(call: Call) -> Tensors:
    if not _is_dropout(call):
        return (call.x(),)
    shape, dtype = call.results[0]
    output, mask = call.tape.run("dropout", call.inputs[:1], [(shape, dtype), (shape, _BOOL)])
    call.saved = (mask,)
    return output, mask


def _dropout_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None or not call.saved:
        return (given,)
    return (call.like("dropout_gradient", [given, *call.saved], call.x()),)


def _length_norm(call: Call) -> Tensors:
    """X over its norm along an axis."""
    sizes = list(call.x().sizes)
    if sizes:
        sizes[call.attributes.get("axis", -1)] = 1
    (norm,) = call.tape.run("reduce_norm", call.inputs[:1], [(tuple(sizes), call.results[0][1])])
    call.saved = (norm,)
    return call.made("div", [call.x(), norm])


def _length_norm_gradient(call: Call, gradients: Gradients) -> Gradients:
    """(dY - Y sum(dY Y)) / norm."""
    given = first_gradient(gradients)
    if given is None:
        return ()
    norm = call.saved[0]
    part = call.like("mul", [given, call.outputs[0]], call.x())
    (total,) = call.tape.run("reduce_sum", [part, few_numbers(1)], [(norm.shape, norm.dtype)])
    part = call.like("mul", [call.outputs[0], total], call.x())
    part = call.like("sub", [given, part], call.x())
    return (call.like("div", [part, norm], call.x()),)


def _loss(call: Call) -> Tensors:
    """A loss that is part of the model: the logarithm of a softmax, and the picked classes."""
    scores, labels = call.x(), call.input(1)
    if call.op_type == "SoftmaxCrossEntropyLoss":
        (scores,) = call.tape.run("log_softmax", [scores], [(scores.shape, scores.dtype)])
    call.saved = (scores,)
    return call.made("nll_loss", [scores, labels, few_numbers(1)])


def _loss_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    reads = [call.input(1), few_numbers(1), given]
    gradient = call.like("nll_loss_gradient", reads, call.x())
    if call.op_type == "SoftmaxCrossEntropyLoss":
        gradient = call.like("log_softmax_gradient", [gradient, *call.saved], call.x())
    return (gradient,)


NORM_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "BatchNormalization": _norm("batch_norm", _per_channel),
        "InstanceNormalization": _norm("instance_norm", _per_image_and_channel),
        "MeanVarianceNormalization": _norm("instance_norm", _per_image_and_channel),
        "LayerNormalization": _norm("layer_norm", _per_row),
        "RMSNormalization": _norm("rms_norm", _per_row),
        "GroupNormalization": _norm("group_norm", _per_group),
        "SoftmaxCrossEntropyLoss": Rule(_loss, _loss_gradient),
        "NegativeLogLikelihoodLoss": Rule(_loss, _loss_gradient),
        "LRN": Rule(_response_norm, _response_norm_gradient),
        "LpNormalization": Rule(_length_norm, _length_norm_gradient),
        "Softmax": _softmax("softmax"),
        "LogSoftmax": _softmax("log_softmax"),
        "MaxPool": _pool("max_pool", keeps_places=True),
        "GlobalMaxPool": _pool("max_pool", keeps_places=True),
        "AveragePool": _pool("avg_pool", keeps_places=False),
        "GlobalAveragePool": Rule(_global_mean, _pool("avg_pool", keeps_places=False).backward),
        "LpPool": _pool("avg_pool", keeps_places=False),
        "GlobalLpPool": _pool("avg_pool", keeps_places=False),
        "Dropout": Rule(_dropout, _dropout_gradient),
    }
)
