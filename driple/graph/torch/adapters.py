"""LoRA adapters and quantized weights put into any model for the time of a step.

    with adapted(model, options) as notes: ...      y = W x + (alpha / r) B A x, with W frozen

Layers are as PEFT's (`peft.tuners.lora.layer.Linear`, `peft.tuners.lora.bnb.Linear4bit`) and the
parameters around them as its `prepare_model_for_kbit_training` leaves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from driple.errors import ConfigError
from driple.graph.low_precision import LOW_PRECISIONS
from driple.graph.torch.lora import ALL_LINEAR, LoraAdapters
from driple.graph.torch.options import StepOptions
from driple.graph.torch.packed_weights import PackedLinear, num_values_of
from driple.remarks import Remark, remark

__all__ = ["adapted"]

_HALF = {
    "bf16": torch.bfloat16, "amp-bf16": torch.bfloat16, "bf16-mixed": torch.bfloat16,
    "fp16": torch.float16, "amp-fp16": torch.float16, "fp16-mixed": torch.float16,
    **dict.fromkeys(LOW_PRECISIONS, torch.bfloat16),
}  # fmt: skip
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# Heads of classification, which PEFT trains in full (`modules_to_save` of its SEQ_CLS task).
_CLASS_HEADS = ("score", "classifier")
_MOST_NAMES = 12
_EXPERTS_RANK = 3


@contextmanager
def adapted(model: nn.Module, options: StepOptions) -> Iterator[list[Remark]]:
    """The model with quantized base weights and adapters; as it was at the end.

    Args:
        model: in its final precision.
        options: `lora` and `weights` say what is put in; nothing where both are None.

    Yields:
        What was assumed.

    Raises:
        ConfigError: no layer has one of the targets' names, or nothing would be trained.
    """
    lora, kind = options.lora, options.weights
    if lora is None and kind is None:
        yield []
        return
    if lora is None and options.trains:
        raise ConfigError(
            f"--weights {kind} freezes the layers that it quantizes; give --lora "
            "r=16,targets=all-linear too, or ask for a forward pass (--set task=forward)"
        )
    _check_types(options)
    heads = _heads(model)
    targets = _targets(model, lora, heads) if lora is not None else []
    with ExitStack() as stack:
        stack.callback(_put_back, model, _state(model))
        notes = _freeze(model, heads) if lora is not None else []
        if lora is not None and (options.is_autocast or lora.rest is not None):
            _as_loaded(model, lora)
        packed = _pack(model, options, heads) if kind is not None else 0
        keeps_single = lora is None or (lora.rest is None and not lora.is_half)
        if kind is not None:
            notes.append(_packed_remark(model, packed, kind))
        if kind is not None and keeps_single and options.trains:
            _cast_rest(model)
        if lora is not None:
            for path in targets:
                _replace(model, path, _adapter_of(model.get_submodule(path), lora, kind))
            if options.activation_checkpointing != "none" or kind is not None:
                stack.enter_context(_inputs_with_gradients(model))
        yield notes


class _Adapted(nn.Module):
    """A frozen layer and its adapter."""

    def __init__(
        self, base: nn.Module, sizes: tuple[int, int], lora: LoraAdapters, device: torch.device
    ) -> None:
        super().__init__()
        self.base_layer = base
        own = {"bias": False, "device": device, "dtype": _TYPES[lora.dtype]}
        self.lora_A = nn.Linear(sizes[0], lora.r, **own)  # type: ignore[arg-type]
        self.lora_B = nn.Linear(lora.r, sizes[1], **own)  # type: ignore[arg-type]
        self.lora_dropout = nn.Dropout(lora.dropout) if lora.dropout else nn.Identity()
        self.scaling = lora.alpha / lora.r

    def forward(self, values: Tensor) -> Tensor:
        """As the layer."""
        result: Tensor = self.base_layer(values)
        before = result.dtype
        is_packed = isinstance(self.base_layer, PackedLinear)
        if is_packed:
            result = result.clone()
        if not (is_packed and torch.is_autocast_enabled("cpu")):
            values = values.to(self.lora_A.weight.dtype)
        added = self.lora_B(self.lora_A(self.lora_dropout(values))) * self.scaling
        output: Tensor = (result + added).to(before)
        return output


def _adapter_of(base: nn.Module, lora: LoraAdapters, kind: str | None) -> _Adapted:
    sizes = _widths(base)
    if sizes is None:
        raise ConfigError(
            f"--lora targets a {type(base).__name__}, and adapters of linear layers are modelled; "
            "name linear layers"
        )
    device = next(iter((*base.parameters(), *base.buffers()))).device
    return _Adapted(base, sizes, lora, device)


def _widths(layer: nn.Module) -> tuple[int, int] | None:
    """Features that a linear layer takes and gives; None of any other."""
    if isinstance(layer, nn.Linear | PackedLinear):
        return layer.in_features, layer.out_features
    if type(layer).__name__ == "Conv1D":  # of transformers' GPT-2: weights are [in, out]
        weight: Any = layer.weight
        return int(weight.shape[0]), int(weight.shape[1])
    return None


def _linear_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Linear layers whose forward pass is called, by path."""
    return {
        f"{path}.{name}" if path else name: child
        for path, parent in model.named_modules()
        if not isinstance(parent, nn.MultiheadAttention)  # reads its projection's weights itself
        for name, child in parent.named_children()
        if _widths(child) is not None
    }


def _heads(model: nn.Module) -> dict[str, nn.Module]:
    """Output heads by path: those of a language model, or of classes."""
    own: Any = model
    outputs = own.get_output_embeddings() if hasattr(own, "get_output_embeddings") else None
    classes = own.get_classifier() if hasattr(own, "get_classifier") else None  # of timm
    known = [head for head in (outputs, classes) if isinstance(head, nn.Module)]
    return {
        path: module
        for path, module in model.named_modules()
        if any(module is head for head in known) or path in _CLASS_HEADS
    }


def _targets(model: nn.Module, lora: LoraAdapters, heads: dict[str, nn.Module]) -> list[str]:
    """Paths of the layers that get an adapter.

    Raises:
        ConfigError: a name that no layer has.
    """
    linear = _linear_layers(model)
    if lora.targets == (ALL_LINEAR,):
        within = tuple(f"{path}." for path in heads)
        paths = [path for path in linear if path not in heads and not path.startswith(within)]
        if not paths:
            raise ConfigError(
                f"--lora: {type(model).__name__} has no linear layer beside its output head, and "
                "only linear layers are adapted; leave --lora out"
            )
        return paths
    named = {path: module for path, module in model.named_modules() if path}
    targets: dict[str, None] = {}
    for target in lora.targets:
        paths = [path for path in named if path == target or path.endswith(f".{target}")]
        if not paths:
            shown = dict.fromkeys(path.rpartition(".")[2] for path in linear)
            raise ConfigError(
                f"--lora targets {target[:80]}, and {type(model).__name__} has no such module; its "
                f"linear layers are {', '.join([*shown][:_MOST_NAMES])}"
            )
        odd = next((path for path in paths if path not in linear), None)
        if odd is not None:
            raise ConfigError(
                f"--lora targets {odd}, a {type(named[odd]).__name__}, and only linear layers are "
                "adapted; name linear layers"
            )
        targets |= dict.fromkeys(paths)
    return [*targets]


def _freeze(model: nn.Module, heads: dict[str, nn.Module]) -> list[Remark]:
    """Freeze all parameters but those of a head of classes; a remark says which stay."""
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    own: Any = model
    is_language = hasattr(own, "get_output_embeddings") and own.get_output_embeddings() is not None
    kept = (
        []
        if is_language
        else [path for path, head in heads.items() if next(head.parameters(), None) is not None]
    )
    for path in kept:
        heads[path].requires_grad_(True)
    if not kept:
        return []
    return [remark("trained_heads", names=tuple(kept))]


def _pack(model: nn.Module, options: StepOptions, heads: dict[str, nn.Module]) -> int:
    """Quantize all linear layers but heads; the number of weights that are.

    Raises:
        ConfigError: there is none.
    """
    kind = options.weights
    within = tuple(f"{path}." for path in heads)
    count = 0
    for path, layer in _linear_layers(model).items():
        if kind is None or path in heads or path.startswith(within):
            continue
        weight: Any = layer.weight
        given = weight if isinstance(layer, nn.Linear) else weight.t()
        bias: Any = layer.bias
        compute = _HALF.get(options.precision)
        _replace(model, path, PackedLinear(given, bias, kind, compute))
        count += weight.numel()
    if not count:
        raise ConfigError(f"--weights {kind}: {type(model).__name__} has no linear layer to pack")
    return count


def _packed_remark(model: nn.Module, packed: int, kind: str) -> Remark:
    every = sum(num_values_of(parameter) for parameter in model.parameters())
    # bitsandbytes packs linear layers; transformers 5 has the experts of a layer in one parameter.
    experts = sum(one.numel() for one in model.parameters() if one.ndim == _EXPERTS_RANK)
    return remark(
        "weights_packed",
        weights=kind,
        share_pct=100 * packed / every,
        experts_pct=100 * experts / every,
    )


def _cast_rest(model: nn.Module) -> None:
    """Parameters that are not packed in fp32, as PEFT's `prepare_model_for_kbit_training`."""
    for parameter in model.parameters():
        if parameter.dtype in {torch.float16, torch.bfloat16}:
            parameter.data = parameter.data.float()


def _as_loaded(model: nn.Module, lora: LoraAdapters) -> None:
    """Frozen weights in their stated type, or the half precision in which a checkpoint has them."""
    loaded = getattr(getattr(model, "config", None), "dtype", None)
    dtype = loaded if lora.rest is None else _TYPES[lora.rest]
    if lora.rest is None and dtype not in {torch.float16, torch.bfloat16}:
        return
    for parameter in model.parameters():
        if not parameter.requires_grad and parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)


@contextmanager
def _inputs_with_gradients(model: nn.Module) -> Iterator[None]:
    """Embeddings that ask for a gradient, as `enable_input_require_grads` of transformers."""
    own: Any = model
    if not hasattr(own, "get_input_embeddings"):
        yield
        return
    try:
        embeddings = own.get_input_embeddings()
    except NotImplementedError:  # of transformers: a model without tokens
        embeddings = None
    if not isinstance(embeddings, nn.Module):
        yield
        return

    def ask(_: nn.Module, __: Any, output: Any) -> None:
        if isinstance(output, Tensor) and output.is_floating_point():
            output.requires_grad_(True)

    hook = embeddings.register_forward_hook(ask)
    try:
        yield
    finally:
        hook.remove()


def _check_types(options: StepOptions) -> None:
    """Adapters, and what is not quantized, in half precision need a step in that precision.

    Raises:
        ConfigError: another one.
    """
    lora = options.lora
    if lora is None:
        return
    for name, dtype in (("dtype", lora.dtype), ("rest", lora.rest)):
        if dtype not in (None, "fp32") and dtype not in options.precision:
            raise ConfigError(
                f"--lora {name}={dtype} needs --precision {dtype} or amp-{dtype}, got "
                f"{options.precision}"
            )
    is_half = options.precision in _HALF and not options.is_autocast
    if lora.rest == "fp32" and is_half and options.weights is None:
        raise ConfigError(
            f"--lora rest=fp32 needs --precision fp32, autocast or --weights, got "
            f"{options.precision}"
        )


def _replace(model: nn.Module, path: str, module: nn.Module) -> None:
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, module.train(model.training))


_State = list[tuple[nn.Module, dict[str, Any], list[tuple[nn.Parameter, bool, Tensor]]]]


def _state(model: nn.Module) -> _State:
    """Children of each module, and of its parameters whether they are trained and their values."""
    return [
        (
            module,
            dict(module._modules),
            [(one, one.requires_grad, one.data) for one in module.parameters(recurse=False)],
        )
        for module in model.modules()
    ]


def _put_back(model: nn.Module, state: _State) -> None:
    for module, children, parameters in state:
        module._modules.clear()
        module._modules.update(children)
        for parameter, is_trained, data in parameters:
            parameter.data = data
            parameter.requires_grad_(is_trained)
