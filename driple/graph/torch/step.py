"""A training step of any PyTorch model as an `OpGraph`, from shapes alone.

    model, batch (on the meta device), loss, StepOptions -> OpGraph

Nothing is computed and no weight is allocated: forward pass, loss and backward pass run on the
meta device, as they would on a GPU (`autocast`, `gpu_ops`), under a recorder. With `trace="real"`
the same recorder follows a step on the CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from driple.errors import ConfigError, DripleError, GraphError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import OptimizerUpdate
from driple.graph.torch.adapters import adapted
from driple.graph.torch.assemble import assembled_graph
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.batch_tensors import tensors_of
from driple.graph.torch.checkpointing import checkpointed
from driple.graph.torch.data_dependence import step_error
from driple.graph.torch.fused_kernels import fused_kernels
from driple.graph.torch.fused_loss import fused_loss
from driple.graph.torch.fusion import fusion_groups
from driple.graph.torch.gpu_ops import CAPABILITY, FUSES_ATTENTION
from driple.graph.torch.memory_format import laid_out_batch, laid_out_model
from driple.graph.torch.one_device import OneDevice
from driple.graph.torch.options import UPDATE_KINDS, StepOptions
from driple.graph.torch.precision import autocast_of, cast_batch, cast_model
from driple.graph.torch.recorder import StepRecorder
from driple.graph.torch.sparse_rows import sparse_rows
from driple.graph.torch.update import update_of

__all__ = ["StepOptions", "own_loss", "recorded_step", "traced_step"]

Loss = Callable[[Any], Tensor]
_NOTHING_TRAINED = "no parameter has a gradient; give a model that can be trained"


def traced_step(model: nn.Module, batch: Any, loss: Loss | None, options: StepOptions) -> OpGraph:
    """Forward pass, loss, backward pass and update of a model, as a graph of one worker.

    Args:
        model: model to train or to call, on the meta device; for `trace="real"` on the CPU.
        batch: a tensor, a tuple or list of positional arguments, or a dictionary of arguments by
            name; on the same device.
        loss: loss of the model's outputs; None if the model returns its loss: `.loss` of its
            outputs, `["loss"]` of a dictionary, or the first scalar of a tuple. A forward pass has
            no loss.
        options: how it is trained, or called.

    Raises:
        ConfigError: the model or the batch is on another device, or nothing has a gradient.
        GraphError: the model fails, returns no loss, or decides by values of tensors.
    """
    whole = getattr(model, "_orig_mod", None)  # what torch.compile wraps
    if isinstance(whole, nn.Module):
        model, options = whole, replace(options, compiled=True)
    if any(is_lazy(one) for one in model.parameters()):
        raise ConfigError(
            "the model has parameters without a shape (LazyModule); call it once on a batch before "
            "it is traced"
        )
    with (
        cast_model(model, options.precision),
        adapted(model, options) as notes,
        laid_out_model(model, options),
        fused_loss(model) if options.fused_loss else nullcontext(),
        fused_kernels(model) if options.fused_kernels else nullcontext(),
    ):
        if options.trains and not any(one.requires_grad for one in model.parameters()):
            raise ConfigError(_NOTHING_TRAINED)

        def update(parameters: Sequence[nn.Parameter]) -> OptimizerUpdate:
            optimizer_update = update_of(parameters, options)
            if options.library != "torch1":
                return optimizer_update
            return optimizer_update.one_by_one(
                len(parameters), max(one.nbytes for one in parameters)
            )

        kind = UPDATE_KINDS[options.optimizer_name]
        given = laid_out_batch(cast_batch(batch, options.precision), options)
        graph = recorded_step(model, given, loss, options, update=update, update_kind=kind)
    report = replace(graph.report, notes=(*graph.report.notes, *notes))
    return replace(graph, report=report)


def recorded_step(
    model: nn.Module,
    batch: Any,
    loss: Loss | None,
    options: StepOptions,
    *,
    update: Callable[[Sequence[nn.Parameter]], OptimizerUpdate],
    update_kind: str,
) -> OpGraph:
    """Do the work of `traced_step` for a model in its final types.

    Args:
        model: as there.
        batch: as there.
        loss: as there.
        options: as there; the optimizer is not read.
        update: the optimizer's update of some parameters.
        update_kind: its kind in `OpGraph.remote`.
    """
    batch = dict(batch) if isinstance(batch, Mapping) else batch
    tensors = tensors_of(batch)
    device, on_gpu = "meta" if options.trace == "meta" else "cpu", options.kernels == "gpu"
    _check_device([*model.parameters(), *(one for one in tensors if not _is_size(one))], device)
    with (
        gpu_autocast() if on_gpu else nullcontext(),
        _attention(options),
        _gradients(model, options),
        _mode(model, options),
        _eager(),
    ):
        recorder = StepRecorder(
            model,
            device=device,
            tf32=options.precision == "tf32",
            low=options.low,
            on_gpu=on_gpu,
        )
        given = [recorder.before_step(one) for one in tensors]
        scale = torch.empty((), device=device)
        recorder.before_step(scale)
        try:
            with (
                sparse_rows() as rows,
                checkpointed(model, options.activation_checkpointing, recorder.within),
                recorder.recording(),
                OneDevice(device),
            ):
                _run(model, batch, loss, options, scale)
        except DripleError:
            raise
        except Exception as error:  # the model and the loss may raise anything
            raise step_error(error) from error
        return assembled_graph(
            recorder,
            rows=rows,
            given=given,
            update=update,
            update_kind=update_kind,
            passes=options.grad_accumulation,
            fusion_of=fusion_groups(recorder.record) if options.compiled else (),
            trains=options.trains,
        )


def _run(
    model: nn.Module, batch: Any, loss: Loss | None, options: StepOptions, scale: Tensor
) -> None:
    """Forward pass; in training loss and backward pass, the gradients of which are kept."""
    with autocast_of(options.precision, "cuda" if options.kernels == "gpu" else "cpu"):
        outputs = _called(model, batch)
        if not options.trains:
            return
        total = _checked((loss or _returned_loss)(outputs))
        del outputs
    if options.scales_loss:
        total = total * scale
    total.backward()  # type: ignore[no-untyped-call]


@contextmanager
def _mode(model: nn.Module, options: StepOptions) -> Iterator[None]:
    """Eval mode without gradients for a forward pass; the modules' own modes after it."""
    if options.trains:
        yield
        return
    before = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        for module, training in before:
            module.training = training


def _checked(loss: Any) -> Tensor:
    """The loss, which must be one number that depends on a parameter."""
    if not isinstance(loss, Tensor) or loss.numel() != 1:
        what = list(loss.shape) if isinstance(loss, Tensor) else type(loss).__name__
        raise GraphError(f"the loss must be one number, got {what}; take its mean or its sum")
    if not loss.requires_grad:
        raise ConfigError("no parameter has a gradient: the loss depends on none that is trained")
    return loss


def _is_size(tensor: Tensor) -> bool:
    """Whether a batch holds it on the host, as whole numbers that the model reads as sizes."""
    return tensor.device.type == "cpu" and not tensor.is_floating_point()


def _check_device(tensors: list[Tensor], device: str) -> None:
    if any(one.device.type != device for one in tensors):
        way = (
            "build both within torch.device('meta')"
            if device == "meta"
            else "build both as usual, small"
        )
        raise ConfigError(f"the model and its batch must be on the {device} device; {way}")


def _eager() -> AbstractContextManager[Any]:
    """Functions that `torch.compile` wraps run as they are written."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    eager: AbstractContextManager[Any] = torch.compiler.set_stance("force_eager")
    return eager


@contextmanager
def _attention(options: StepOptions) -> Iterator[None]:
    """Attention as on the device, by the generation of PyTorch."""
    capability = CAPABILITY.set(options.compute_capability)
    fuses = FUSES_ATTENTION.set(options.fused_attention)
    try:
        yield
    finally:
        FUSES_ATTENTION.reset(fuses)
        CAPABILITY.reset(capability)


@contextmanager
def _gradients(model: nn.Module, options: StepOptions) -> Iterator[None]:
    """Gradients as before a later pass of accumulation, or none; the old ones after it."""
    before = [(one, one.grad) for one in model.parameters()]
    try:
        for parameter, _ in before:
            accumulates = parameter.requires_grad and options.grad_accumulation > 1
            parameter.grad = torch.empty_like(parameter) if accumulates else None
        yield
    finally:
        for parameter, grad in before:
            parameter.grad = grad


def _called(model: nn.Module, batch: Any) -> Any:
    """The outputs of the model for a batch of any form."""
    if isinstance(batch, Mapping):
        return model(**batch)
    return model(*batch) if isinstance(batch, tuple | list) else model(batch)


def own_loss(outputs: Any) -> Tensor | None:
    """The loss that a model returned, in any of the usual forms; None if it returned none."""
    loss = getattr(outputs, "loss", None)
    if loss is None and isinstance(outputs, Mapping):
        loss = outputs.get("loss")
        parts = list(outputs.values())
        if loss is None and parts and all(_is_number(one) for one in parts):
            loss = torch.stack(parts).sum()  # torchvision's detection: a loss for each purpose
    if loss is None and isinstance(outputs, tuple | list):
        scalars = (one for one in outputs if isinstance(one, Tensor) and one.dim() == 0)
        loss = next(scalars, None)
    if loss is None and isinstance(outputs, Tensor) and outputs.dim() == 0:
        loss = outputs
    return loss if isinstance(loss, Tensor) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.dim() and value.is_floating_point()


def _returned_loss(outputs: Any) -> Tensor:
    """The loss that a model must return if no function computes it."""
    loss = own_loss(outputs)
    if loss is None:
        raise GraphError(
            f"the model returns no loss but {type(outputs).__name__}; give its labels in the batch "
            "or a function of the outputs that computes the loss"
        )
    return loss
