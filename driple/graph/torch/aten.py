"""Ops of PyTorch in the words of an `OpGraph`: kinds and shapes that `driple.graph.cost` knows.

aten op, its arguments, what it gave -> Kernel, one or several; none for what moves nothing (views)

PyTorch keeps a filter as [out, in, height, width], a signature as [height, width, in, out].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

__all__ = ["Input", "Kernel", "kernels_of", "tensors_in"]


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
        kind: kind of op.
        inputs: in the order of the kind.
        outputs: what it writes.
        numbers: whole-number attributes that matter.
    """

    kind: str
    inputs: tuple[Input, ...]
    outputs: tuple[Input, ...]
    numbers: tuple[tuple[str, tuple[int, ...]], ...] = ()


def kernels_of(func: Any, arguments: Sequence[Any], made: Any) -> list[Kernel]:
    """The kernels of one call of an aten op.

    Args:
        func: the op, as a dispatch mode is given it.
        arguments: all of them, those by name last.
        made: what it returned.
    """
    name = func.name().partition("::")[2].partition(".")[0]
    if func.is_view or name in _FREE:
        return []
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments, made)
    bare = name.removesuffix("_")
    pointwise = torch.Tag.pointwise in func.tags
    kind = _KINDS.get(bare) or (_ELEMENTWISE if pointwise else _OTHER)
    reads = tuple(Input(tensor) for tensor in tensors_in(arguments))
    writes = tuple(Input(tensor) for tensor in tensors_in(made))
    return [Kernel(kind, reads, writes)]


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors in arguments or results, lists and tuples included, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)


def _told(length: int = 4) -> Input:
    """A shape that is handed over as a small tensor on the host."""
    return Input(None, (length,))


def _filter(weight: Tensor, groups: int, channels: int) -> tuple[bool, tuple[int, ...]]:
    """Whether a convolution filters each channel by itself, and its filter as TensorFlow has it."""
    out, inner, height, width = weight.shape
    if groups > 1 and groups == channels:
        return True, (height, width, channels, out // channels)
    return False, (height, width, inner, out)


def _convolution(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    images, weight, bias = arguments[:3]
    if weight.dim() != 4 or arguments[6]:
        return [Kernel(_OTHER, (Input(images), Input(weight)), (Input(made),))]
    apart, shape = _filter(weight, arguments[8], images.shape[1])
    kind = "depthwise_conv" if apart else "conv"
    found = [Kernel(kind, (Input(images), Input(weight, shape)), (Input(made),))]
    if bias is not None:
        found.append(Kernel("bias_add", (Input(made), Input(bias)), (Input(made),)))
    return found


def _convolution_backward(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    gradient, images, weight = (Input(tensor) for tensor in arguments[:3])
    if arguments[2].dim() != 4 or arguments[7]:
        outputs = tuple(Input(tensor) for tensor in tensors_in(made))
        return [Kernel(_OTHER, (gradient, images, weight), outputs)]
    apart, shape = _filter(arguments[2], arguments[9], arguments[1].shape[1])
    forward = "depthwise_conv" if apart else "conv"
    weight = Input(arguments[2], shape)
    by_images, by_weight, by_bias = made
    found = []
    if by_bias is not None:
        found.append(Kernel("bias_gradient", (gradient,), (Input(by_bias),)))
    if by_weight is not None:
        found.append(
            Kernel(
                f"{forward}_filter_gradient",
                (images, _told(), gradient),
                (Input(by_weight, shape),),
            )
        )
    if by_images is not None:
        found.append(
            Kernel(f"{forward}_input_gradient", (_told(), weight, gradient), (Input(by_images),))
        )
    return found


def _addmm(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    added, left, right = arguments[:3]
    kind = "matmul" if left.dim() == 2 else "batch_matmul"
    return [Kernel(kind, (Input(left), Input(right), Input(added)), (Input(made),))]


def _max_pool(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    outputs = tuple(Input(tensor) for tensor in tensors_in(made))
    return [Kernel("max_pool", (Input(arguments[0]),), outputs, _window(arguments[1]))]


def _max_pool_backward(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    gradient, images, kernel = arguments[:3]
    inputs = (Input(images), Input(arguments[-1]), Input(gradient))
    return [Kernel("max_pool_gradient", inputs, (Input(made),), _window(kernel))]


def _average_pool(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    images = arguments[0]
    cells = _cells(images, made)
    return [Kernel("avg_pool", (Input(images),), (Input(made),), _window(cells))]


def _average_pool_backward(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    gradient, images = arguments[:2]
    cells = _cells(images, gradient)
    return [Kernel("avg_pool_gradient", (_told(), Input(gradient)), (Input(made),), _window(cells))]


def _cells(large: Tensor, small: Tensor) -> list[int]:
    """Height and width of the images' cells, each of which becomes one number."""
    sides = zip(large.shape[-2:], small.shape[-2:], strict=True)
    return [max(int(many) // int(few), 1) for many, few in sides]


def _window(sides: Sequence[int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    height, width = (*sides, *sides)[:2]
    return (("ksize", (1, int(height), int(width), 1)),)


# Results that take no kernel: memory that is set aside, numbers for the program.
_FREE = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided",
                   "_unsafe_view", "lift_fresh", "_local_scalar_dense"})  # fmt: skip

_SPECIAL: Mapping[str, Callable[[Sequence[Any], Any], list[Kernel]]] = MappingProxyType(
    {
        "convolution": _convolution,
        "convolution_backward": _convolution_backward,
        "addmm": _addmm,
        "baddbmm": _addmm,
        "max_pool2d_with_indices": _max_pool,
        "max_pool2d_with_indices_backward": _max_pool_backward,
        "avg_pool2d": _average_pool,
        "avg_pool2d_backward": _average_pool_backward,
        "_adaptive_avg_pool2d": _average_pool,
        "_adaptive_avg_pool2d_backward": _average_pool_backward,
    }
)

_ELEMENTWISE = "elementwise"  # of each element-wise op without a kind of its own
_OTHER = "other"
_KINDS = {
    "mm": "matmul", "bmm": "batch_matmul",
    "add": "add", "sub": "sub", "rsub": "sub", "mul": "mul", "div": "div", "neg": "neg",
    "sqrt": "sqrt", "rsqrt": "rsqrt", "exp": "exp", "log": "log", "pow": "pow",
    "tanh": "tanh", "tanh_backward": "tanh_gradient", "sigmoid": "sigmoid",
    "sigmoid_backward": "sigmoid_gradient", "relu": "relu", "threshold_backward": "relu_gradient",
    "hardtanh": "hard_tanh", "hardtanh_backward": "hard_tanh_gradient",
    "native_batch_norm": "batch_norm", "_native_batch_norm_legit": "batch_norm",
    "_batch_norm_with_update": "batch_norm", "cudnn_batch_norm": "batch_norm",
    "native_batch_norm_backward": "batch_norm_gradient",
    "batch_norm_backward": "batch_norm_gradient",
    "cudnn_batch_norm_backward": "batch_norm_gradient",
    "native_layer_norm": "layer_norm", "native_layer_norm_backward": "layer_norm_gradient",
    "_softmax": "softmax", "_softmax_backward_data": "softmax_gradient",
    "_log_softmax": "log_softmax", "_log_softmax_backward_data": "log_softmax_gradient",
    "_safe_softmax": "softmax",
    "nll_loss_forward": "nll_loss", "nll_loss_backward": "nll_loss_gradient",
    "embedding": "embedding", "embedding_dense_backward": "embedding_gradient",
    "sum": "reduce_sum", "mean": "reduce_mean", "cat": "concat", "stack": "stack",
    "slice_backward": "slice_gradient", "select_backward": "slice_gradient",
    "copy": "copy", "clone": "copy", "_to_copy": "cast",
    "zero": "fill", "zeros": "fill", "zeros_like": "fill", "ones": "fill", "ones_like": "fill",
    "full": "fill", "full_like": "fill", "fill": "fill", "new_zeros": "fill", "new_ones": "fill",
    "scalar_tensor": "fill", "arange": "arange", "bernoulli": "random",
    "native_dropout": "dropout", "native_dropout_backward": "dropout_gradient",
}  # fmt: skip
