"""Adapters of low rank on frozen layers (Hu et al., 2021), and frozen layers of four bits.

    y = W x + B A x, with W frozen; W may be packed in 4 bits and is unpacked before each product

As PEFT does it: the frozen model keeps its type, the adapters are trained.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ADAPTERS", "with_adapters"]

# Suffix of a job: rank, layers that have adapters, whether frozen weights are of 4 bits.
ADAPTERS: dict[str, tuple[int, tuple[str, ...], bool]] = {
    "lora": (16, ("q_proj", "k_proj", "v_proj", "o_proj", "c_attn", "c_proj"), False),
    "lora-qkv": (8, ("q_proj", "k_proj", "v_proj", "c_attn", "query_key_value"), False),
    "lora-qv": (8, ("q_proj", "v_proj", "c_attn", "query_key_value"), False),
    "qlora": (16, ("q_proj", "k_proj", "v_proj", "o_proj", "c_attn", "c_proj"), True),
    "qlora-qv": (8, ("q_proj", "v_proj", "c_attn", "query_key_value"), True),
}
_GROUP = 128  # weights that share a scale


class _Unpacked(torch.autograd.Function):
    """A product with packed weights; they are unpacked again for the backward pass.

    Its input is kept, as bitsandbytes up to 0.45 does (`ctx.tensors = (A, B)` of `MatMul4Bit`),
    although no gradient needs it.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, packed: Tensor, scales: Tensor) -> Tensor:
        ctx.save_for_backward(packed, scales, values)
        return nn.functional.linear(values, unpacked(packed, scales, values.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        packed, scales, _ = ctx.saved_tensors
        return gradient @ unpacked(packed, scales, gradient.dtype), None, None


def unpacked(packed: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights [out, in] from bytes [out, in / 2] of two each, by one kernel."""
    outer, half = packed.shape
    both = scales[:1, :1].to(dtype).expand(1, 2)
    return (packed.unsqueeze(-1) * both).view(outer, 2 * half)


class FourBitLinear(nn.Module):
    """A frozen linear layer without its weights' values: two weights in each byte."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        outer, inner = layer.weight.shape
        device = layer.weight.device
        self.register_buffer(
            "packed", torch.empty(outer, inner // 2, dtype=torch.uint8, device=device)
        )
        self.register_buffer(
            "scales",
            torch.empty(outer, -(-inner // _GROUP), dtype=torch.float16, device=device),
        )
        self.bias = layer.bias

    def forward(self, values: Tensor) -> Tensor:
        """As `nn.Linear`."""
        output: Tensor = _Unpacked.apply(  # type: ignore[no-untyped-call]  # of torch
            values, self.packed, self.scales
        )
        return output if self.bias is None else output + self.bias


class Adapted(nn.Module):
    """A frozen layer and its adapter.

    Args:
        base: a linear layer, or one that takes and gives the same shapes.
        inner: features that it takes.
        outer: features that it gives.
        rank: of the adapter.
    """

    def __init__(self, base: nn.Module, inner: int, outer: int, rank: int) -> None:
        super().__init__()
        self.base = base
        device = next(iter((*base.parameters(), *base.buffers()))).device
        self.lora_A = nn.Linear(inner, rank, bias=False, device=device)
        self.lora_B = nn.Linear(rank, outer, bias=False, device=device)

    def forward(self, values: Tensor) -> Tensor:
        """As the layer."""
        output: Tensor = self.base(values) + self.lora_B(self.lora_A(values)) * 2.0
        return output


def with_adapters(model: nn.Module, kind: str) -> nn.Module:
    """The model with all its parameters frozen and adapters of this kind added, in place."""
    rank, names, four_bits = ADAPTERS[kind]
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            widths = _widths(layer)
            if widths is None or name in {"lm_head", "embed_out", "classifier"}:
                continue
            base = layer
            if four_bits and isinstance(layer, nn.Linear):
                base = FourBitLinear(layer)
            if name in names:
                base = Adapted(base, *widths, rank)
            setattr(parent, name, base)
    return model


def _widths(layer: nn.Module) -> tuple[int, int] | None:
    """Features that a linear layer takes and gives; None of any other."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    if type(layer).__name__ == "Conv1D":  # of transformers' GPT-2
        weight: Any = layer.weight
        inner, outer = weight.shape
        return inner, outer
    return None
