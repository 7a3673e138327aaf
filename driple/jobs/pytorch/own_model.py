"""The training step of a user's own model: his file is executed, as any Python program is.

    FILE.py:FUNCTION -> module, (module, loss) or (module, batch) -> OpGraph

Models are built on the meta device, so that no weights are allocated; a builder that computes with
values is run once more on the CPU, and its model is then moved.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, default_collate

from driple.checks import check_whole
from driple.errors import ConfigError, DripleError, GraphError
from driple.graph.low_precision import LOW_PRECISIONS
from driple.graph.opgraph import OpGraph
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.batch_tensors import is_object, tensors_of
from driple.graph.torch.data_dependence import NeedsValuesError
from driple.graph.torch.library_values import assumed_values
from driple.graph.torch.one_device import OneDevice
from driple.graph.torch.step import traced_step
from driple.jobs.import_path import advice_on, exception_words, function_named, own_code
from driple.jobs.own_request import OwnModel
from driple.jobs.pytorch.batches import (
    batch_size_of,
    batch_words,
    known_tokens,
    loss_function,
    num_positional,
    on_device,
    reads_tokens,
    sample_shape,
    shaped_batch,
    split_batch,
    without_own_labels,
)
from driple.jobs.pytorch.quiet import quiet_transformers
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from driple.jobs.pytorch.whole_sequences import (
    assumptions_of_transformers,
    by_values,
    whole_sequences,
)
from driple.remarks import Remark, remark

__all__ = ["REAL_INPUTS", "OwnStep", "module_on_meta", "step_of_model", "step_of_own_model"]

_WHOLE_MODEL = (
    "bf16",
    "fp16",
    "bf16-mixed",
    "fp16-mixed",
    *LOW_PRECISIONS,
)  # precisions that the whole model is cast to
REAL_INPUTS = "run it once on small real inputs on the CPU (--set trace=real)"
_OTHER_DEVICE = (
    "the code makes a tensor on the CPU: make it where its inputs are (device=x.device), or "
    f"{REAL_INPUTS}"
)
_NO_LABELS = (
    ", with class numbers as labels of the loss, as the batch has none (return (module, batch), or "
    "give --data FILE.py:FUNCTION)"
)
_FORMS = "a torch.nn.Module, (module, loss) or (module, batch)"


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnStep:
    """The training step of a model.

    Attributes:
        graph: of one worker.
        batch_size: samples per device.
        input_shape: one sample of numbers; None for tokens.
        seq_len: tokens of a sample; None for numbers.
        samples: samples of an epoch of the data set; None if unknown.
        assumptions: what was assumed.
    """

    graph: OpGraph
    batch_size: int
    input_shape: tuple[int, ...] | None = None
    seq_len: int | None = None
    samples: int | None = None
    assumptions: tuple[Remark, ...] = ()


def step_of_own_model(asked: OwnModel) -> OwnStep:
    """Run the user's functions, and follow one training step by shapes.

    Raises:
        ConfigError: there are no such functions, they fail, or something is missing.
        GraphError: the step cannot be followed by shapes alone.
    """
    if asked.batch_size is not None:
        check_whole("--batch-size", asked.batch_size, 1)
    declare_torchvision_ops()
    # From the import on: a decorator may be autocast's, and a model may be moved to a GPU.
    with gpu_autocast(), OneDevice("cpu"):
        module, loss, batch = _built(asked.model, with_values=_device(asked) != "meta")
        if asked.loss is not None:
            loss = function_named(asked.loss)
        samples = None
        if asked.data is not None:
            if batch is not None:
                raise ConfigError(
                    f"{asked.model} returns a batch, and --data names another; leave --data out"
                )
            batch, samples = _batch_of_data(asked.data, asked.batch_size)
        return step_of_model(module, batch, loss, asked, samples=samples)


def step_of_model(
    module: nn.Module,
    batch: Any,
    loss: Callable[[Any, Any], Tensor] | None,
    asked: OwnModel,
    *,
    samples: int | None = None,
) -> OwnStep:
    """One training step of a model, followed by shapes.

    Args:
        module: the model, on any device.
        batch: a batch as a data loader gives it; None if `asked` has its shape.
        loss: of outputs and labels; None for the model's own or the usual one.
        asked: names and shapes.
        samples: of an epoch.

    Raises:
        ConfigError: something is missing, or the batch is not of the size that was asked for.
        GraphError: the step cannot be followed by shapes alone.
    """
    is_made = batch is None
    if is_made:
        if asked.batch_size is None:
            raise ConfigError(f"{asked.model} states no batch; give --batch-size N")
        batch = shaped_batch(
            module, asked.batch_size, asked.input_shape, asked.seq_len, source=asked.model
        )
    elif asked.data is None and (asked.input_shape or asked.seq_len):
        raise ConfigError(f"{asked.model} returns a batch; leave out --input and --seq-len")
    batch = on_device(batch, _device(asked), classes=known_tokens(module))
    size = batch_size_of(batch)
    if size is None:
        raise ConfigError(
            f"the batch of {asked.model} holds no tensor; give a tensor, a tuple or a dictionary "
            "of tensors"
        )
    if asked.batch_size not in (None, size):
        raise ConfigError(
            f"the batch of {asked.model} has {size} samples, got --batch-size {asked.batch_size}; "
            "leave the option out, or return a batch of that size"
        )
    with quiet_transformers():
        graph, packed = _traced(module, batch, loss, asked)
    tokens = reads_tokens(module) or asked.seq_len is not None
    first = tensors_of(batch)[0]
    return OwnStep(
        graph=graph,
        batch_size=size,
        seq_len=int(first.shape[1]) if tokens and first.dim() > 1 else None,
        input_shape=None if tokens else sample_shape(batch),
        samples=samples,
        assumptions=tuple(
            dict.fromkeys((*_assumptions(module, asked, tokens=tokens, is_made=is_made), *packed))
        ),
    )


def _assumptions(
    module: nn.Module, asked: OwnModel, *, tokens: bool, is_made: bool
) -> tuple[Remark, ...]:
    compiled = (remark("compiled_by_code"),) if _is_compiled(module) else ()
    types = () if asked.step.precision in _WHOLE_MODEL else _types(module)
    values = (remark("random_batch"),) if is_made and _device(asked) != "meta" else ()
    return (*values, *compiled, *types, *assumptions_of_transformers(module, tokens=tokens))


def _types(module: nn.Module) -> tuple[Remark, ...]:
    """Types of parameters that the code chose, as --precision does not show them."""
    known = {str(one.dtype).removeprefix("torch.") for one in module.parameters()} - {"float32"}
    return (remark("types_of_code", types=tuple(sorted(known))),) if known else ()


def _is_compiled(module: nn.Module) -> bool:
    return isinstance(getattr(module, "_orig_mod", None), nn.Module)


def _traced(
    module: nn.Module, batch: Any, loss: Callable[[Any, Any], Tensor] | None, asked: OwnModel
) -> tuple[OpGraph, list[Remark]]:
    """The step, and what was assumed of packed sequences."""
    trains = asked.step.trains
    arguments = split_batch(module, batch, has_loss=loss is not None or not trains)
    if not trains:
        arguments = without_own_labels(module, arguments)
    module.train()
    try:
        with whole_sequences(batch) as packed, assumed_values() as places:
            graph = traced_step(
                module_on_meta(module) if _device(asked) == "meta" else module,
                arguments.batch,
                loss_function(loss, arguments.labels, assume=packed.append),
                asked.step,
            )
    except DripleError as error:
        other = ""
        if isinstance(error, NeedsValuesError):
            other = f", or {REAL_INPUTS}"
        elif error.__cause__:
            made_up = _NO_LABELS if loss is not None and arguments.labels is None else ""
            other = f"; the batch is {batch_words(batch)}{made_up}"
            if "expected device" in str(error) and "meta" in str(error):
                other += f"; {_OTHER_DEVICE}"
        raise type(error)(f"{asked.model}: {error}{other}") from error
    except (Exception, SystemExit) as error:  # the model and the loss may raise anything
        raise GraphError(
            f"the training step of {asked.model} fails on a batch of {batch_words(batch)}: "
            f"{exception_words(error)}; it must fit that batch, and must not decide by values of "
            "tensors"
        ) from error
    return graph, [*packed, *by_values(places)]


def module_on_meta(module: nn.Module) -> nn.Module:
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


def _device(asked: OwnModel) -> str:
    """Where the step is followed: by shapes alone, or with values on the CPU."""
    return "meta" if asked.step.trace == "meta" else "cpu"


def _built(
    reference: str, *, with_values: bool
) -> tuple[nn.Module, Callable[[Any, Any], Tensor] | None, Any]:
    """Module, loss and batch that the user's builder returns; None for what it leaves out."""
    build = function_named(reference)
    if isinstance(build, nn.Module):
        return build, None, None
    check_callable(reference, build)
    returned = _run_builder(reference, build, with_values=with_values)
    parts = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    module, rest = parts[0] if parts else None, parts[1:]
    if not isinstance(module, nn.Module) or len(rest) > 2:
        raise ConfigError(f"{reference} returns {_returned(returned)}; it must return {_FORMS}")
    if any(_is_model(one) for one in rest):
        raise ConfigError(
            f"{reference} returns {_returned(returned)}, more than one model; return one module "
            "whose forward calls them and returns the loss of the step"
        )
    losses = [one for one in rest if callable(one) and not _is_batch(one)]
    batches = [one for one in rest if not any(one is loss for loss in losses)]
    if len(losses) > 1 or len(batches) > 1 or any(not _is_batch(one) for one in batches):
        raise ConfigError(f"{reference} returns {_returned(returned)}; it must return {_FORMS}")
    return module, losses[0] if losses else None, batches[0] if batches else None


def _is_batch(value: Any) -> bool:
    """Whether this is a batch and no data set, whose samples come one by one."""
    if isinstance(value, Tensor | tuple | list | Mapping):
        return True
    if isinstance(value, Dataset | DataLoader):
        return False
    is_graph = type(value).__module__.startswith("torch_geometric.data")
    is_other = callable(value) or hasattr(value, "__getitem__")
    return (is_graph or not is_other) and is_object(value)


def _is_model(value: Any) -> bool:
    """Whether this is another model and no loss, which takes outputs and labels."""
    if not isinstance(value, nn.Module) or next(value.parameters(), None) is None:
        return False
    return num_positional(value.forward) == 1


def _returned(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"({', '.join(type(one).__name__ for one in value)})"
    return type(value).__name__


def check_callable(reference: str, function: Any) -> None:
    """Refuse what cannot be called without arguments.

    Raises:
        ConfigError: no function, or one with a required argument.
    """
    if not callable(function):
        raise ConfigError(
            f"{reference} is {type(function).__name__} and no function; give one without arguments"
        )
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature: calling it will tell
        return
    needed = [
        one.name
        for one in known
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed:
        raise ConfigError(
            f"{reference} needs the argument {' and '.join(needed)}, and Driple calls it without; "
            "give a function without arguments that calls it"
        )


def _run_builder(reference: str, build: Callable[[], Any], *, with_values: bool) -> Any:
    """What the builder returns: built on the meta device, or on the CPU if it needs values."""
    try:
        device = "cpu" if with_values else "meta"
        with OneDevice(device), torch.device(device):
            return build()
    except (RuntimeError, NotImplementedError) as error:
        needs_values = "meta" in str(error)
        if not needs_values:
            raise _failed(reference, error) from error
    except DripleError:
        raise
    except (Exception, SystemExit) as error:  # user code may raise anything
        raise _failed(reference, error) from error
    with own_code(reference):
        return build()


def _failed(reference: str, error: BaseException) -> ConfigError:
    words = exception_words(error)
    if "allocate" in words or isinstance(error, MemoryError):
        return ConfigError(
            f"{reference} allocates more memory than it may: {words}; the model is built on the "
            "meta device, where weights take none: leave out device='cpu', or raise the limit "
            "with --set memory_gib=N"
        )
    return ConfigError(f"{reference} failed: {words}; {advice_on(error)}")


def _batch_of_data(reference: str, batch_size: int | None) -> tuple[Any, int | None]:
    """A batch of the user's data, and the samples of an epoch."""
    build = function_named(reference)
    check_callable(reference, build)
    with own_code(reference):
        data = build()
        if _is_batch(data):
            return data, None
        collate = default_collate
        if isinstance(data, DataLoader):
            collate, data = data.collate_fn, data.dataset
        if batch_size is None:
            raise ConfigError(f"the data set of {reference} has no batch size; give --batch-size N")
        if isinstance(data, IterableDataset) or not hasattr(data, "__getitem__"):
            if not hasattr(data, "__iter__"):
                raise ConfigError(
                    f"{reference} returns {type(data).__name__}; it must return a data set, a data "
                    "loader or a batch"
                )
            sample, count = next(iter(data)), None
        else:
            sample = data[0]
            count = len(data) if hasattr(data, "__len__") else None
        return collate([sample] * batch_size), count
