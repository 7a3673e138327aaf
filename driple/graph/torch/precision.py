"""The precision of a step: the whole model cast, or autocast with a gradient scaler.

with cast_model(model, "bf16"): ...      parameters and buffers in bfloat16, and back after it
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from driple.graph.low_precision import LOW_PRECISIONS
from driple.graph.torch.batch_tensors import changed_batch
from driple.graph.torch.options import Precision

__all__ = ["autocast_of", "cast_batch", "cast_model"]

_WHOLE = {
    "bf16": torch.bfloat16, "fp16": torch.float16,
    "bf16-mixed": torch.bfloat16, "fp16-mixed": torch.float16,
    **dict.fromkeys(LOW_PRECISIONS, torch.bfloat16),
}  # fmt: skip
_AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}


@contextmanager
def cast_model(model: nn.Module, precision: Precision) -> Iterator[None]:
    """Cast parameters and buffers as `model.to(dtype)` does, and put them back at the end."""
    dtype = _WHOLE.get(precision)
    if dtype is None:
        yield
        return
    parameters = [(one, one.data) for one in model.parameters() if one.is_floating_point()]
    buffers = [
        (module, name, buffer)
        for module in model.modules()
        for name, buffer in module._buffers.items()
        if buffer is not None and buffer.is_floating_point()
    ]
    try:
        for parameter, data in parameters:
            parameter.data = data.to(dtype)
        for module, name, buffer in buffers:
            module._buffers[name] = buffer.to(dtype)
        yield
    finally:
        for parameter, data in parameters:
            parameter.grad = None
            parameter.data = data
        for module, name, buffer in buffers:
            module._buffers[name] = buffer


def cast_batch(batch: Any, precision: Precision) -> Any:
    """A batch whose floating-point tensors have the type of the model."""
    dtype = _WHOLE.get(precision)
    if dtype is None:
        return batch

    def cast(value: Any) -> Any:
        is_float = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(dtype) if is_float else value

    return changed_batch(batch, cast)


def autocast_of(precision: Precision, device: str = "cuda") -> AbstractContextManager[Any]:
    """The context of forward pass and loss.

    Args:
        precision: of the step.
        device: type of the device whose rules are followed.
    """
    dtype = _AUTOCAST.get(precision)
    return nullcontext() if dtype is None else torch.autocast(device, dtype=dtype)
