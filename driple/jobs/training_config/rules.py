"""Rules of values that several tools write alike: whole numbers, switches, optimizers, offload.

value of a field -> what it says, by name in `TrainingConfig`

Names that are no field of `TrainingConfig` are for `Format.derived`, which takes them away: `half`
(autocast, or an engine that casts), `whole` (the model itself is cast), `engine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.config import BOTH, TIME
from driple.jobs.training_config.fields import NotModelledError, RefusedError, Rule, Values

__all__ = [
    "LIGER",
    "autocast",
    "checkpointing",
    "clipping",
    "compile_mode",
    "container",
    "dtype_of_model",
    "ignored",
    "is_on",
    "liger",
    "mixed_precision",
    "named",
    "offloaded",
    "optimizer_named",
    "switch",
    "tf32",
    "whole_number",
]

_MOST = 2**31 - 1
_AUTO = "auto"
_HALF = {"bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16", "half": "fp16"}
_FULL = ("fp32", "float32", "no", "none")


LIGER = tuple(
    f"liger_kernel_config.{name}"
    for name in ("fused_linear_cross_entropy", "cross_entropy", "rms_norm", "swiglu")
)
"""Fields that `liger` reads beside its own."""


def ignored(value: Any, values: Values) -> Mapping[str, Any]:
    """A field that another tool's file or another field decides, such as `auto`."""
    return {}


def container(value: Any, values: Values) -> Mapping[str, Any]:
    """Fields that have a section of their own; a file in its place, or a switch, is not read."""
    if value in (None, False, "", [], {}):
        return {}
    raise NotModelledError


def whole_number(name: str, *, none: tuple[Any, ...] = ()) -> Rule:
    """A whole number of 1 or more; `auto`, and the values of `none`, say nothing."""

    def read(value: Any, _: Values) -> Mapping[str, Any]:
        if value == _AUTO or value in none:
            return {}
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST:
            raise RefusedError("a whole number of 1 or more")
        return {name: value}

    return read


def is_on(value: Any) -> bool:
    """Whether a switch is on.

    Raises:
        RefusedError: it is no switch.
    """
    if isinstance(value, bool):
        return value
    switches = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if not isinstance(value, str) or value.lower() not in switches:
        raise RefusedError("true or false")
    return switches[value.lower()]


def autocast(half: str) -> Rule:
    """A switch such as `bf16: true`; `auto` is on."""

    def read(value: Any, _: Values) -> Mapping[str, Any]:
        return {"half": half} if value == _AUTO or is_on(value) else {}

    return read


def tf32(value: Any, values: Values) -> Mapping[str, Any]:
    """TF32 counts where nothing is in half precision."""
    return {"tf32": True} if value == _AUTO or is_on(value) else {}


def mixed_precision(value: Any, _: Values) -> Mapping[str, Any]:
    """`mixed_precision: bf16`, or `fp8`, which has no model."""
    word = "no" if value is False else str(value).lower()
    if word in ("fp8", "float8"):
        raise NotModelledError(BOTH, settled_by="precision")
    if word not in _HALF and word not in _FULL:
        raise RefusedError(f"one of {', '.join((*_FULL, *_HALF, 'fp8'))}")
    return {"half": _HALF[word]} if word in _HALF else {}


def dtype_of_model(value: Any, _: Values) -> Mapping[str, Any]:
    """The type that a model is loaded in; `auto` is that of its checkpoint, bfloat16 of most."""
    word = str(value).lower().removeprefix("torch.")
    if word == _AUTO:
        return {"whole": "bf16"}
    if word not in _HALF and word not in _FULL:
        raise RefusedError(f"one of {', '.join((*_FULL, *_HALF, _AUTO))}")
    return {"whole": _HALF[word]} if word in _HALF else {}


def named(name: str, table: Mapping[str, str | None]) -> Rule:
    """One of several words."""

    def read(value: Any, _: Values) -> Mapping[str, Any]:
        word = "no" if value is False else str(value).lower()
        if word not in table:
            raise RefusedError(f"one of {', '.join(table)}")
        return {name: table[word]}

    return read


def checkpointing(value: Any, _: Values) -> Mapping[str, Any]:
    """A switch of activation checkpointing; each block is recomputed."""
    if value in ("offload", "offload_disk", "disk"):
        raise NotModelledError(BOTH)
    if value in ("unsloth", "legacy"):  # axolotl's older names of offloading
        raise NotModelledError(BOTH)
    return {"activation_checkpointing": "full" if is_on(value) else "none"}


def switch(name: str) -> Rule:
    """A switch."""

    def read(value: Any, _: Values) -> Mapping[str, Any]:
        return {name: True} if value == _AUTO or is_on(value) else {}

    return read


def compile_mode(value: Any, _: Values) -> Mapping[str, Any]:
    """A mode of `torch.compile`: with CUDA graphs, or the usual one; others tune kernels."""
    if value in (None, "default"):
        return {}
    if value == "reduce-overhead":
        return {"cuda_graphs": True}
    raise NotModelledError(TIME)


def liger(value: Any, values: Values) -> Mapping[str, Any]:
    """Liger-Kernel with its usual kernels (`_apply_liger_kernel_to_instance`) or those configured.

    Its rotary embeddings keep no other tensors than PyTorch's, and are left out.
    """
    if not is_on(value):
        return {}
    loss, apart, norm, gate = (values.get(name) for name in LIGER)
    if apart or (norm is False) != (gate is False):
        raise NotModelledError
    return {"fused_loss": loss is not False, "fused_kernels": norm is not False}


def clipping(value: Any, _: Values) -> Mapping[str, Any]:
    """A largest norm of gradients; 0 and none do not clip."""
    if value == _AUTO or value in (None, "None", "none"):
        return {"clip_gradients": False} if value != _AUTO else {}
    try:
        norm = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise RefusedError("a norm, such as 1.0") from error
    return {"clip_gradients": norm > 0}


# Words of tools for an optimizer that Driple has; the kernel of bitsandbytes is fused.
_OPTIMIZERS: Mapping[str, str] = {
    "adamw_torch": "adamw", "adamw_torch_fused": "adamw-fused", "adamw_hf": "adamw",
    "adamw": "adamw", "adam": "adam", "adafactor": "adafactor", "sgd": "sgd", "adagrad": "adagrad",
    "rmsprop": "rmsprop", "lion_32bit": "lion", "lion_pytorch": "lion", "lion": "lion",
    "lamb": "lamb", "fusedadam": "adamw-fused", "fusedlamb": "lamb", "adamw_apex_fused":
    "adamw-fused", "cpuadam": "adam", "deepspeedcpuadam": "adam", "paged_adamw_32bit": "adamw",
    "pagedadamw": "adamw", "pagedadamw32bit": "adamw", "paged_adamw": "adamw",
    "adamw_bnb_8bit": "adam8bit", "adamw_8bit": "adam8bit", "paged_adamw_8bit": "adam8bit",
    "pagedadamw8bit": "adam8bit", "adamw8bit": "adam8bit", "adam8bit": "adam8bit",
    "pagedadam8bit": "adam8bit", "adamw_torch_8bit": "adam8bit",
}  # fmt: skip
_WITH_FUSED = ("adamw", "adam", "adagrad", "sgd")


def optimizer_named(value: Any, values: Values) -> Mapping[str, Any]:
    """`adamw_torch_fused`, `AdamW`, `torch.optim.AdamW`, `bitsandbytes.optim.PagedAdamW8bit`."""
    name = _OPTIMIZERS.get(str(value).rpartition(".")[2].lower().replace("-", "_"))
    if name is None:
        raise NotModelledError(BOTH, settled_by="optimizer")
    fused = values.get("optimizer.fused") is True
    fused = fused or values.get("optimizer.implementation") == "fused"
    return {"optimizer": f"{name}-fused" if fused and name in _WITH_FUSED else name}


def offloaded(part: str) -> Rule:
    """A device that keeps states or parameters: `cpu`, or a switch that means it."""

    def read(value: Any, _: Values) -> Mapping[str, Any]:
        word = str(value).lower()
        if word == "nvme":
            raise NotModelledError(BOTH)
        if word in ("none", "false", "no"):
            return {}
        if word not in ("cpu", "true", "yes"):
            raise RefusedError("cpu, nvme or none")
        return {f"offload_{part}": True}

    return read
