"""Training steps of built-in PyTorch workloads.

resnet50 -> model on the meta device -> OpGraph
"""

from __future__ import annotations

import torch

from driple.checks import check_whole
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.pytorch.workloads import PyTorchWorkload

__all__ = ["graph_of_workload"]


def graph_of_workload(
    workload: PyTorchWorkload,
    batch_size: int | None = None,
    *,
    image_size: int | None = None,
    length: int | None = None,
    step: StepOptions | None = None,
) -> OpGraph:
    """A step of a built-in workload; at the size that the paper trains it, if nothing is given.

    Args:
        workload: to train.
        batch_size: samples of a device in an iteration; the workload's own by default.
        image_size: height and width of the images, pixels.
        length: tokens of a sample.
        step: how it is trained.

    Raises:
        ConfigError: a batch of less than one.
    """
    size = workload.batch_size if batch_size is None else batch_size
    check_whole("--batch-size", size, 1)
    side, tokens = image_size or workload.image_size, length or workload.length
    with torch.device("meta"):
        model = workload.build()
        if workload.kind == "tokens":
            inputs = torch.zeros(size, tokens, dtype=torch.int64)
            labels = torch.zeros(size, 2, dtype=torch.int64)
        else:
            inputs = torch.zeros(size, 3, side, side)
            labels = torch.zeros(size, dtype=torch.int64)
    loss = workload.loss()
    return traced_step(model, inputs, lambda outputs: loss(outputs, labels), step or StepOptions())
