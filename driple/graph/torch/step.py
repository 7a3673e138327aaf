"""A training step of any PyTorch model as an `OpGraph`, from shapes alone.

model, batch (on the meta device), loss, StepOptions -> OpGraph
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from driple.errors import GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.options import StepOptions
from driple.graph.torch.torch_graph import UPDATE, recorded_step

__all__ = ["StepOptions", "traced_step"]


def traced_step(
    model: nn.Module, batch: Any, loss: Callable[[Any], Tensor] | None, options: StepOptions
) -> OpGraph:
    """Forward pass, loss, backward pass and update of a model, as a graph of one worker.

    Args:
        model: model to train, on the meta device.
        batch: a tensor, a tuple or list of positional arguments, or a dictionary of arguments by
            name; on the meta device.
        loss: loss of the model's outputs; None if the model returns its loss: `.loss` of its
            outputs, `["loss"]` of a dictionary, or the first scalar of a tuple.
        options: how it is trained.

    Raises:
        ConfigError: the model or the batch is not on the meta device, or nothing has a gradient.
        GraphError: the model returns no loss, or decides by values of tensors.
    """
    with gpu_autocast():
        return recorded_step(
            lambda given: _called(model, given), batch, loss or _own_loss, UPDATE, model=model
        )


def _called(model: nn.Module, batch: Any) -> Any:
    """The outputs of the model for a batch of any form."""
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)


def _own_loss(outputs: Any) -> Tensor:
    """The loss that a model returned itself."""
    loss = getattr(outputs, "loss", None)
    if loss is None and isinstance(outputs, Mapping):
        loss = outputs.get("loss")
    if loss is None and isinstance(outputs, tuple | list):
        scalars = (one for one in outputs if isinstance(one, Tensor) and one.dim() == 0)
        loss = next(scalars, None)
    if loss is None and isinstance(outputs, Tensor) and outputs.dim() == 0:
        loss = outputs
    if not isinstance(loss, Tensor):
        raise GraphError(
            f"the model returns no loss but {type(outputs).__name__}; give its labels in the batch "
            "or a function of the outputs that computes the loss"
        )
    return loss
