"""The training step of a PyTorch model as an `OpGraph`, without running it.

    model on the meta device -> forward, loss, backward: nothing is computed, only shapes

Needs neither a GPU nor the model's memory. `driple.graph.torch.step` takes every batch, precision
and optimizer; here is the plain form of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor, nn

from driple.graph.opgraph import OpGraph
from driple.graph.optimizers import update_of_kinds
from driple.graph.step_facts import OptimizerUpdate
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import recorded_step

__all__ = ["UPDATE", "graph_of_step"]

UPDATE = "update_momentum"  # as driple.profiler.train updates


def graph_of_step(
    model: nn.Module, inputs: Any, loss: Callable[[Any], Tensor], update: str = UPDATE
) -> OpGraph:
    """Forward pass, loss and backward pass of a model, as a graph of one worker.

    Args:
        model: model to train, on the meta device.
        inputs: a batch, on the meta device.
        loss: loss of the model's outputs.
        update: kind of the optimizer's update, such as `update_adam`.

    Raises:
        ConfigError: the model or the batch is not on the meta device, or nothing has a gradient.
        GraphError: the model fails, or decides by values of tensors.
    """
    options = StepOptions(precision="tf32")

    def updated(parameters: Sequence[nn.Parameter]) -> OptimizerUpdate:
        return update_of_kinds({update: len(parameters)}, sum(one.nbytes for one in parameters))

    return recorded_step(model, inputs, loss, options, update=updated, update_kind=update)
