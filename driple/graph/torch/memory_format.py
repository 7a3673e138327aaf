"""Channels-last: the order of an image's numbers in memory, as PyTorch on a GPU hands it on.

    StepOptions(channels_last=True) -> model and batch in that format, and back after the step
    tensor -> is it channels-last?     op, its result -> the result in the format of a GPU

A convolution on a GPU runs, and returns its images, in channels-last if its images or its filter
are (`cudnn_conv_suggest_memory_format`); kernels of the meta device look at the images alone, and
return gradients in the usual order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch._prims_common import suggest_memory_format

from driple.graph.torch.batch_tensors import changed_batch
from driple.graph.torch.options import StepOptions

__all__ = ["as_on_gpu", "is_channels_last", "laid_out_batch", "laid_out_model"]

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}  # by rank


def is_channels_last(tensor: Tensor) -> bool:
    """Whether the channels of one pixel lie side by side, as PyTorch decides it by the strides."""
    return suggest_memory_format(tensor) is _FORMATS.get(tensor.dim())


def runs_channels_last(images: Tensor, weight: Tensor) -> bool:
    """Whether a convolution runs in channels-last on a GPU."""
    return is_channels_last(images) or is_channels_last(weight)


@contextmanager
def laid_out_model(model: nn.Module, options: StepOptions) -> Iterator[None]:
    """Put the parameters in channels-last if the options ask for it, and back at the end."""
    if not options.channels_last:
        yield
        return
    before = [(one, one.data) for one in model.parameters() if one.dim() in _FORMATS]
    try:
        for parameter, data in before:
            parameter.data = _laid_out(data)
        yield
    finally:
        for parameter, data in before:
            parameter.grad = None
            parameter.data = data


def laid_out_batch(batch: Any, options: StepOptions) -> Any:
    """The batch with its images in channels-last if the options ask for it."""
    if not options.channels_last:
        return batch

    def changed(value: Any) -> Any:
        is_image = isinstance(value, Tensor) and value.is_floating_point()
        return _laid_out(value) if is_image and value.dim() in _FORMATS else value

    return changed_batch(batch, changed)


def as_on_gpu(func: Any, arguments: Sequence[Any], result: Any) -> Any:
    """The result of an op in the format that a GPU returns it in.

    Args:
        func: the op, as a dispatch mode is given it.
        arguments: its arguments.
        result: what the meta device returned.
    """
    if func is _CONVOLUTION and runs_channels_last(*arguments[:2]):
        return _restrided(result)
    if func is _CONVOLUTION_BACKWARD and runs_channels_last(*arguments[1:3]):
        return (*(None if one is None else _restrided(one) for one in result[:2]), result[2])
    return result


_CONVOLUTION = torch.ops.aten.convolution.default
_CONVOLUTION_BACKWARD = torch.ops.aten.convolution_backward.default


def _laid_out(tensor: Tensor) -> Tensor:
    return tensor.contiguous(memory_format=_FORMATS[tensor.dim()])


def _restrided(result: Tensor) -> Tensor:
    """The result in channels-last; it has no values yet, so nothing is copied."""
    if result.device.type != "meta" or result.dim() not in _FORMATS or is_channels_last(result):
        return result
    return torch.empty_like(result, memory_format=_FORMATS[result.dim()])
