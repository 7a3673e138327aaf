"""Jobs from Python: any `torch.nn.Module`, or a training-step function.

module, batch or shapes, loss -> Job, which every question takes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.extras import require_torch
from driple.jobs.assumed import assumed_words
from driple.jobs.job import Job, job_of
from driple.jobs.options import JobOptions
from driple.jobs.own_model import OWN_MODEL
from driple.jobs.own_request import OwnModel
from driple.jobs.readers import capability_for, reading

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["job_of_module"]

_OPTIMIZER = "momentum"


def job_of_module(
    module: nn.Module,
    batch: Any = None,
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    step: Callable[[nn.Module, Any], Tensor] | None = None,
    batch_size: int | None = None,
    input_shape: tuple[int, ...] | None = None,
    seq_len: int | None = None,
    precision: str | None = None,
    optimizer: str | None = None,
    grad_accumulation: int | None = None,
    activation_checkpointing: str | None = None,
    compiled: bool = False,
    task: str = "train",
    channels_last: bool = False,
    clip_gradients: bool = False,
    library: str = "torch2",
    setting: Setting | str | None = None,
    name: str = "",
) -> Job:
    """The job of training a model that is there already, which stays as it is.

    Its weights are replaced by tensors without values while the step is followed, and put back.

    Args:
        module: model to train.
        batch: a tensor, a tuple whose last item is the labels, or a dictionary; None if its shape
            is given.
        loss: of the model's outputs and labels; the model's own or cross entropy if None.
        step: in place of a loss, the training step: it gets the model and the batch, and returns
            the loss.
        batch_size: samples per device; None if the batch has them.
        input_shape: one sample of numbers, such as (3, 224, 224).
        seq_len: tokens of a sample.
        precision: as `--precision`.
        optimizer: as `--optimizer`.
        grad_accumulation: as `--grad-accumulation`.
        activation_checkpointing: as `--activation-checkpointing`.
        compiled: whether the model is compiled.
        task: `train`, or `forward`: one forward pass in eval mode, without gradients.
        channels_last: whether model and images are put in the channels-last format; a model that
            is in it already is read as it is.
        clip_gradients: whether gradients are clipped by their norm.
        library: as `--set library`.
        setting: cluster that the job is for, whose devices decide the kernels of attention; an
            A100 if None.
        name: of the job; the class of the model by default.

    Raises:
        ConfigError: something is missing or contradicts, or the batch does not fit.
        GraphError: the step cannot be followed by shapes alone.
        MissingExtraError: PyTorch is not installed.
    """
    require_torch("a PyTorch model's graph")
    from driple.jobs.pytorch.own_model import step_of_model
    from driple.jobs.pytorch.stepped import Stepped

    if step is not None and task != "train":
        raise ConfigError("a step is of training; leave it out for a forward pass")
    if step is not None and (loss is not None or batch is None):
        raise ConfigError("a step gets the model and a batch: give batch=, and leave out loss=")
    options = JobOptions(
        batch_size=batch_size,
        input_shape=input_shape,
        seq_len=seq_len,
        precision=precision,
        optimizer=optimizer,
        grad_accumulation=grad_accumulation,
        activation_checkpointing=activation_checkpointing,
        compiled=compiled,
        task=task,
        channels_last=channels_last,
        clip_gradients=clip_gradients,
        library=library,
    )
    there = Setting.parse(setting) if isinstance(setting, str) else setting
    trained = options.step_options(_OPTIMIZER, capability_for(there))
    title = name or type(module).__name__
    asked = OwnModel(
        model=title,
        batch_size=batch_size,
        input_shape=input_shape,
        seq_len=seq_len,
        step=trained,
    )
    model = module if step is None else Stepped(module, step)
    with reading, _put_back(module):
        made = step_of_model(model, batch, loss, asked)
    return job_of(
        title,
        OWN_MODEL.origin,
        made.graph,
        batch_size=made.batch_size,
        seq_len=made.seq_len,
        input_shape=made.input_shape,
        step=trained,
        assumptions=(*assumed_words(options, optimizer=_OPTIMIZER), *made.assumptions),
    )


@contextmanager
def _put_back(module: nn.Module) -> Iterator[None]:
    """Parameters, buffers and modes as they were, whatever happens within."""
    before = [
        (one, dict(one._parameters), dict(one._buffers), one.training) for one in module.modules()
    ]
    try:
        yield
    finally:
        for one, parameters, buffers, training in before:
            # By attribute: recurrent layers keep a second list of their weights.
            for name, value in (*parameters.items(), *buffers.items()):
                setattr(one, name, value)
            one.training = training
