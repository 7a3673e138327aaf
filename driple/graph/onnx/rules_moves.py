"""Ops that move, view or pick elements, and reductions; gradients go the inverse way.

Reshapes, squeezes, splits, slices and expansions are views: they run no kernel, as in PyTorch. A
transposition that only exchanges the last two sides is one too, since products read either order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from driple.graph.onnx.rules import (
    Call,
    Gradients,
    Rule,
    Tensors,
    few_numbers,
    first_gradient,
    no_gradient,
    view_of,
)
from driple.graph.onnx.tape import StepTensor

__all__ = ["MOVE_RULES"]

_MATRIX = 2


def _view(call: Call) -> Tensors:
    shape, dtype = call.results[0]
    return (view_of(call.x(), shape, dtype),)


def _view_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    return () if given is None else (view_of(given, call.x().shape),)


def _plain(kind: str) -> Callable[[Call], Tensors]:
    return lambda call: call.made(kind, call.inputs)


def _back(kind: str) -> Callable[[Call, Gradients], Gradients]:
    """A gradient of one op that reads the output's gradient alone."""

    def backward(call: Call, gradients: Gradients) -> Gradients:
        given = first_gradient(gradients)
        return () if given is None else (call.like(kind, [given], call.x()),)

    return backward


def _only_last_two(order: tuple[int, ...] | None, rank: int) -> bool:
    """Whether a transposition exchanges the last two sides, or sides of length 1 do not matter."""
    order = tuple(reversed(range(rank))) if order is None else order
    usual = tuple(range(rank))
    return order == usual or (rank >= _MATRIX and order == (*usual[:-2], rank - 1, rank - 2))


def _is_view(call: Call) -> bool:
    perm = call.attributes.get("perm")
    order = None if perm is None else tuple(int(n) for n in perm)
    sides = [size for size in call.x().sizes if size != 1]
    return len(sides) <= 1 or _only_last_two(order, call.x().rank)


def _transpose(call: Call) -> Tensors:
    if _is_view(call):
        return _view(call)
    return call.made("transpose", [call.x(), few_numbers(call.x().rank)])


def _transpose_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    if _is_view(call):
        return (view_of(given, call.x().shape),)
    return (call.like("transpose", [given, few_numbers(given.rank)], call.x()),)


def _concat(call: Call) -> Tensors:
    return call.made("concat", [*call.inputs, few_numbers(1)])


def _concat_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    return tuple(
        None if each is None or not call.needs(i) else view_of(given, each.shape)
        for i, each in enumerate(call.inputs)
    )


def _split(call: Call) -> Tensors:
    return tuple(view_of(call.x(), shape, dtype) for shape, dtype in call.results)


def _split_gradient(call: Call, gradients: Gradients) -> Gradients:
    parts = [each for each in gradients if each is not None]
    if not parts:
        return ()
    kind = "concat" if len(parts) == len(call.results) else "slice_gradient"
    return (call.like(kind, [*parts, few_numbers(1)], call.x()),)


def _slice_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    return (call.like("slice_gradient", [few_numbers(4), given], call.x()),)


def _gather(call: Call) -> Tensors:
    data, indices = call.x(), call.needed(1)
    if indices.is_constant and indices.elements == 1:
        return _view(call)  # one row of each: a slice
    kind = "embedding" if _is_table(call) else "gather"
    return call.made(kind, [data, indices, few_numbers(1)])


def _is_table(call: Call) -> bool:
    """Whether rows of a matrix are picked that is a parameter, as an embedding does."""
    data = call.x()
    return data.storage.parameter >= 0 and data.rank == _MATRIX and not call.attributes.get("axis")


def _gather_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    indices = call.needed(1)
    if indices.is_constant and indices.elements == 1:
        return _slice_gradient(call, gradients)
    if _is_table(call):
        rows = view_of(given, (indices.elements, *call.x().sizes[1:]))
        flat = view_of(indices, (indices.elements,))
        return (call.like("embedding_gradient", [rows, flat, few_numbers(1)], call.x()),)
    return (call.like("scatter_new", [indices, given, few_numbers(1)], call.x()),)


def _scatter(call: Call) -> Tensors:
    data, indices, updates = call.x(), call.needed(1), call.needed(2)
    return call.made("tensor_scatter", [data, indices, updates])


def _scatter_gradient(call: Call, gradients: Gradients) -> Gradients:
    """Rows that were replaced get none; those that replace them get their own."""
    given, updates = first_gradient(gradients), call.needed(2)
    if given is None:
        return ()
    indices = call.needed(1)
    by_data = call.like("tensor_scatter", [given, indices, updates], call.x())
    by_updates = None
    if call.needs(2):
        by_updates = call.like("gather", [given, indices, few_numbers(1)], updates)
    return by_data, None, by_updates


def _expand_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    return () if given is None else (call.summed(given, call.x()),)


def _tile(call: Call) -> Tensors:
    return call.made("tile", [call.x(), few_numbers(call.x().rank)])


def _pad(call: Call) -> Tensors:
    return call.made("pad", [call.x(), few_numbers(2 * call.x().rank)])


def _crop_gradient(call: Call, gradients: Gradients) -> Gradients:
    """The gradient of what was padded is a part of the whole: a view."""
    return _view_gradient(call, gradients)


def _reduction(kind: str, *, backward: str) -> Rule:
    """A sum or an extreme over some sides; `backward` spreads the gradient, a view if empty."""

    def forward(call: Call) -> Tensors:
        return call.made(kind, [call.x(), few_numbers(call.x().rank)])

    def spread(call: Call, gradients: Gradients) -> Gradients:
        given = first_gradient(gradients)
        if given is None:
            return ()
        if not backward:
            return (view_of(given, call.x().shape),)
        reads = [given] if backward == "div" else [given, call.x(), call.y()]
        return (call.like(backward, reads, call.x()),)

    return Rule(forward, spread)


def _sum_of_squares(call: Call) -> Tensors:
    return call.made("sum_of_squares", call.inputs[:1])


def _resize_kind(call: Call) -> str:
    mode = call.attributes.get("mode", b"nearest")
    text = mode.decode() if isinstance(mode, bytes) else str(mode)
    return {"linear": "resize_linear", "cubic": "resize_cubic"}.get(text, "resize_nearest")


def _resize(call: Call) -> Tensors:
    return call.made(_resize_kind(call), [call.x(), few_numbers(2)])


def _resize_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    return (call.like(f"{_resize_kind(call)}_gradient", [given, call.x()], call.x()),)


def _two(kind: str) -> Callable[[Call], Tensors]:
    """An op that gives values and their places."""
    return lambda call: call.tape.run(kind, call.inputs[:1], call.results[:2])


def _places_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    places = call.outputs[1] if len(call.outputs) > 1 else None
    if given is None:
        return ()
    return (call.like("scatter_new", [places, given, few_numbers(1)], call.x()),)


def _filled(kind: str) -> Callable[[Call], Tensors]:
    """An op that writes new numbers and reads none of the device's memory."""
    return lambda call: call.tape.run(kind, [few_numbers(1)], call.results)


def _every_result(kind: str) -> Callable[[Call], Tensors]:
    return lambda call: call.tape.run(kind, call.inputs, call.results)


def _image_transform_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    return (call.like("crop_and_resize_image_gradient", [given, call.input(1)], call.x()),)


_VIEWS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Optional",
          "OptionalGetElement")  # fmt: skip
_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli")


def _scan_gradient(call: Call, gradients: Gradients) -> Gradients:
    given: StepTensor | None = first_gradient(gradients)
    return () if given is None else (call.like("cumulative", [given], call.x()),)


MOVE_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(_VIEWS, Rule(_view, _view_gradient)),
        **dict.fromkeys(_RANDOM, Rule(_filled("random"), no_gradient)),
        "Transpose": Rule(_transpose, _transpose_gradient),
        "Concat": Rule(_concat, _concat_gradient),
        "Split": Rule(_split, _split_gradient),
        "Slice": Rule(_view, _slice_gradient),
        "Gather": Rule(_gather, _gather_gradient),
        "GatherElements": Rule(_plain("gather"), _gather_gradient),
        "GatherND": Rule(_plain("gather"), _gather_gradient),
        "ScatterND": Rule(_scatter, _scatter_gradient),
        "ScatterElements": Rule(_scatter, _scatter_gradient),
        "Scatter": Rule(_scatter, _scatter_gradient),
        "Expand": Rule(_view, _expand_gradient),
        "Tile": Rule(_tile, _expand_gradient),
        "Pad": Rule(_pad, _crop_gradient),
        "CenterCropPad": Rule(_pad, _crop_gradient),
        "Resize": Rule(_resize, _resize_gradient),
        "Upsample": Rule(_resize, _resize_gradient),
        "DepthToSpace": Rule(_plain("space_to_depth"), _back("space_to_depth")),
        "SpaceToDepth": Rule(_plain("space_to_depth"), _back("space_to_depth")),
        "Trilu": Rule(_plain("band_part"), _back("band_part")),
        "ReverseSequence": Rule(_plain("reverse"), _back("reverse")),
        "CumSum": Rule(_plain("cumulative"), _scan_gradient),
        "ReduceSum": _reduction("reduce_sum", backward=""),
        "ReduceMean": _reduction("reduce_mean", backward="div"),
        "ReduceMax": _reduction("reduce_max", backward="where"),
        "ReduceMin": _reduction("reduce_min", backward="where"),
        "ReduceProd": _reduction("reduce_prod", backward="mul"),
        "ReduceL1": _reduction("reduce_norm", backward="mul"),
        "ReduceL2": _reduction("reduce_norm", backward="mul"),
        "ReduceLogSum": _reduction("reduce_sum", backward="mul"),
        "ReduceLogSumExp": _reduction("reduce_sum", backward="mul"),
        "ReduceSumSquare": Rule(_sum_of_squares, _back("mul")),
        "TopK": Rule(_two("top_k"), _places_gradient),
        "ArgMax": Rule(_plain("arg_max"), no_gradient),
        "ArgMin": Rule(_plain("arg_max"), no_gradient),
        "Hardmax": Rule(_plain("arg_max"), no_gradient),
        "NonZero": Rule(_plain("nonzero"), no_gradient),
        "OneHot": Rule(_plain("one_hot"), no_gradient),
        "Range": Rule(_filled("arange"), no_gradient),
        "ConstantOfShape": Rule(_filled("fill"), no_gradient),
        "EyeLike": Rule(_filled("fill"), no_gradient),
        "Shape": Rule(_filled("shape_of"), no_gradient),
        "Size": Rule(_filled("shape_of"), no_gradient),
        "Multinomial": Rule(_plain("random_choice"), no_gradient),
        "Unique": Rule(_every_result("unique"), no_gradient),
        "NonMaxSuppression": Rule(_every_result("non_max_suppression"), no_gradient),
        "GridSample": Rule(_plain("image_transform"), _image_transform_gradient),
        "RoiAlign": Rule(_plain("crop_and_resize"), _image_transform_gradient),
    }
)
