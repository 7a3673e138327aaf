"""Batches of a model, and the loss of its outputs where nobody gave one.

    tensor | (inputs..., labels) | {"input_ids": ..., "labels": ...} -> arguments of forward, labels
    outputs, labels -> the model's own loss, cross entropy, or mean squared error

All tensors are on the meta device: shapes without values.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import _disable_current_modes

from driple.errors import ConfigError, GraphError
from driple.graph.torch.batch_tensors import changed_batch, is_object, tensors_of
from driple.graph.torch.step import own_loss
from driple.remarks import Remark, remark

__all__ = [
    "Arguments",
    "batch_size_of",
    "batch_words",
    "known_tokens",
    "loss_function",
    "num_positional",
    "on_device",
    "reads_tokens",
    "sample_shape",
    "shaped_batch",
    "split_batch",
    "without_own_labels",
]

Loss = Callable[[Any, Any], Tensor]
_LABELS = ("labels", "label", "targets", "target", "y")
_TOKENS = ("input_ids", "idx", "tokens", "token_ids", "ids", "src")


@dataclass(frozen=True, slots=True)
class Arguments:
    """A batch as a model takes it.

    Attributes:
        batch: a tensor, a tuple of positional arguments, or a dictionary of arguments by name.
        labels: what the loss compares the outputs with; None if the model takes them itself, or if
            there are none.
    """

    batch: Any
    labels: Any = None


def on_device(batch: Any, device: str, *, classes: int = 1) -> Any:
    """The batch with all tensors and NumPy arrays on a device.

    Args:
        batch: as a data loader gives it.
        device: `meta`, or `cpu` to compute with it; values of meta tensors are then random, of
            whole numbers below `classes`.
        classes: how many tokens the model knows; 1 for zeros.
    """
    drawn = torch.Generator().manual_seed(0)

    def moved(value: Any) -> Any:
        if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
            return torch.as_tensor(value).to(device)
        if not isinstance(value, Tensor):
            return value
        if value.device.type == "meta" != device:
            return _random_like(value, classes, drawn)
        return value.detach().to(device)

    return changed_batch(batch, moved)


def _random_like(value: Tensor, classes: int, drawn: torch.Generator) -> Tensor:
    """Values of the shape and type of a tensor, as a step may depend on them."""
    if value.is_floating_point():
        return torch.randn(value.shape, generator=drawn).to(value.dtype)
    if value.dtype == torch.bool or value.is_complex():
        return torch.ones_like(value, device="cpu")
    return torch.randint(classes, value.shape, generator=drawn).to(value.dtype)


def known_tokens(module: nn.Module) -> int:
    """How many tokens the smallest embedding of a model knows; 1 if it has none."""
    sizes = [one.num_embeddings for one in module.modules() if isinstance(one, nn.Embedding)]
    return min(sizes, default=1)


def batch_size_of(batch: Any) -> int | None:
    """Samples of a batch; None without a tensor.

    They are the graphs of PyG, the images of a list before their targets, or the first dimension of
    the first tensor.
    """
    graphs = getattr(batch, "num_graphs", None)
    if isinstance(graphs, int):
        return graphs
    if _lists_samples(batch):
        return len(batch[0])
    return next((int(one.shape[0]) for one in tensors_of(batch) if one.dim()), None)


def sample_shape(batch: Any) -> tuple[int, ...]:
    """Shape of the first tensor of one sample."""
    first = tensors_of(batch)[0]
    return tuple(first.shape if _lists_samples(batch) else first.shape[1:])


def _lists_samples(batch: Any) -> bool:
    """Whether a batch begins with a list of samples, as images of several sizes are given."""
    if not isinstance(batch, tuple | list) or is_object(batch) or not batch:
        return False
    first = batch[0]
    return isinstance(first, list) and bool(first) and all(isinstance(i, Tensor) for i in first)


def batch_words(batch: Any) -> str:
    """Shapes and types of a batch, for messages: `images 32x3x224x224 float32`."""
    if isinstance(batch, Mapping):
        parts = [f"{name} {_shape(one)}" for name, one in batch.items() if isinstance(one, Tensor)]
    else:
        parts = [_shape(one) for one in tensors_of(batch)]
    return ", ".join(parts[:6]) or type(batch).__name__


def _shape(tensor: Tensor) -> str:
    sizes = "x".join(map(str, tensor.shape)) or "scalar"
    return f"{sizes} {str(tensor.dtype).removeprefix('torch.')}"


def _parameters(module: nn.Module) -> list[inspect.Parameter]:
    return list(inspect.signature(module.forward).parameters.values())


def takes_labels(module: nn.Module) -> bool:
    """Whether a model's forward has a parameter for labels: then it computes its loss."""
    return any(one.name in _LABELS for one in _parameters(module))


def split_batch(module: nn.Module, batch: Any, *, has_loss: bool) -> Arguments:
    """What of a batch the model takes, and what its loss.

    An object, such as a NamedTuple or a `Data` of PyG, goes to the model as it is. A dictionary's
    entries go to parameters of the same names; the one that is left over is the labels. The last
    of several in a tuple is the labels, except where the model takes labels.

    Args:
        module: model whose forward is called.
        batch: as a data loader gives it.
        has_loss: whether a loss was given, which then gets the labels.

    Raises:
        ConfigError: several entries of a dictionary that the model does not take.
    """
    if isinstance(batch, Mapping):
        return _split_names(module, dict(batch))
    if is_object(batch):
        return Arguments((batch,))
    if not isinstance(batch, tuple | list):
        return Arguments(batch)
    known, given = _parameters(module), tuple(batch)
    positional = [
        one for one in known if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)
    ]
    takes_last = len(positional) >= len(given) and positional[len(given) - 1].name in _LABELS
    needed = sum(one.default is one.empty for one in positional)
    takes_any = any(one.kind is one.VAR_POSITIONAL for one in known)
    if len(given) > 1 and (takes_any or (takes_last and not has_loss) or needed >= len(given)):
        return Arguments(given)
    rest = given[:-1] or given
    return Arguments(rest[0] if len(rest) == 1 else rest, given[-1] if len(given) > 1 else None)


def _split_names(module: nn.Module, batch: dict[str, Any]) -> Arguments:
    """Entries that forward has parameters for, and the one that is left over: the labels."""
    known = _parameters(module)
    if any(one.kind is one.VAR_KEYWORD for one in known):
        return Arguments(batch)
    names = {one.name for one in known}
    left = [name for name in batch if name not in names]
    if len(left) > 1:
        raise ConfigError(
            f"the batch has {', '.join(map(str, left))}, and forward of {type(module).__name__} "
            "takes none of them; leave out all but the labels"
        )
    taken = {name: value for name, value in batch.items() if name in names}
    return Arguments(taken, batch[left[0]] if left else None)


def without_own_labels(module: nn.Module, given: Arguments) -> Arguments:
    """Arguments for a forward pass alone: no labels by name, where the model can do without."""
    if not isinstance(given.batch, Mapping):
        return given
    optional = {one.name for one in _parameters(module) if one.default is not one.empty}
    left_out = optional & set(_LABELS)
    kept = {name: value for name, value in given.batch.items() if name not in left_out}
    return Arguments(kept, given.labels)


def reads_tokens(module: nn.Module) -> bool:
    """Whether a model takes token numbers: by its first parameter's name, or its first layer."""
    known = [one for one in _parameters(module) if one.name != "self"]
    if known and known[0].name in _TOKENS:
        return True
    owners = (
        one for one in module.modules() if next(one.parameters(recurse=False), None) is not None
    )
    return isinstance(next(owners, None), nn.Embedding)


def shaped_batch(
    module: nn.Module,
    batch_size: int,
    shape: tuple[int, ...] | None,
    seq_len: int | None,
    *,
    source: str,
) -> Any:
    """A batch of the shapes that a user gave.

    Args:
        module: model that takes it.
        batch_size: samples.
        shape: one sample of numbers, from --input.
        seq_len: tokens of a sample, from --seq-len.
        source: the model as the user named it, for messages.

    Raises:
        ConfigError: neither or both were given, or they do not fit the model.
    """
    tokens = reads_tokens(module)
    if shape is not None and seq_len is not None:
        raise ConfigError("--input and --seq-len were both given; give --input for numbers, such "
                          "as images, or --seq-len for tokens")  # fmt: skip
    if shape is None and seq_len is None:
        wanted = "--seq-len N" if tokens else "--input SHAPE, such as 3x224x224"
        raise ConfigError(
            f"{source} states no batch; give {wanted}, or --data FILE.py:FUNCTION that builds its "
            "data set"
        )
    if tokens and shape is not None:
        raise ConfigError(f"{source} takes tokens; give --seq-len N in place of --input")
    if seq_len is not None:
        inputs = torch.zeros(batch_size, seq_len, dtype=torch.int64, device="meta")
        if "labels" in {one.name for one in _parameters(module)}:
            return {_parameters(module)[0].name: inputs, "labels": inputs}
        return (inputs, inputs) if takes_labels(module) else inputs
    return torch.zeros(batch_size, *(shape or ()), device="meta")


def loss_function(
    loss: Loss | None, labels: Any, *, assume: Callable[[Remark], None] = lambda _: None
) -> Callable[[Any], Tensor]:
    """Loss of a model's outputs.

    Args:
        loss: the user's, of outputs and labels; without, the model's own loss if it returns one,
            else cross entropy of classes, or the mean squared error of numbers.
        labels: from the batch; without, labels of the shape that fits the outputs.
        assume: called with a remark on the usual loss, where it is taken.
    """
    if loss is None:
        return lambda outputs: _usual_loss(outputs, labels, assume)

    def computed(outputs: Any) -> Tensor:
        if labels is None and num_positional(loss) == 1:
            return loss(outputs)  # type: ignore[call-arg]
        if labels is None and isinstance(outputs, Tensor) and not outputs.dim():
            return loss(outputs, None)  # a model that returns its loss has none
        return loss(outputs, _fitting_labels(_logits(outputs)) if labels is None else labels)

    return computed


def num_positional(function: Callable[..., Any]) -> int | None:
    """How many positional arguments a function needs; None if nobody can say."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return sum(
        one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty
        for one in known
    )


def _logits(outputs: Any) -> Tensor:
    """The tensor of a model's outputs that a loss compares with labels."""
    logits = outputs
    if not isinstance(logits, Tensor):
        logits = getattr(outputs, "logits", None)
    if logits is None and isinstance(outputs, Mapping):
        logits = outputs.get("logits", outputs.get("out"))  # torchvision's segmentation: out
    if logits is None:
        logits = next((one for one in tensors_of(outputs) if one.is_floating_point()), None)
    if not isinstance(logits, Tensor):
        raise GraphError(
            f"the model returns {type(outputs).__name__}, of which no usual loss is known; give "
            "--loss FILE.py:FUNCTION of outputs and labels"
        )
    return logits


def _fitting_labels(logits: Tensor) -> Tensor:
    """Labels for classes of samples [n, c], of tokens [n, t, c], or of pixels [n, c, h, w]."""
    sizes = tuple(logits.shape)
    shapes = {2: sizes[:1], 3: sizes[:2], 4: (*sizes[:1], *sizes[2:])}
    if len(sizes) not in shapes:
        raise GraphError(
            f"the model returns {_shape(logits)}, for which no usual loss is known; give "
            "--loss FILE.py:FUNCTION of outputs and labels"
        )
    with _disable_current_modes():  # labels come from the data, not from an op of the step
        return torch.zeros(shapes[len(sizes)], dtype=torch.int64, device=logits.device)


def _usual_loss(outputs: Any, labels: Any, assume: Callable[[Remark], None]) -> Tensor:
    own = own_loss(outputs)
    if own is not None and (labels is None or not isinstance(outputs, Tensor)):
        return own
    logits = _logits(outputs)
    target = _fitting_labels(logits) if labels is None else labels
    if not isinstance(target, Tensor):
        raise GraphError(
            f"the labels are {type(target).__name__} and no tensor; give --loss FILE.py:FUNCTION"
        )
    numbers = target.is_floating_point()
    name = "mean squared error" if numbers else "cross entropy"
    assume(remark("usual_loss", loss=name))
    if target.shape == logits.shape and numbers:
        return nn.functional.mse_loss(logits, target)
    if numbers and target.numel() == logits.numel():
        return nn.functional.mse_loss(logits.flatten(), target.flatten())
    if tuple(logits.shape[:-1]) == tuple(target.shape):  # classes last: tokens
        return nn.functional.cross_entropy(logits.flatten(0, -2), target.flatten())
    if (logits.shape[0], *logits.shape[2:]) == tuple(target.shape):  # classes second: pixels
        return nn.functional.cross_entropy(logits, target)
    raise GraphError(
        f"labels {_shape(target)} do not fit outputs {_shape(logits)} of the model; give --loss "
        "FILE.py:FUNCTION of outputs and labels"
    )
