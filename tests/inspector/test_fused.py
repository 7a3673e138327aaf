"""The fused stages give the numbers and the gradients of the plain ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from driple.inspector import fused
from driple.inspector.fused import StageWeights, shared_stages
from driple.inspector.layers import GCNLayer


def random_stage(
    num_graphs: int, num_groups: int, width: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor, list[Tensor]]:
    torch.manual_seed(1)
    upper = torch.triu((torch.rand(num_graphs, num_groups, num_groups) < 0.2).float(), 1)
    adjacency = GCNLayer(width, width).prepare(upper + upper.transpose(1, 2)).to(dtype)
    shapes = [(width, width), (width,), *[(3 * width, width)] * 2, *[(3 * width,)] * 2]
    weights = [(torch.randn(shape, dtype=dtype) / 3).requires_grad_() for shape in shapes]
    h = torch.randn(num_graphs, num_groups, width, dtype=dtype).requires_grad_()
    return h, adjacency, weights


def plain_stages(h: Tensor, adjacency: Tensor, weights: list[Tensor], num_stages: int) -> Tensor:
    conv_weight, conv_bias, *gru = weights
    for _ in range(num_stages):
        y = functional.leaky_relu(adjacency @ (h @ conv_weight.t()) + conv_bias)
        flat = torch._VF.gru_cell(h.flatten(0, 1), y.flatten(0, 1), *gru)
        h = flat.view(h.shape)
    return h


@pytest.mark.parametrize("sparse_share", [0.0, 1.0])
@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("num_stages", [1, 2, 49])
def test_equal_to_the_plain_stages(
    num_stages: int, onednn: bool, sparse_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Result and every gradient within 1e-5, with each way to multiply matrices."""
    monkeypatch.setattr(fused, "SPARSE_SHARE", sparse_share)
    if not onednn:
        monkeypatch.setattr(fused, "_use_onednn", lambda x: False)
    h, adjacency, weights = random_stage(4, 20, 16, torch.float32)
    direction = torch.randn(4, 20, 16)
    results = []
    for run in (
        plain_stages(h, adjacency, weights, num_stages),
        shared_stages(h, adjacency, StageWeights(*weights), num_stages),
    ):
        results.append([run, *torch.autograd.grad((run * direction).sum(), [h, *weights])])
    for plain, own in zip(*results, strict=True):
        scale = plain.abs().max().clamp(min=1.0)
        torch.testing.assert_close(own / scale, plain / scale, atol=1e-5, rtol=0)


@pytest.mark.parametrize("sparse_share", [0.0, 1.0])
def test_gradients_are_the_derivatives(
    sparse_share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numerical differentiation in double precision."""
    monkeypatch.setattr(fused, "SPARSE_SHARE", sparse_share)
    h, adjacency, weights = random_stage(2, 4, 3, torch.float64)

    def run(h: Tensor, *weights: Tensor) -> Tensor:
        return shared_stages(h, adjacency, StageWeights(*weights), 3)

    assert torch.autograd.gradcheck(run, (h, *weights))


def test_no_stages_change_nothing() -> None:
    """Zero stages return the input."""
    h, adjacency, weights = random_stage(1, 4, 3, torch.float32)
    torch.testing.assert_close(shared_stages(h, adjacency, StageWeights(*weights), 0), h)
