"""A model that names GPUs is read on a machine without one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from driple.graph.torch.one_device import OneDevice
from driple.graph.torch.step import StepOptions, traced_step


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_whatever_names_a_gpu_is_on_the_device_of_the_trace(device: str) -> None:
    with OneDevice(device):
        tensors = [
            torch.zeros(2, device="cuda"),
            torch.zeros(2, device=torch.device("cuda", 1)),
            torch.arange(2, device=0),
            torch.ones(2).cuda(),
            torch.ones(2).to("cuda:0", torch.float16),
            torch.ones(2).to(device="mps"),
            torch.ones(2).to(0),
            torch.ones(2).new_zeros(3, device="xpu"),
            nn.Linear(2, 2, device="cuda").weight,
            nn.Linear(2, 2).cuda().weight,
            nn.Linear(2, 2).to("cuda").weight,
        ]
        with torch.device("cuda"):
            tensors.append(torch.rand(2))
    assert {one.device.type for one in tensors} == {device}
    assert tensors[4].dtype == torch.float16


def test_values_stay_on_the_cpu_and_shapes_stay_shapes() -> None:
    """Builders read values of tensors that they put on the CPU, as timm does for drop path."""
    with OneDevice("meta"):
        rates = [rate.item() for rate in torch.linspace(0, 1, 3, device="cpu")]
        shapes = torch.empty(3, device="meta")
        moved = [shapes.cpu(), shapes.to("cpu"), shapes.to(torch.device("cpu"), torch.float64)]
    assert rates == [0.0, 0.5, 1.0]
    assert all(one.is_meta for one in moved)
    assert moved[2].dtype == torch.float64


@pytest.mark.parametrize("made_of", [torch.tensor, torch.as_tensor])
def test_numbers_from_a_list_of_shapes_are_shapes(made_of: Callable[..., torch.Tensor]) -> None:
    """As lengths of sequences, which a program lists before it packs them."""
    with OneDevice("meta"):
        lengths = made_of(list(torch.empty(5, device="meta")), dtype=torch.int64, device="cpu")
    assert lengths.is_meta
    assert (lengths.shape, lengths.dtype) == ((5,), torch.int64)


def test_noise_that_a_forward_pass_makes_on_a_gpu_is_part_of_the_step() -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            noise = torch.randn(inputs.shape[0], 4).cuda()
            mask = torch.ones(4, device="cuda")
            return (self.layer(inputs.cuda() + noise) * mask).sum()

    with torch.device("meta"):
        model, inputs = Noisy(), torch.zeros(3, 4)
    graph = traced_step(model, inputs, None, StepOptions())
    assert graph.sent_bytes == 20 * 4
    assert graph.num_nodes >= 5
