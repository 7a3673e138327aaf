"""Norms and gated activations of transformers' models in one kernel each, as Liger-Kernel has them.

    with fused_kernels(model): ...      x -> x / rms(x) w        gate, up -> act(gate) up

A norm keeps its inputs and a number of each row (`LigerRMSNormFunction`), a gated activation its
two inputs, in whose place it writes their gradients (`LigerSiLUMulFunction`). Shapes, kernels and
memory are those of Liger's; values are not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from driple.errors import ConfigError

__all__ = ["fused_kernels"]

_aten = torch.ops.aten
_NORM = "RMSNorm"  # at the end of the name of each class of norms that Liger replaces


@contextmanager
def fused_kernels(model: nn.Module) -> Iterator[None]:
    """Have norms and gated products of a model of transformers computed by one kernel each.

    Raises:
        ConfigError: it has neither.
    """
    replaced: list[nn.Module] = []
    for module in model.modules():
        forward = _forward_of(module)
        if forward is not None and "forward" not in vars(module):
            vars(module)["forward"] = forward
            replaced.append(module)
    if not replaced:
        raise ConfigError(
            f"--set fused_kernels=on, or Liger-Kernel in a training config: {type(model).__name__} "
            "has no RMSNorm and no gated activation of transformers; leave it out"
        )
    try:
        yield
    finally:
        for module in replaced:
            del vars(module)["forward"]


def _forward_of(module: nn.Module) -> Callable[[Tensor], Tensor] | None:
    """The fused forward pass of a module; None of one that stays as it is."""
    own: Any = module
    has_one_input = len(inspect.signature(module.forward).parameters) == 1
    weight = getattr(own, "weight", None)
    if type(module).__name__.endswith(_NORM) and has_one_input and isinstance(weight, Tensor):
        return partial(_norm, module)
    if not has_one_input or not hasattr(own, "down_proj"):
        return None
    if hasattr(own, "gate_proj") and hasattr(own, "up_proj"):
        return partial(_gated, module)
    return partial(_gated_at_once, module) if hasattr(own, "gate_up_proj") else None


def _norm(module: Any, values: Tensor) -> Tensor:
    result: Tensor = _FusedNorm.apply(values, module.weight)  # type: ignore[no-untyped-call]
    return result


def _gated(module: Any, values: Tensor) -> Tensor:
    gate, up = module.gate_proj(values), module.up_proj(values)
    result: Tensor = module.down_proj(_FusedGate.apply(gate, up))  # type: ignore[no-untyped-call]
    return result


def _gated_at_once(module: Any, values: Tensor) -> Tensor:
    gate, up = module.gate_up_proj(values).chunk(2, dim=-1)
    result: Tensor = module.down_proj(_FusedGate.apply(gate, up))  # type: ignore[no-untyped-call]
    return result


class _FusedNorm(torch.autograd.Function):
    """x [t, h] and w [h]."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor) -> Tensor:
        normed, scales = _aten._fused_rms_norm(values, list(weight.shape), weight, 1e-6)
        ctx.save_for_backward(values, weight, scales)
        result: Tensor = normed.to(values.dtype)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        values, weight, scales = ctx.saved_tensors
        needed = [True, ctx.needs_input_grad[1]]
        gradients: tuple[Tensor, Tensor | None] = _aten._fused_rms_norm_backward(
            gradient, values, list(weight.shape), scales, weight, needed
        )
        return gradients


class _FusedGate(torch.autograd.Function):
    """Two inputs of one shape; their product."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, up: Tensor) -> Tensor:
        ctx.save_for_backward(gate, up)
        return gate * up

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        return gate.mul_(gradient), up.mul_(gradient)
