"""LoRA and QLoRA in files of several tools: rank, alpha, where adapters go, and base weights.

rank 16, alpha 32, all linear layers, 4 bits -> lora, weights of a job
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.config import BOTH
from driple.jobs.training_config.fields import NotModelledError, words

__all__ = ["ADAPTER", "adapter_of"]

ADAPTER = words("lora_r lora_alpha lora_target_modules lora_modules_to_save lora_target_parameters")
"""Fields of Hugging Face's tools that `adapter_of` is made from."""


def adapter_of(
    *,
    rank: Any,
    alpha: Any,
    targets: Any,
    four_bits: bool,
    eight_bits: bool,
    plain: bool = True,
) -> Mapping[str, Any]:
    """What low-rank adapters say of a job.

    Args:
        rank: of the adapters.
        alpha: their scale.
        targets: names of modules, `all-linear`, or None for the tool's own choice.
        four_bits: whether base weights have 4 bits.
        eight_bits: whether they have 8.
        plain: whether nothing else is trained or stored than plain LoRA.

    Raises:
        NotModelledError: always, as adapters have no model yet.
    """
    raise NotModelledError(BOTH, settled_by="lora")
