"""Jobs from Python: any `torch.nn.Module`, or a training-step function.

module, batch or shapes, loss -> Job, which every question takes
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from driple.cluster.setting import Setting
from driple.errors import ConfigError
from driple.extras import require_torch
from driple.jobs.assumed import assumed_options
from driple.jobs.job import Job, job_of
from driple.jobs.option_row import MODULE
from driple.jobs.options import JOB_OPTIONS, JobOptions
from driple.jobs.own_model import OWN_MODEL
from driple.jobs.own_request import OwnModel
from driple.jobs.readers import capability_for, reading

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["job_of_module"]

_OPTIMIZER = "momentum"
_OPTIONS = [row for row in JOB_OPTIONS if MODULE in row.suits and not row.for_all]


def job_of_module(
    module: nn.Module,
    batch: Any = None,
    *,
    loss: Callable[[Any, Any], Tensor] | None = None,
    step: Callable[[nn.Module, Any], Tensor] | None = None,
    setting: Setting | str | None = None,
    name: str = "",
    **options: Any,
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
        setting: cluster that the job is for, whose devices decide the kernels of attention; an
            A100 if None.
        name: of the job; the class of the model by default.
        options: how it is trained, by the names of `JobOptions`, such as `batch_size=8`,
            `input_shape=(3, 224, 224)` and `precision="amp-bf16"`. The batch size may be left out
            if the batch has it; a model that is in the channels-last format already is read as it
            is.

    Raises:
        TypeError: an option that a model does not have.
        ConfigError: something is missing or contradicts, or the batch does not fit.
        GraphError: the step cannot be followed by shapes alone.
        MissingExtraError: PyTorch is not installed.
    """
    require_torch("a PyTorch model's graph")
    from driple.jobs.pytorch.own_model import step_of_model
    from driple.jobs.pytorch.stepped import Stepped

    odd = sorted(set(options) - {row.name for row in _OPTIONS})
    if odd:
        raise TypeError(
            f"job_of_module has no {' and '.join(odd)}; it takes "
            f"{', '.join(row.name for row in _OPTIONS)}"
        )
    given = JobOptions(**options)
    if step is not None and given.task != "train":
        raise ConfigError("a step is of training; leave it out for a forward pass")
    if step is not None and (loss is not None or batch is None):
        raise ConfigError("a step gets the model and a batch: give batch=, and leave out loss=")
    there = Setting.parse(setting) if isinstance(setting, str) else setting
    trained = given.step_options(_OPTIMIZER, capability_for(there))
    title = name or type(module).__name__
    asked = OwnModel(
        model=title,
        batch_size=given.batch_size,
        input_shape=given.input_shape,
        seq_len=given.seq_len,
        step=trained,
    )
    model = module if step is None else Stepped(module, step)
    with reading, _put_back(module):
        model_step = step_of_model(model, batch, loss, asked)
    return job_of(
        title,
        OWN_MODEL.origin,
        model_step.graph,
        batch_size=model_step.batch_size,
        seq_len=model_step.seq_len,
        input_shape=model_step.input_shape,
        step=trained,
        assumptions=(*assumed_options(given, optimizer=_OPTIMIZER), *model_step.assumptions),
    )


def _signature() -> inspect.Signature:
    """The signature of `job_of_module` with each option by its name, for help and notebooks."""
    known = inspect.signature(job_of_module)
    hints = JobOptions.__annotations__
    options = [
        inspect.Parameter(
            row.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=row.default,
            annotation=hints[row.name],
        )
        for row in _OPTIONS
    ]
    *own, _ = known.parameters.values()
    return known.replace(parameters=[*own, *options])


job_of_module.__signature__ = _signature()  # type: ignore[attr-defined]


@contextmanager
def _put_back(module: nn.Module) -> Iterator[None]:
    """Parameters, buffers and modes as they were, whatever happens within."""
    before = [
        (one, dict(one._parameters), dict(one._buffers), one.training) for one in module.modules()
    ]
    try:
        yield
    finally:
        for part, parameters, buffers, training in before:
            # By attribute: recurrent layers keep a second list of their weights.
            for name, value in (*parameters.items(), *buffers.items()):
                setattr(part, name, value)
            part.training = training
