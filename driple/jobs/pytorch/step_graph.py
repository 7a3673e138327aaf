"""Training steps of PyTorch models that a user names: built-in workloads, or functions of a file.

    resnet50, or FILE.py:FUNCTION -> model on the meta device -> OpGraph

The file of a user's model, the function that builds it, the data set and the loss are executed as
any Python program is.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.utils.data import default_collate

from driple.checks import check_whole
from driple.errors import DripleError, GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.torch_graph import graph_of_step
from driple.jobs.import_path import exception_words, function_named, own_code
from driple.jobs.pytorch.workloads import PyTorchWorkload

__all__ = ["graph_of_functions", "graph_of_workload"]


def graph_of_workload(workload: PyTorchWorkload, batch_size: int | None = None) -> OpGraph:
    """A step of a built-in workload at the size that the paper trains it.

    Args:
        workload: to train.
        batch_size: samples of a device in an iteration; the workload's own by default.

    Raises:
        ConfigError: a batch of less than one.
    """
    size = workload.batch_size if batch_size is None else batch_size
    check_whole("--batch-size", size, 1)
    with torch.device("meta"):
        model = workload.build()
        if workload.kind == "tokens":
            inputs = torch.zeros(size, workload.length, dtype=torch.int64)
            labels = torch.zeros(size, 2, dtype=torch.int64)
        else:
            inputs = torch.zeros(size, 3, workload.image_size, workload.image_size)
            labels = torch.zeros(size, dtype=torch.int64)
    loss = workload.loss()
    return graph_of_step(model, inputs, lambda outputs: loss(outputs, labels))


def graph_of_functions(
    model: str, dataset: str, loss: str | None, batch_size: int
) -> tuple[OpGraph, int | None]:
    """A step of a user's own model, whose file is run for it, and the samples of an epoch.

    Args:
        model: `FILE.py:FUNCTION` that builds the model.
        dataset: likewise the data set, of (input, label); one sample is read.
        loss: likewise of outputs and labels; cross entropy without.
        batch_size: samples of a device in an iteration.

    Raises:
        ConfigError: there are no such functions, or they fail.
        GraphError: the step cannot be followed by shapes alone.
    """
    check_whole("--batch-size", batch_size, 1)
    with gpu_autocast():  # from the import on: a decorator may be autocast's
        build, build_samples = function_named(model), function_named(dataset)
        of = nn.functional.cross_entropy if loss is None else function_named(loss)
        with own_code(model):
            module = build()
        with own_code(dataset):
            samples = build_samples()
        try:
            inputs, labels = default_collate([samples[0]] * batch_size)
            inputs, labels = inputs.to("meta"), labels.to("meta")
            graph = graph_of_step(_on_meta(module), inputs, lambda outputs: of(outputs, labels))
        except DripleError:
            raise
        except (Exception, SystemExit) as error:  # the model, data set and loss may raise anything
            raise GraphError(
                f"the training step of {model} cannot be read without running it: "
                f"{exception_words(error)}; it must not decide by values of tensors, and the data "
                "set must give pairs of tensors"
            ) from error
    with own_code(dataset):
        num_samples = len(samples) if hasattr(samples, "__len__") else None
    return graph, num_samples


def _on_meta(module: nn.Module) -> nn.Module:
    """The model on the meta device; parameters that modules share stay one, unlike by `to`."""
    names: dict[int, list[str]] = {}
    for name, parameter in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    moved = module.to("meta")
    for first, *others in names.values():
        for name in others:
            owner, _, own_name = name.rpartition(".")
            setattr(moved.get_submodule(owner), own_name, moved.get_parameter(first))
    return moved
