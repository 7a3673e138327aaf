"""Ops of PyTorch as kernels: kinds and shapes that `driple.graph.cost` has formulas for.

    aten op, its arguments, what it gave -> its kernels: one or several, none for a view

PyTorch keeps a filter as [out, in, height, width], a kind's formula as [height, width, in, out].
Inputs come in the formula's order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from driple.graph.cost.convolutions import CHANNELS_LAST, TRANSPOSED
from driple.graph.cost.elementwise import INFERENCE
from driple.graph.torch.aten_kinds import FREE, KIND_OF
from driple.graph.torch.expanded import memory_shape, product_of_shared
from driple.graph.torch.memory_format import is_channels_last, runs_channels_last

__all__ = ["Input", "Kernel", "kernels_of", "tensors_in"]

Numbers = tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Input:
    """A tensor that a kernel reads or writes, or the shape of one that it only takes as numbers.

    Attributes:
        tensor: tensor that is read; None if only a shape is given, as a few whole numbers.
        shape: other than the tensor's own, or of those numbers; None for its own.
    """

    tensor: Tensor | None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel that a device runs.

    Attributes:
        kind: one of `driple.graph.opkind.KINDS`.
        op_type: aten op that starts it, such as `aten::convolution`.
        inputs: in the order of the kind's formula.
        outputs: what it writes.
        numbers: whole-number attributes that matter.
    """

    kind: str
    op_type: str
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    numbers: Numbers = ()


def kernels_of(
    func: Any, args: Sequence[Any], named: Mapping[str, Any], result: Any
) -> list[Kernel]:
    """The kernels of one call of an aten op.

    Args:
        func: the op, as a dispatch mode is given it.
        args: its arguments by position; those that have their default may be missing.
        named: those by name.
        result: what it returned.
    """
    namespace, _, name = func.name().partition("::")
    name = name.partition(".")[0]
    bare = name if name.startswith("__") else name.removesuffix("_")
    if func.is_view or bare in FREE:
        return []
    special = _SPECIAL.get(bare)
    if special is not None:
        return special(f"{namespace}::{bare}", _whole(func, args, named), result)
    kind = KIND_OF.get(bare)
    broadcasts = torch.Tag.pointwise in func.tags or kind == "copy"
    reads = tuple(
        [
            Input(tensor, memory_shape(tensor) if broadcasts else None)
            for tensor in tensors_in((*args, *named.values()))
        ]
    )
    writes = tuple([Input(tensor) for tensor in tensors_in(result)])
    if kind is None:
        kind = "elementwise" if torch.Tag.pointwise in func.tags else "other"
    elif kind == "copy" and reads and writes and _changes_type(reads, writes):
        kind = "cast"
    return [Kernel(kind, f"{namespace}::{bare}", reads, writes)]


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in arguments or results, lists and tuples included, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part)


def _whole(func: Any, args: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """All arguments in the order of the op's schema, defaults included."""
    rest = func._schema.arguments[len(args) :]
    return [*args, *(named.get(one.name, one.default_value) for one in rest)]


def _changes_type(reads: Sequence[Input], writes: Sequence[Input]) -> bool:
    source, target = reads[-1].tensor, writes[0].tensor
    return source is not None and target is not None and source.dtype != target.dtype


def _as_numbers(length: int = 4) -> Input:
    """A shape that is handed over as a small tensor on the host."""
    return Input(None, (length,))


def _filter(weight: Tensor, groups: int) -> tuple[str, tuple[int, ...]]:
    """Prefix of the kind of a convolution, and its filter as [window..., in / groups, out].

    The filter of a transposed convolution is that of the convolution whose gradient it is.
    """
    outer, inner, *window = weight.shape
    if groups > 1 and inner == 1:  # each output channel reads one channel
        return "depthwise_conv", (*window, groups, outer // groups)
    return "conv", (*window, inner, outer)


def _conv_numbers(images: Tensor, weight: Tensor, rest: Sequence[Any]) -> Numbers:
    """What decides a convolution's algorithm besides its sizes, where it is not the usual.

    Numbers stand in the order of the images' dimensions, as TensorFlow has them. `rest` are the
    op's arguments from its strides on.
    """
    strides, _, dilations, transposed, _, groups = rest[:6]
    numbers: list[tuple[str, tuple[int, ...]]] = []
    for name, given in (("dilations", dilations), ("strides", strides)):
        sides = _sides(given, images.dim())
        if any(side != 1 for side in sides):
            numbers.append((name, (1, 1, *sides)))
    if groups > 1:
        numbers.append(("groups", (int(groups),)))
    if transposed:
        numbers.append(TRANSPOSED)
    if runs_channels_last(images, weight):
        numbers.append(CHANNELS_LAST)
    return tuple(sorted(numbers))


def _format(images: Tensor) -> Numbers:
    """Channels-last, where an image is; nothing of the usual order."""
    return (CHANNELS_LAST,) if is_channels_last(images) else ()


def _sides(given: Sequence[int], rank: int) -> tuple[int, ...]:
    """One number for each dimension of space; one may stand for all."""
    sides = tuple(int(side) for side in given)
    return sides * (rank - 2) if len(sides) == 1 else sides


def _convolution(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    images, weight, bias = arguments[:3]
    transposed, groups = bool(arguments[6]), arguments[8]
    prefix, shape = _filter(weight, groups)
    numbers = _conv_numbers(images, weight, arguments[3:])
    if transposed:
        kind = f"{prefix}_input_gradient"
        reads: tuple[Input, ...] = (_as_numbers(images.dim()), Input(weight, shape), Input(images))
    else:
        kind, reads = prefix, (Input(images), Input(weight, shape))
    kernels = [Kernel(kind, op_type, reads, (Input(result),), numbers)]
    if bias is not None:
        kernels.append(Kernel("bias_add", op_type, (Input(result), Input(bias)), (Input(result),)))
    return kernels


def _convolution_backward(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
    gradient, images, weight = arguments[:3]
    transposed, groups = bool(arguments[7]), arguments[9]
    prefix, shape = _filter(weight, groups)
    by_images, by_weight, by_bias = results
    sizes = _as_numbers(images.dim())
    numbers = _conv_numbers(images, weight, arguments[4:])
    kernels = []
    if by_bias is not None:
        kernels.append(Kernel("bias_gradient", op_type, (Input(gradient),), (Input(by_bias),)))
    if by_weight is not None:
        # A transposed convolution makes what the convolution reads.
        first, last = (gradient, images) if transposed else (images, gradient)
        inputs = (Input(first), sizes, Input(last))
        outputs = (Input(by_weight, shape),)
        kernels.append(Kernel(f"{prefix}_filter_gradient", op_type, inputs, outputs, numbers))
    if by_images is not None:
        outputs = (Input(by_images),)
        if transposed:
            reads: tuple[Input, ...] = (Input(gradient), Input(weight, shape))
            kernels.append(Kernel(prefix, op_type, reads, outputs, numbers))
        else:
            reads = (sizes, Input(weight, shape), Input(gradient))
            kind = f"{prefix}_input_gradient"
            kernels.append(Kernel(kind, op_type, reads, outputs, numbers))
    return kernels


def _addmm(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    added, left, right = arguments[:3]
    if left.dim() == 2:
        inputs = (Input(left), Input(right), Input(added))
        return [Kernel("matmul", op_type, inputs, (Input(result),))]
    kernel = _bmm(op_type, (left, right), result)[0]
    return [Kernel(kernel.kind, op_type, (*kernel.inputs, Input(added)), kernel.outputs)]


def _bmm(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    """A batch of products; one product if all of them have a matrix in common."""
    left, right = arguments[:2]
    shapes = product_of_shared(left, right)
    if shapes is None:
        return [Kernel("batch_matmul", op_type, (Input(left), Input(right)), (Input(result),))]
    inputs = (Input(left, shapes[0]), Input(right, shapes[1]))
    return [Kernel("matmul", op_type, inputs, (Input(result, shapes[2]),))]


def _matrix_vector(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    """A matrix times a vector, or a vector times a vector, as a product of matrices."""
    *added, left, right = list(tensors_in(arguments))[-3:]
    rows = tuple(left.shape) if left.dim() == 2 else (1, left.shape[0])
    inputs = (Input(left, rows), Input(right, (right.shape[0], 1)), *map(Input, added))
    return [Kernel("matmul", op_type, inputs, (Input(result, (rows[0], 1)),))]


def _grouped_product(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    """Products of groups of rows, one for each expert, as of groups of one size."""
    left, right, offsets = arguments[:3]
    groups = 1 if offsets is None else offsets.shape[0]
    if left.dim() == right.dim() == 2:  # the gradient by the weights
        rows, inner = left.shape
        shapes = (groups, rows, -(-inner // groups)), (groups, -(-inner // groups), right.shape[1])
        outputs = Input(result)
    elif left.dim() == 2:
        rows = -(-left.shape[0] // groups)
        shapes = (groups, rows, left.shape[1]), tuple(right.shape)
        outputs = Input(result, (groups, rows, right.shape[-1]))
    else:
        shapes, outputs = (tuple(left.shape), tuple(right.shape)), Input(result)
    inputs = (Input(left, shapes[0]), Input(right, shapes[1]))
    return [Kernel("batch_matmul", op_type, inputs, (outputs,))]


def _max_pool(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
    outputs = tuple(Input(tensor) for tensor in tensors_in(results))
    numbers = _window(arguments[1], arguments[0])
    return [Kernel("max_pool", op_type, (Input(arguments[0]),), outputs, numbers)]


def _max_pool_backward(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    gradient, images, kernel = arguments[:3]
    inputs = (Input(images), Input(arguments[-1]), Input(gradient))
    numbers = _window(kernel, images)
    return [Kernel("max_pool_gradient", op_type, inputs, (Input(result),), numbers)]


def _average_pool(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    images = arguments[0]
    numbers = _window(_cells(images, result), images)
    return [Kernel("avg_pool", op_type, (Input(images),), (Input(result),), numbers)]


def _average_pool_backward(op_type: str, arguments: Sequence[Any], result: Any) -> list[Kernel]:
    gradient, images = arguments[:2]
    numbers = _window(_cells(images, gradient), images)
    inputs = (_as_numbers(images.dim()), Input(gradient))
    return [Kernel("avg_pool_gradient", op_type, inputs, (Input(result),), numbers)]


def _cells(large: Tensor, small: Tensor) -> list[int]:
    """Sides of the images' cells, each of which becomes one number."""
    sides = zip(large.shape[2:], small.shape[2:], strict=True)
    return [max(int(many) // int(few), 1) for many, few in sides]


def _window(sides: Sequence[int], images: Tensor) -> Numbers:
    """A window over images; one side may stand for all of it."""
    return (*_format(images), ("ksize", (1, *_sides(sides, images.dim()), 1)))


def _norm(kind: str, image: int, train: int | None) -> Special:
    """A norm of images, or its gradient.

    Args:
        kind: of op.
        image: position of the images among its arguments.
        train: position of whether statistics are those of the batch; None where they always are.
    """

    def kernels(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
        reads = tuple(Input(tensor) for tensor in tensors_in(arguments))
        writes = tuple(Input(tensor) for tensor in tensors_in(results))
        numbers = _format(arguments[image])
        if train is not None and not arguments[train]:
            numbers = (*numbers, INFERENCE)
            writes = writes if kind.endswith("gradient") else writes[:1]  # no statistics
        return [Kernel(kind, op_type, reads, writes, numbers)]

    return kernels


def _attention(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
    """Fused attention, which keeps its result and a number for each row of the scores."""
    is_flash = "flash" in op_type
    causal = bool(arguments[4] if is_flash else arguments[6])
    mask = arguments[5] if op_type.endswith("_for_cpu") else None if is_flash else arguments[3]
    inputs = [Input(one) for one in (*arguments[:3], mask) if one is not None]
    outputs = (Input(results[0]), Input(results[1]))
    return [Kernel("attention", op_type, tuple(inputs), outputs, _causal(causal))]


def _attention_backward(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
    """Gradients by queries, keys and values; the scores are computed again."""
    gradient, query, key, value = arguments[:4]
    causal = bool(arguments[7 if "_for_cpu" in op_type else 11])
    # Result and sums of each row; before them a mask, where the kernel takes one.
    kept = arguments[4:6] if "flash" in op_type else arguments[4:7]
    inputs = (query, key, value, gradient, *(one for one in kept if one is not None))
    outputs = tuple(Input(tensor) for tensor in tensors_in(results))
    reads = tuple(Input(tensor) for tensor in inputs)
    return [Kernel("attention_gradient", op_type, reads, outputs, _causal(causal))]


def _causal(causal: bool) -> Numbers:
    return (("causal", (1,)),) if causal else ()


_RECURRENT = ("rnn", "rnn", "lstm", "gru")  # by mode of cuDNN


def _recurrent(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
    values, weights, _, _, hidden, cell, mode = arguments[:7]
    states = [hidden] if cell is None else [hidden, cell]
    inputs = (_sequence(values), *map(Input, states), *map(Input, weights))
    # What it returns last only stands for the buffer of weights.
    outputs = tuple(Input(one) for one in tensors_in(results[:4]) if one.numel())
    numbers = _layers(bool(arguments[13]), arguments[8])
    return [Kernel(_RECURRENT[mode], op_type, inputs, outputs, numbers)]


def _recurrent_backward(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
    values, weights, _, _, hidden, cell, output, *gradients = arguments[:10]
    mode, projected, two = arguments[10], arguments[12], bool(arguments[17])
    states = [hidden] if cell is None else [hidden, cell]
    read = [*states, *weights, output, *(one for one in gradients if one is not None)]
    inputs = (_sequence(values), *map(Input, read))
    outputs = tuple(Input(tensor) for tensor in tensors_in(results))
    numbers = _layers(two, projected)
    return [Kernel(f"{_RECURRENT[mode]}_gradient", op_type, inputs, outputs, numbers)]


def _cell_backward(op_type: str, arguments: Sequence[Any], results: Any) -> list[Kernel]:
    """Gradients of a cell's gates, and a sum over the batch for each bias."""
    reads = tuple(Input(tensor) for tensor in tensors_in(arguments))
    writes = [Input(one) for one in tensors_in(results) if one.dim() > 1]
    sums = [
        Kernel("reduce_sum", "sum", (writes[0],), (Input(one),))
        for one in tensors_in(results)
        if one.dim() == 1
    ]
    return [Kernel("cell_gates_gradient", op_type, reads, tuple(writes)), *sums]


def _sequence(values: Tensor) -> Input:
    """A batch of sequences; those of different lengths come one after the other."""
    if values.dim() == 3:
        return Input(values)
    return Input(values, (values.shape[0], 1, values.shape[1]))


def _layers(two: bool, projected: int) -> Numbers:
    numbers = []
    if two:
        numbers.append(("direction", tuple(b"bidirectional")))
    if projected:
        numbers.append(("num_proj", (int(projected),)))
    return tuple(numbers)


Special = Callable[[str, Sequence[Any], Any], list[Kernel]]
_SPECIAL: Mapping[str, Special] = MappingProxyType(
    {
        "convolution": _convolution,
        "convolution_backward": _convolution_backward,
        **dict.fromkeys(("addmm", "baddbmm"), _addmm),
        "bmm": _bmm,
        **dict.fromkeys(("mv", "addmv", "dot", "vdot"), _matrix_vector),
        **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices"), _max_pool),
        **dict.fromkeys(
            ("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward"),
            _max_pool_backward,
        ),
        **dict.fromkeys(
            ("avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
            _average_pool,
        ),
        **dict.fromkeys(
            ("avg_pool2d_backward", "avg_pool3d_backward", "_adaptive_avg_pool2d_backward",
             "_adaptive_avg_pool3d_backward"),
            _average_pool_backward,
        ),
        **dict.fromkeys(
            ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm"),
            _norm("batch_norm", 0, 5),
        ),
        "native_batch_norm_backward": _norm("batch_norm_gradient", 1, 7),
        "cudnn_batch_norm_backward": _norm("batch_norm_gradient", 0, None),
        "native_group_norm": _norm("group_norm", 0, None),
        "native_group_norm_backward": _norm("group_norm_gradient", 1, None),
        **dict.fromkeys(
            ("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
             "_scaled_dot_product_flash_attention_for_cpu"),
            _attention,
        ),
        **dict.fromkeys(
            ("_scaled_dot_product_flash_attention_backward",
             "_scaled_dot_product_efficient_attention_backward",
             "_scaled_dot_product_flash_attention_for_cpu_backward"),
            _attention_backward,
        ),
        "_grouped_mm": _grouped_product,
        "_cudnn_rnn": _recurrent,
        "_cudnn_rnn_backward": _recurrent_backward,
        **dict.fromkeys(
            ("_thnn_fused_lstm_cell_backward_impl", "_thnn_fused_gru_cell_backward"),
            _cell_backward,
        ),
    }
)  # fmt: skip
