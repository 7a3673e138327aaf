"""Convolutions and products: each has a gradient by its data and one by its weight.

Y = X * W (Conv)     dX: transposed convolution of dY with W     dW: of X with dY
Y = A B (MatMul)     dA = dY B^T                                 dB = A^T dY
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from types import MappingProxyType

from driple.graph.onnx.rules import (
    Call,
    Gradients,
    Rule,
    Tensors,
    count_of,
    few_numbers,
    first_gradient,
    letters,
    view_of,
)
from driple.graph.onnx.tape import Read, Shape, StepTensor

__all__ = ["LINEAR_RULES"]

_MATRIX = 2


def _filter(weight: StepTensor, groups: int) -> tuple[str, Read]:
    """Begin of a convolution's kind, and its filter as [window..., in / groups, out]."""
    out, inner, *window = weight.sizes
    if groups > 1 and inner == 1:
        return "depthwise_conv", Read(weight, (*window, groups, max(out // groups, 1)))
    return "conv", Read(weight, (*window, inner, out))


def _strides(call: Call, rank: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    given = call.attributes.get("strides")
    strides = tuple(given) if given else (1,) * (rank - 2)
    return (("strides", (1, 1, *strides)),) if any(n != 1 for n in strides) else ()


def _conv(call: Call) -> Tensors:
    images, weight, bias = call.x(), call.needed(1), call.input(2)
    kind, window = _filter(weight, call.attributes.get("group", 1))
    (output,) = call.made(kind, [images, window], numbers=_strides(call, images.rank))
    if bias is not None and not bias.is_constant:
        (output,) = call.made("bias_add", [output, bias])
    return (output,)


def _conv_gradients(call: Call, gradients: Gradients, *, transposed: bool) -> Gradients:
    """By images, filter and bias; a transposed convolution swaps what it takes and makes."""
    given = first_gradient(gradients)
    if given is None:
        return ()
    images, weight, bias = call.x(), call.needed(1), call.input(2)
    kind, window = _filter(weight, call.attributes.get("group", 1))
    numbers = _strides(call, images.rank)
    by_images = by_weight = by_bias = None
    if bias is not None and call.needs(2):
        by_bias = call.like("bias_gradient", [given], bias)
    if call.needs(1):
        taken, output = (given, images) if transposed else (images, given)
        by_weight = _filter_gradient(call, kind, taken, output, window)
    if call.needs(0) and transposed:
        by_images = call.like(kind, [given, window], images, numbers=numbers)
    elif call.needs(0):
        by_images = call.like(
            f"{kind}_input_gradient", [few_numbers(images.rank), window, given], images,
            numbers=numbers,
        )  # fmt: skip
    return by_images, by_weight, by_bias


def _filter_gradient(
    call: Call,
    kind: str,
    images: StepTensor,
    gradient: StepTensor,
    window: Read,
) -> StepTensor:
    """The gradient by a convolution's filter, in the filter's own layout."""
    weight = call.needed(1)
    (gradient_result,) = call.tape.run(
        f"{kind}_filter_gradient", [images, few_numbers(4), gradient],
        [(window.shape, weight.dtype)], numbers=_strides(call, images.rank),
    )  # fmt: skip
    return view_of(gradient_result, weight.shape)


def _transposed_conv(call: Call) -> Tensors:
    """The gradient by the images of a convolution from the output's channels to the input's."""
    images, weight, bias = call.x(), call.needed(1), call.input(2)
    kind, window = _filter(weight, call.attributes.get("group", 1))
    (output,) = call.made(
        f"{kind}_input_gradient", [few_numbers(images.rank), window, images],
        numbers=_strides(call, images.rank),
    )  # fmt: skip
    if bias is not None and not bias.is_constant:
        (output,) = call.made("bias_add", [output, bias])
    return (output,)


def _product(
    call: Call, left: Read, right: Read, result: Shape | None, target: StepTensor | None = None,
    *, dtype: int, added: StepTensor | None = None,
) -> StepTensor:  # fmt: skip
    """One matrix product, or several of a batch; the gradient by `target` if it is given."""
    flat = len(result or ()) <= _MATRIX
    kind = "matmul" if flat else "batch_matmul"
    if target is not None and target.shape == result:
        return call.like(kind, [left, right], target)
    return call.tape.run(kind, [left, right, added], [(result, dtype)])[0]


def _turned(read: Read) -> Read:
    """A matrix with its last two sides exchanged, which a product reads as it lies."""
    shape = read.shape or ()
    return Read(read.tensor, (*shape[:-2], *shape[:-3:-1]))


def _sides(call: Call) -> tuple[Read, Read]:
    """Both factors with two or more dimensions; the first flat where the second is a matrix."""
    left, right = call.x(), call.needed(1)
    a = left.sizes if left.rank > 1 else (1, *left.sizes)
    b = right.sizes if right.rank > 1 else (*right.sizes, 1)
    if len(b) == _MATRIX < len(a):
        a = (count_of(a[:-1]), a[-1])
    return Read(left, a), Read(right, b)


def _made_shape(a: Shape, b: Shape) -> Shape:
    """Shape of the product of [..., m, k] and [..., k, n]."""
    left, right = a[:-2], b[:-2]
    rank = max(len(left), len(right))
    wide = [
        max(pair)
        for pair in zip(
            (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True
        )
    ]
    return (*wide, a[-2], b[-1])


def _matmul(call: Call) -> Tensors:
    left, right = _sides(call)
    shape, dtype = call.results[0]
    product = _product(call, left, right, _made_shape(left.shape or (), right.shape or ()),
                    dtype=dtype, added=call.input(2))  # fmt: skip
    return (view_of(product, shape),)


def _matmul_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    left, right = _sides(call)
    a, b = left.shape or (), right.shape or ()
    whole = Read(given, _made_shape(a, b))
    by_left = by_right = by_added = None
    added = call.input(2)
    if added is not None and call.needs(2):
        by_added = call.summed(given, added)
    if call.needs(1):
        by_right = _factor(call, _turned(left), whole, call.needed(1), b)
    if call.needs(0):
        by_left = _factor(call, whole, _turned(right), call.x(), a)
    return by_left, by_right, by_added


def _factor(call: Call, left: Read, right: Read, target: StepTensor, shape: Shape) -> StepTensor:
    """The gradient by a factor, summed over a batch that the factor does not have."""
    product_shape = _made_shape(left.shape or (), right.shape or ())
    product = _product(call, left, right, product_shape, target, dtype=target.dtype)
    if product_shape != shape and prod(product_shape) != prod(shape):
        return call.summed(product, target)
    return view_of(product, target.shape)


def _gemm_sides(call: Call) -> tuple[Read, Read]:
    left, right = call.x(), call.needed(1)
    a, b = Read(left, left.sizes), Read(right, right.sizes)
    if left.rank > _MATRIX:  # old opsets flatten the images themselves
        a = Read(left, (left.sizes[0], count_of(left.sizes[1:])))
    return (
        _turned(a) if call.attributes.get("transA", 0) else a,
        _turned(b) if call.attributes.get("transB", 0) else b,
    )


def _gemm(call: Call) -> Tensors:
    left, right = _gemm_sides(call)
    (output,) = call.made("matmul", [left, right, call.input(2)])
    return (output,)


def _gemm_gradient(call: Call, gradients: Gradients) -> Gradients:
    given = first_gradient(gradients)
    if given is None:
        return ()
    left, right = _gemm_sides(call)
    whole, bias = Read(given, given.sizes), call.input(2)
    by_left = by_right = by_bias = None
    if bias is not None and call.needs(2):
        by_bias = call.summed(given, bias)
    if call.needs(1):
        factors = [_turned(left), whole]
        if call.attributes.get("transB", 0):
            factors = [_turned(whole), left]
        by_right = call.like("matmul", factors, call.needed(1))
    if call.needs(0):
        factors = [whole, _turned(right)]
        if call.attributes.get("transA", 0):
            factors = [right, _turned(whole)]
        by_left = call.like("matmul", factors, call.x())
    return by_left, by_right, by_bias


def _equation(call: Call) -> tuple[list[str], str]:
    """Indices of each input and of the output of an Einsum."""
    text = call.attributes["equation"]
    plain = (text.decode() if isinstance(text, bytes) else str(text)).replace(" ", "")
    inputs, arrow, output = plain.partition("->")
    given = inputs.split(",")
    if not arrow:
        joined = "".join(given)
        output = "".join(sorted(c for c in set(joined) if c.isalpha() and joined.count(c) == 1))
    return given, output


def _einsum(call: Call) -> Tensors:
    given, output = _equation(call)
    numbers = (("equation", letters(f"{','.join(given)}->{output}")),)
    return call.made("einsum", call.inputs, numbers=numbers)


def _einsum_gradient(call: Call, gradients: Gradients) -> Gradients:
    """Each input's gradient is the Einsum of the output's gradient and all other inputs."""
    whole = first_gradient(gradients)
    if whole is None:
        return ()
    given, output = _equation(call)
    by_input: list[StepTensor | None] = []
    for i, target in enumerate(call.inputs):
        if target is None or not call.needs(i):
            by_input.append(None)
            continue
        others = [j for j in range(len(call.inputs)) if j != i]
        terms = [output, *(given[j] for j in others)]
        numbers = (("equation", letters(f"{','.join(terms)}->{given[i]}")),)
        reads = [whole, *(call.inputs[j] for j in others)]
        by_input.append(call.like("einsum", reads, target, numbers=numbers))
    return by_input


LINEAR_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Conv": Rule(_conv, partial(_conv_gradients, transposed=False)),
        "ConvTranspose": Rule(_transposed_conv, partial(_conv_gradients, transposed=True)),
        "MatMul": Rule(_matmul, _matmul_gradient),
        "Gemm": Rule(_gemm, _gemm_gradient),
        "Einsum": Rule(_einsum, _einsum_gradient),
    }
)
