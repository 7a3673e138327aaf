"""The fused set2set gives the numbers and the gradients of its equations written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from driple.inspector.fused_set2set import set2set


def random_case(width: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Three graphs of five, two and four groups: h, mask, weight and bias."""
    torch.manual_seed(0)
    h = torch.randn(3, 5, width, dtype=dtype)
    mask = torch.ones(3, 5, dtype=dtype)
    mask[1, 2:] = 0
    mask[2, 4:] = 0
    weight = torch.randn(2 * width, 4 * width, dtype=dtype) / 3
    return h, mask, weight, torch.randn(4 * width, dtype=dtype)


def plain_set2set(h: Tensor, mask: Tensor, weight: Tensor, bias: Tensor, num_steps: int) -> Tensor:
    query, read = h.new_zeros(len(h), h.shape[2]), h.new_zeros(len(h), h.shape[2])
    cell = query
    for _ in range(num_steps):
        gates = torch.cat([query, read], dim=1) @ weight + bias
        gate_in, gate_forget, update, gate_out = gates.chunk(4, dim=1)
        cell = gate_forget.sigmoid() * cell + gate_in.sigmoid() * update.tanh()
        query = gate_out.sigmoid() * cell.tanh()
        score = (h * query[:, None]).sum(dim=2).masked_fill(mask == 0, -torch.inf)
        read = (torch.softmax(score, dim=1)[:, :, None] * h).sum(dim=1)
    return torch.cat([query, read], dim=1)


@pytest.mark.parametrize("num_steps", [1, 2, 100])
def test_equal_to_the_equations(num_steps: int) -> None:
    """Result and every gradient within 1e-5, padded groups included."""
    h, mask, weight, bias = random_case(8, torch.float32)
    leaves = [tensor.requires_grad_() for tensor in (h, weight, bias)]
    direction = torch.randn(3, 16)
    results = []
    for run in (set2set, plain_set2set):
        out = run(h, mask, weight, bias, num_steps)
        results.append([out, *torch.autograd.grad((out * direction).sum(), leaves)])
    for own, plain in zip(*results, strict=True):
        scale = plain.abs().max().clamp(min=1.0)
        torch.testing.assert_close(own / scale, plain / scale, atol=1e-5, rtol=0)


def test_gradients_are_the_derivatives() -> None:
    """Numerical differentiation in double precision."""
    h, mask, weight, bias = random_case(3, torch.float64)
    leaves = tuple(tensor.requires_grad_() for tensor in (h, weight, bias))
    assert torch.autograd.gradcheck(
        lambda h, weight, bias: set2set(h, mask, weight, bias, 4), leaves
    )
