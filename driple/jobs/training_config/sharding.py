"""FSDP in files of Accelerate, Trainer and axolotl: how parameters are shared out, and offload.

fsdp_sharding_strategy FULL_SHARD, or fsdp_reshard_after_forward: true -> fsdp
SHARD_GRAD_OP -> zero2: parameters stay gathered between the passes; HYBRID_SHARD -> hsdp
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driple.jobs.training_config.config import BOTH
from driple.jobs.training_config.fields import NotModelledError, RefusedError, Values
from driple.jobs.training_config.rules import is_on

__all__ = ["KEPT_GATHERED", "fsdp_switch", "reshards", "sharding_strategy"]

_BY_NUMBER = {"1": "FULL_SHARD", "2": "SHARD_GRAD_OP", "3": "NO_SHARD", "4": "HYBRID_SHARD",
              "5": "HYBRID_SHARD_ZERO2"}  # fmt: skip
_SCHEMES = {"FULL_SHARD": "fsdp", "HYBRID_SHARD": "hsdp", "NO_SHARD": "ddp"}


KEPT_GATHERED: Mapping[str, Any] = {"scheme": "zero2", "bucket_elements": 12 * 4096**2}
"""FSDP whose parameters stay gathered from their first use to their last: traffic and shards of
`zero2`, with gradients reduced block by block (a block of a language model of width 4096).
"""


def sharding_strategy(value: Any, _: Values) -> Mapping[str, Any]:
    """A sharding strategy by name or number."""
    if isinstance(value, bool):  # FSDP 2, in the place of the first version's strategy
        return reshards(value, {})
    word = str(value).upper()
    word = _BY_NUMBER.get(word, word)
    if word == "SHARD_GRAD_OP":
        return KEPT_GATHERED
    if word == "HYBRID_SHARD_ZERO2":
        raise NotModelledError(BOTH, settled_by="scheme")
    if word not in _SCHEMES:
        raise RefusedError(f"one of {', '.join((*_BY_NUMBER.values(),))}")
    return {"scheme": _SCHEMES[word]}


def reshards(value: Any, values: Values) -> Mapping[str, Any]:
    """FSDP 2: whether parameters are freed after the forward pass; FSDP 1: its strategy."""
    word = str(value).upper()
    if _BY_NUMBER.get(word, word) in _BY_NUMBER.values():
        return sharding_strategy(value, values)
    return {"scheme": "fsdp"} if is_on(value) else KEPT_GATHERED


def fsdp_switch(value: Any, values: Values) -> Mapping[str, Any]:
    """`fsdp` of Trainer and axolotl: a switch, or words such as `full_shard auto_wrap offload`."""
    if value in (None, False, "", [], {}):
        return {}
    if value is True or str(value).lower() in ("true", "2"):
        return {"scheme": "fsdp"}
    parts = value if isinstance(value, list) else str(value).split()
    said: dict[str, Any] = {"scheme": "fsdp"}
    for part in (str(one).lower() for one in parts):
        if part == "offload":
            said |= {"offload_states": True, "offload_parameters": True}
        elif part in ("auto_wrap", "full_shard", "true"):
            continue
        else:
            said |= sharding_strategy(part, values)
    return said
