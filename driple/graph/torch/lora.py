"""LoRA adapters and quantized base weights as options; imports no torch.

r=16,alpha=32,targets=q_proj+v_proj,dropout=0.05,dtype=bf16  ->  LoraAdapters
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from driple.errors import ConfigError

__all__ = ["ALL_LINEAR", "BASE_WEIGHTS", "AdapterType", "BaseWeights", "LoraAdapters"]

AdapterType = Literal["fp32", "bf16", "fp16"]
BaseWeights = Literal["nf4", "nf4-double", "int8"]
BASE_WEIGHTS: tuple[str, ...] = get_args(BaseWeights)
ALL_LINEAR = "all-linear"
_MOST_RANK = 65_536
_LONGEST = 120  # characters of a refused value that an error repeats
_FORM = (
    "--lora needs KEY=VALUE pairs of r, alpha, targets, dropout, dtype and rest, such as "
    "r=16,alpha=32,targets=all-linear or r=8,targets=q_proj+v_proj"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoraAdapters:
    """Trained low-rank matrices beside frozen layers (Hu et al., 2021), as PEFT makes them.

    Attributes:
        r: rank.
        alpha: their result is scaled by alpha / r, which changes neither time nor memory.
        targets: last parts of the names of adapted layers; `all-linear` is all but the output
            head.
        dropout: share of a layer's inputs that its adapter does not see.
        dtype: type of the adapters. In fp32 (PEFT's default) products of a half-precision model's
            adapters are in fp32, unless autocast lowers them.
        rest: type of all other parameters that are not quantized. None: under autocast that of the
            checkpoint, and fp32 beside quantized weights (`prepare_model_for_kbit_training`) unless
            the adapters are in half precision.

    Raises:
        ConfigError: a value of another type, or out of range.
    """

    r: int = 8
    alpha: float = 16.0
    targets: tuple[str, ...] = (ALL_LINEAR,)
    dropout: float = 0.0
    dtype: AdapterType = "fp32"
    rest: AdapterType | None = None

    def __post_init__(self) -> None:
        if isinstance(self.r, bool) or not isinstance(self.r, int) or not 1 <= self.r <= _MOST_RANK:
            raise ConfigError(f"r of --lora must be a whole number from 1, got {self.r!r:.40}")
        if not _is_number(self.alpha) or self.alpha <= 0:
            raise ConfigError(f"alpha of --lora must be a number above 0, got {self.alpha!r:.40}")
        if not _is_number(self.dropout) or not 0 <= self.dropout < 1:
            raise ConfigError(
                f"dropout of --lora must be a number from 0 to below 1, got {self.dropout!r:.40}"
            )
        targets = self.targets
        is_names = isinstance(targets, tuple) and all(isinstance(name, str) for name in targets)
        if not is_names or not targets or not all(targets):
            raise ConfigError(
                f"targets of --lora must be {ALL_LINEAR} or names of layers such as "
                f"q_proj+v_proj, got {targets!r:.80}"
            )
        for name, dtype in (("dtype", self.dtype), ("rest", self.rest or "fp32")):
            if dtype not in get_args(AdapterType):
                raise ConfigError(
                    f"{name} of --lora must be one of {', '.join(get_args(AdapterType))}, got "
                    f"{dtype!r:.40}"
                )

    def __str__(self) -> str:
        parts = [f"r={self.r}", f"alpha={self.alpha:g}", f"targets={'+'.join(self.targets)}"]
        parts += [f"dropout={self.dropout:g}"] if self.dropout else []
        parts += [f"dtype={self.dtype}"] if self.dtype != "fp32" else []
        parts += [f"rest={self.rest}"] if self.rest else []
        return ",".join(parts)

    @property
    def is_half(self) -> bool:
        """Whether the adapters are kept in half precision."""
        return self.dtype != "fp32"

    @classmethod
    def read(cls, text: str) -> LoraAdapters:
        """The adapters that a user typed.

        Raises:
            ConfigError: no such key, a key twice, or a value out of range.
        """
        values: dict[str, Any] = {}
        for pair in text.split(","):
            key, equals, value = (part.strip() for part in pair.partition("="))
            if key not in _READ or not equals or key in values:
                raise ConfigError(f"{_FORM}; got '{text[:_LONGEST]}'")
            try:
                values[key] = _READ[key](value)
            except ValueError as error:
                raise ConfigError(
                    f"{key} of --lora must be a number, got '{value[:_LONGEST]}'"
                ) from error
        return cls(**values)

    @classmethod
    def checked(cls, value: object) -> LoraAdapters:
        """Adapters from Python: themselves, or the text that a user would type.

        Raises:
            ConfigError: something else.
        """
        if isinstance(value, str):
            return cls.read(value)
        if not isinstance(value, cls):
            raise ConfigError(f"{_FORM}; got {value!r:.{_LONGEST}}")
        return value


def _is_number(value: object) -> bool:
    is_real = isinstance(value, int | float) and not isinstance(value, bool)
    return is_real and math.isfinite(float(value))  # type: ignore[arg-type]  # a number by now


_READ: dict[str, Any] = {
    "r": int,
    "alpha": float,
    "targets": lambda text: tuple(text.split("+")),
    "dropout": float,
    "dtype": str,
    "rest": str,
}
