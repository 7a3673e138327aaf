"""Precision of a training run from what its file says: who casts, and who keeps a copy in fp32.

half (a switch such as `bf16: true`)   with DeepSpeed, or FSDP on several devices: bf16-mixed
else autocast: amp-bf16
whole (the model is loaded or cast in half precision): bf16, unless an engine keeps masters
"""

from __future__ import annotations

from typing import Any

from driple.jobs.training_config.fields import RefusedError, Values

__all__ = ["SHARDS_PARAMETERS", "set_precision"]

SHARDS_PARAMETERS = frozenset({"fsdp", "hsdp"})
_HALVES = ("half", "whole", "tf32", "engine")


def set_precision(said: dict[str, Any], values: Values) -> None:
    """Replace what rules said of halves by a precision.

    Raises:
        RefusedError: two formats at once.
    """
    half, whole, tf32, engine = (said.pop(name, None) for name in _HALVES)
    if half and whole and half != whole:
        raise RefusedError(f"of one half precision: the file has {half} and {whole}")
    if half and engine == "deepspeed":
        said["precision"] = f"{half}-mixed"
    elif half and said.get("scheme") in SHARDS_PARAMETERS:
        said["precision"] = f"{half}-mixed"
        said["precision_alone"] = whole or f"amp-{half}"
    elif whole:
        said["precision"] = whole
    elif half:
        said["precision"] = f"amp-{half}"
    elif tf32:
        said["precision"] = "tf32"
    else:
        said.setdefault("precision", "fp32")
