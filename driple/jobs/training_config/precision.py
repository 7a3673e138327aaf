"""Precision of a training run from what its file says: who casts, and who keeps a copy in fp32.

half (a switch such as `bf16: true`)   with DeepSpeed, or FSDP on several devices: bf16-mixed
else autocast: amp-bf16
whole (the model is loaded or cast in half precision): bf16, unless an engine keeps masters;
autocast then changes nothing but the adapters of a frozen model
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driple.jobs.training_config.fields import RefusedError, Values

__all__ = ["SHARDS_PARAMETERS", "set_precision"]

SHARDS_PARAMETERS = frozenset({"fsdp", "hsdp", "zero2"})  # zero2: FSDP's SHARD_GRAD_OP
_HALVES = ("half", "whole", "tf32", "engine")
_ZERO = ("zero1", "zero2", "fsdp")
_USUAL_BUCKET = 500_000_000  # DeepSpeed's reduce_bucket_size
_MOST_ELEMENTS = 10**11
_AUTO_BUCKET = 4096**2  # Trainer's: the square of the model's hidden size


def set_precision(said: dict[str, Any], values: Values) -> None:
    """Replace what rules said of halves by a precision.

    Raises:
        RefusedError: two formats at once.
    """
    half, whole, tf32, engine = (said.pop(name, None) for name in _HALVES)
    if engine == "deepspeed" and said.get("scheme") in _ZERO:
        said["bucket_elements"] = _bucket_elements(values, said["scheme"])
    if half and whole and half != whole:
        raise RefusedError(f"of one half precision: the file has {half} and {whole}")
    lora = said.get("lora")
    if half and engine == "deepspeed":
        said["precision"] = f"{half}-mixed"
        if lora is not None:  # the engine casts all that the model has
            said["lora"] = replace(lora, dtype=half, rest=None)
    elif half and lora is not None:
        said["precision"] = f"amp-{half}"
    elif half and said.get("scheme") in SHARDS_PARAMETERS:
        said["precision"] = f"{half}-mixed"
        said["precision_alone"] = whole or f"amp-{half}"
    elif whole:
        said["precision"] = whole
    elif half:
        said["precision"] = f"amp-{half}"
    elif tf32:
        said["precision"] = "tf32"
    elif "auto" not in (values.get("bf16.enabled"), values.get("fp16.enabled")):
        said.setdefault("precision", "fp32")  # else the trainer's own file decides


def _bucket_elements(values: Values, scheme: str) -> int:
    """Gradients of DeepSpeed's buffer: two buffers where exchanges overlap, but of ZeRO-3.

    Raises:
        RefusedError: a size that is no number.
    """
    name = "zero_optimization."
    held = {key.rpartition(name)[2]: value for key, value in values.items() if name in key}
    size = held.get("reduce_bucket_size", _USUAL_BUCKET)
    if size == "auto":
        size = _AUTO_BUCKET
    try:
        elements = int(float(size))
    except (TypeError, ValueError, OverflowError) as error:
        raise RefusedError("a number of gradients in reduce_bucket_size") from error
    if not 0 < elements <= _MOST_ELEMENTS:
        raise RefusedError("a number of gradients above 0 in reduce_bucket_size")
    overlaps = held.get("overlap_comm") is True and scheme in ("zero1", "zero2")
    return elements * (2 if overlaps else 1)
