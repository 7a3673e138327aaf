"""Frozen linear layers whose weights are quantized, as bitsandbytes lays them out.

    nf4        half a byte a weight, and an fp32 scale for each 64 weights
    nf4-double the same with scales of one byte, of which each 256 share an fp32 scale
    int8       a byte a weight, and an fp32 scale for each row (LLM.int8)

NF4 weights are dequantized before each product, forward and backward. int8 weights are multiplied
as they are in the forward pass (timed as a product in half precision, since the outliers that
LLM.int8 multiplies apart cost what the narrower type saves), and dequantized in the backward pass.
Dettmers et al., 2022 (LLM.int8) and 2023 (QLoRA).
"""

from __future__ import annotations

from math import ceil
from typing import Any

import torch
from torch import Tensor, nn

from driple.graph.torch.lora import BaseWeights

__all__ = ["PackedLinear", "num_values_of"]

_BLOCK, _SCALES_OF_A_BLOCK = 64, 256
_VALUES = "num_values"  # of a parameter that packs several in an element


def num_values_of(parameter: Tensor) -> int:
    """Weights that a parameter holds: its elements, or more where each holds several."""
    return int(getattr(parameter, _VALUES, parameter.numel()))


class _FourBitProduct(torch.autograd.Function):
    """x W^T with W packed; W is unpacked again for the backward pass, and x is not kept."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, layer: PackedLinear) -> Tensor:
        ctx.layer = layer
        return nn.functional.linear(values, layer.unpacked(values.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient @ ctx.layer.unpacked(gradient.dtype), None


class _EightBitProduct(torch.autograd.Function):
    """x W^T with x and W in int8; the backward pass is in half precision. x is kept."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, layer: PackedLinear) -> Tensor:
        ctx.layer = layer
        ctx.save_for_backward(values)
        rows = values.reshape(-1, values.shape[-1])
        largest = rows.abs().amax(dim=-1, keepdim=True)
        quantized = (rows / largest).to(torch.int8)
        shape = (len(rows), layer.out_features)
        sums = torch.empty(shape, dtype=torch.int32, device=values.device)
        scales = layer.get_buffer("scales").to(values.dtype)
        result = torch.ops.aten._weight_int8pack_mm(rows, layer.weight, scales)
        result = result * largest
        del sums, quantized
        return result.view(*values.shape[:-1], layer.out_features)  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient @ ctx.layer.unpacked(gradient.dtype), None


class PackedLinear(nn.Module):
    """A frozen linear layer with quantized weights.

    Args:
        weight: [out, in] of the layer that it stands for.
        bias: [out], which stays as it is; None for none.
        kind: layout of the weights.
        compute: type in which products are computed; None for that of the inputs.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: nn.Parameter | None,
        kind: BaseWeights,
        compute: torch.dtype | None,
    ) -> None:
        super().__init__()
        outer, inner = weight.shape
        count, device = weight.numel(), weight.device
        self.out_features, self.in_features = int(outer), int(inner)
        self.compute = compute
        if kind == "int8":
            packed = torch.zeros(outer, inner, dtype=torch.int8, device=device)
            scales = {"scales": torch.zeros(outer, device=device)}
        else:
            packed = torch.zeros(ceil(count / 2), 1, dtype=torch.uint8, device=device)
            scales = _scales(ceil(count / _BLOCK), double=kind == "nf4-double", device=device)
            # The code of 16 values, and that of the scales.
            scales["code"] = torch.zeros(16, device=device)
        self.weight = nn.Parameter(packed, requires_grad=False)
        setattr(self.weight, _VALUES, count)
        for name, scale in scales.items():
            self.register_buffer(name, scale)
        self.bias = bias
        self.is_double = kind == "nf4-double"

    def unpacked(self, dtype: torch.dtype) -> Tensor:
        """The weights [out, in] in this type, by one kernel (two with scales of one byte)."""
        shape = self.out_features, self.in_features
        if self.weight.dtype == torch.int8:
            return self.weight * self.get_buffer("scales")[:1].to(dtype)
        if self.is_double:
            _ = self.get_buffer("scales") * self.get_buffer("scales_of_scales")[:1]
        both = self.get_buffer("code")[:2].to(dtype)  # a byte gives two weights
        weights: Tensor = (self.weight * both).view(-1)[: shape[0] * shape[1]].view(shape)
        return weights

    def forward(self, values: Tensor) -> Tensor:
        """As `nn.Linear`; the result has the type of the inputs."""
        lowered = values if self.compute is None else values.to(self.compute)
        product = _EightBitProduct if self.weight.dtype == torch.int8 else _FourBitProduct
        result: Tensor = product.apply(lowered, self)  # type: ignore[no-untyped-call]  # of torch
        result = result if self.bias is None else result + self.bias.to(result.dtype)
        return result.to(values.dtype)


def _scales(count: int, *, double: bool, device: torch.device) -> dict[str, Tensor]:
    if not double:
        return {"scales": torch.zeros(count, device=device)}
    groups = ceil(count / _SCALES_OF_A_BLOCK)
    return {
        "scales": torch.zeros(count, dtype=torch.uint8, device=device),
        "scales_of_scales": torch.zeros(groups, device=device),
        "code_of_scales": torch.zeros(256, device=device),
    }
