"""LoRA and QLoRA in files of several tools: rank, alpha, where adapters go, and base weights.

rank 16, alpha 32, all linear layers, 4 bits -> lora, weights of a job
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from driple.errors import ConfigError
from driple.graph.torch.lora import ALL_LINEAR, AdapterType, LoraAdapters
from driple.jobs.training_config.config import BOTH
from driple.jobs.training_config.fields import NotModelledError, RefusedError, words

__all__ = ["ADAPTER", "adapter_of", "keep_adapters"]

ADAPTER = words("lora_r lora_alpha lora_target_modules lora_modules_to_save lora_target_parameters")
"""Fields of Hugging Face's tools that `adapter_of` is made from."""


def adapter_of(
    *,
    rank: Any,
    alpha: Any,
    targets: Any,
    four_bits: bool,
    eight_bits: bool,
    double: bool = True,
    plain: bool = True,
) -> Mapping[str, Any]:
    """What low-rank adapters say of a job.

    Args:
        rank: of the adapters.
        alpha: their scale.
        targets: names of modules, `all-linear`, or None for the tool's own choice.
        four_bits: whether base weights have 4 bits.
        eight_bits: whether they have 8.
        double: whether the scales of weights of 4 bits are quantized too.
        plain: whether nothing else is trained or stored than plain LoRA.

    Raises:
        NotModelledError: other adapters than LoRA's, or layers that the tool chooses by itself.
        RefusedError: a rank, a scale or names that cannot be.
    """
    names = _names_of(targets)
    if not plain or not names:
        raise NotModelledError(BOTH, settled_by="lora")
    try:
        lora = LoraAdapters(r=rank, alpha=alpha, targets=names)
    except ConfigError as error:
        raise RefusedError(str(error)) from error
    four = "nf4-double" if double else "nf4"
    weights = four if four_bits else "int8" if eight_bits else None
    return {"lora": lora, "weights": weights}


def keep_adapters(
    said: dict[str, Any], *, dtype: AdapterType = "fp32", rest: AdapterType | None = None
) -> None:
    """State the types in which a tool keeps adapters, if there are any, and what is frozen.

    Args:
        said: what rules said.
        dtype: of the adapters.
        rest: of frozen parameters that are not quantized.
    """
    lora = said.get("lora")
    if lora is not None:
        said["lora"] = replace(lora, dtype=dtype, rest=rest)


def _names_of(targets: Any) -> tuple[str, ...]:
    """Names of modules; none where the tool chooses."""
    given = targets.split(",") if isinstance(targets, str) else targets
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        return ()
    names = tuple(name.strip() for name in given if name.strip())
    return (ALL_LINEAR,) if names in {("all",), (ALL_LINEAR,)} else names
