"""Ops of PyTorch in the words of an `OpGraph`: op types and shapes that `driple.graph.cost` knows.

aten op, its arguments, what it gave -> Kernel, one or several; none for what moves nothing (views)

PyTorch keeps a filter as [out, in, height, width], TensorFlow as [height, width, in, out]. Inputs
come in TensorFlow's order, since the formulas of costs go by it.
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
        op_type: TensorFlow's, or the aten op's own where TensorFlow has none.
        inputs: in TensorFlow's order.
        outputs: what it writes.
        numbers: whole-number attributes that matter.
    """

    op_type: str
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
    op_type = _TYPES.get(bare) or (_ELEMENTWISE if pointwise else f"aten::{bare}")
    reads = tuple(Input(tensor) for tensor in tensors_in(arguments))
    writes = tuple(Input(tensor) for tensor in tensors_in(made))
    return [Kernel(op_type, reads, writes)]


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
        return [Kernel("aten::convolution", (Input(images), Input(weight)), (Input(made),))]
    apart, shape = _filter(weight, arguments[8], images.shape[1])
    op_type = "DepthwiseConv2dNative" if apart else "Conv2D"
    found = [Kernel(op_type, (Input(images), Input(weight, shape)), (Input(made),))]
    if bias is not None:
        found.append(Kernel("BiasAdd", (Input(made), Input(bias)), (Input(made),)))
    return found


def _convolution_backward(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    gradient, images, weight = (Input(tensor) for tensor in arguments[:3])
    if arguments[2].dim() != 4 or arguments[7]:
        outputs = tuple(Input(tensor) for tensor in tensors_in(made))
        return [Kernel("aten::convolution_backward", (gradient, images, weight), outputs)]
    apart, shape = _filter(arguments[2], arguments[9], arguments[1].shape[1])
    prefix = "DepthwiseConv2dNativeBackprop" if apart else "Conv2DBackprop"
    weight = Input(arguments[2], shape)
    by_images, by_weight, by_bias = made
    found = []
    if by_bias is not None:
        found.append(Kernel("BiasAddGrad", (gradient,), (Input(by_bias),)))
    if by_weight is not None:
        found.append(
            Kernel(f"{prefix}Filter", (images, _told(), gradient), (Input(by_weight, shape),))
        )
    if by_images is not None:
        found.append(Kernel(f"{prefix}Input", (_told(), weight, gradient), (Input(by_images),)))
    return found


def _addmm(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    added, left, right = arguments[:3]
    op_type = "MatMul" if left.dim() == 2 else "BatchMatMulV2"
    return [Kernel(op_type, (Input(left), Input(right), Input(added)), (Input(made),))]


def _max_pool(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    outputs = tuple(Input(tensor) for tensor in tensors_in(made))
    return [Kernel("MaxPool", (Input(arguments[0]),), outputs, _window(arguments[1]))]


def _max_pool_backward(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    gradient, images, kernel = arguments[:3]
    inputs = (Input(images), Input(arguments[-1]), Input(gradient))
    return [Kernel("MaxPoolGrad", inputs, (Input(made),), _window(kernel))]


def _average_pool(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    images = arguments[0]
    cells = _cells(images, made)
    return [Kernel("AvgPool", (Input(images),), (Input(made),), _window(cells))]


def _average_pool_backward(arguments: Sequence[Any], made: Any) -> list[Kernel]:
    gradient, images = arguments[:2]
    cells = _cells(images, gradient)
    return [Kernel("AvgPoolGrad", (_told(), Input(gradient)), (Input(made),), _window(cells))]


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

_ELEMENTWISE = "Mul"  # stands for each element-wise op that TensorFlow has no op for
_TYPES = {
    "mm": "MatMul", "bmm": "BatchMatMulV2",
    "add": "AddV2", "sub": "Sub", "rsub": "Sub", "mul": "Mul", "div": "RealDiv", "neg": "Neg",
    "sqrt": "Sqrt", "rsqrt": "Rsqrt", "exp": "Exp", "log": "Log", "pow": "Pow",
    "tanh": "Tanh", "tanh_backward": "TanhGrad", "sigmoid": "Sigmoid",
    "sigmoid_backward": "SigmoidGrad", "relu": "Relu", "threshold_backward": "ReluGrad",
    "hardtanh": "Relu6", "hardtanh_backward": "Relu6Grad",
    "native_batch_norm": "FusedBatchNormV3", "_native_batch_norm_legit": "FusedBatchNormV3",
    "_batch_norm_with_update": "FusedBatchNormV3", "cudnn_batch_norm": "FusedBatchNormV3",
    "native_batch_norm_backward": "FusedBatchNormGradV3",
    "batch_norm_backward": "FusedBatchNormGradV3",
    "cudnn_batch_norm_backward": "FusedBatchNormGradV3",
    # The sums run over other sides; what is computed and moved is the same.
    "native_layer_norm": "FusedBatchNormV3", "native_layer_norm_backward": "FusedBatchNormGradV3",
    "_softmax": "Softmax", "_softmax_backward_data": "Softmax", "_log_softmax": "LogSoftmax",
    "_log_softmax_backward_data": "LogSoftmax",
    "_safe_softmax": "Softmax",
    "nll_loss_forward": "GatherV2", "nll_loss_backward": "ScatterNd",
    "embedding": "GatherV2", "embedding_dense_backward": "UnsortedSegmentSum",
    "sum": "Sum", "mean": "Mean", "cat": "ConcatV2", "stack": "Pack",
    "slice_backward": "StridedSliceGrad", "select_backward": "StridedSliceGrad",
    "copy": "Copy", "clone": "Copy", "_to_copy": "Cast",
    "zero": "Fill", "zeros": "Fill", "zeros_like": "Fill", "ones": "Fill", "ones_like": "Fill",
    "full": "Fill", "full_like": "Fill", "fill": "Fill", "new_zeros": "Fill", "new_ones": "Fill",
    "scalar_tensor": "Fill", "arange": "Range", "bernoulli": "RandomUniform",
    "native_dropout": "RandomUniform", "native_dropout_backward": "Mul",
}  # fmt: skip
