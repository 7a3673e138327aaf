"""Optimizers: states as torch keeps them, kernels as multi-tensor launches are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import nn

from driple.graph.torch.options import OPTIMIZERS, StepOptions
from driple.graph.torch.step import traced_step
from driple.graph.torch.update import multi_tensor_kernels, update_of
from driple.render.remarks import sentences

SIZES = [(64, 32), (64,), (300, 70), (128, 128), (3, 5, 7)]
OF_TORCH: dict[str, Any] = {
    "sgd": lambda given: torch.optim.SGD(given, lr=0.1),
    "momentum": lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.9),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "adafactor": torch.optim.Adafactor,
}


def parameters(device: str = "meta") -> list[nn.Parameter]:
    return [nn.Parameter(torch.ones(size, device=device)) for size in SIZES]


@pytest.mark.parametrize("name", sorted(OF_TORCH))
def test_states_take_the_bytes_of_a_real_optimizer(name: str) -> None:
    """After a real step on the CPU; counters of steps are single numbers on the host."""
    real = parameters("cpu")
    for parameter in real:
        parameter.grad = torch.ones_like(parameter)
    optimizer = OF_TORCH[name](real)
    optimizer.step()
    tensors = [
        value
        for state in optimizer.state.values()
        for key, value in state.items()
        if isinstance(value, torch.Tensor) and key != "step"
    ]
    expected = sum(one.nbytes for one in tensors)
    assert update_of(parameters(), StepOptions(optimizer=name)).state_bytes == expected


def test_bytes_and_kernels_by_hand() -> None:
    """Momentum: decay the buffer (2), add the gradient (3), step (3); fused: 3 read, 2 written."""
    total = sum(one.nbytes for one in parameters())
    update = update_of(parameters(), StepOptions(optimizer="momentum"))
    assert (update.moved_bytes, update.num_kernels) == (8 * total, 3)
    fused = update_of(parameters(), StepOptions(optimizer="momentum-fused"))
    assert (fused.moved_bytes, fused.num_kernels) == (5 * total, 1)
    assert fused.optimizer == "momentum-fused"
    adamw = update_of(parameters(), StepOptions(optimizer="adamw-fused"))
    assert (adamw.moved_bytes, adamw.num_kernels) == (7 * total, 1)
    assert adamw.state_bytes == 2 * total


def test_eight_bit_adam_keeps_a_byte_for_each_moment() -> None:
    """A scale of 4 bytes for 256 elements; parameters under 4,096 elements keep full moments."""
    update = update_of(parameters(), StepOptions(optimizer="adam8bit"))
    small = 2048 * 0 + 64 + 105 + 2048
    large = [300 * 70, 128 * 128]
    scales = sum(-(-one // 256) for one in large)
    assert update.state_bytes == 2 * (4 * small + sum(large) + 4 * scales)
    assert update.num_kernels == len(SIZES)


def test_optimizers_of_large_batches_by_hand() -> None:
    """LAMB: gradient (1); 4 read, 3 written; norms (2); step (3). LARS: norms (2); 3 read, 2."""
    total = sum(one.nbytes for one in parameters())
    for name, moved, kernels, states in (
        ("lamb", 13, 5, 2),
        ("lars", 7, 3, 1),
        ("novograd", 6, 2, 1),
    ):
        update = update_of(parameters(), StepOptions(optimizer=name))
        assert (update.moved_bytes, update.num_kernels) == (moved * total, kernels)
        assert update.state_bytes - states * total in {0, 4 * len(SIZES)}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_reads_gradients_and_writes_parameters(name: str) -> None:
    update = update_of(parameters(), StepOptions(optimizer=name))
    assert update.moved_bytes >= 3 * sum(one.nbytes for one in parameters())
    assert update.num_kernels >= 1


def test_launches_are_cut_by_tensors_and_by_blocks() -> None:
    """110 tensors of one list, 36 of four; 320 chunks of 65,536 elements."""
    assert multi_tensor_kernels([10] * 110, 1) == 1
    assert multi_tensor_kernels([10] * 111, 1) == 2
    assert multi_tensor_kernels([10] * 73, 4) == 3
    assert multi_tensor_kernels([65_536 * 320], 2) == 1
    assert multi_tensor_kernels([65_536 * 320 + 1], 2) == 2
    assert multi_tensor_kernels([], 1) == multi_tensor_kernels([0], 1) == 0
    counts = [multi_tensor_kernels([65_536 * 7] * n, 3) for n in range(200)]
    assert all(0 <= more - less <= 1 for less, more in pairwise(counts))


@pytest.mark.parametrize("passes", [1, 3])
def test_parameters_without_a_gradient_take_no_update_and_no_state(passes: int) -> None:
    """As torch.optim skips them; in a step the loss does not depend on the second layer."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(16, 4), nn.Linear(300, 300)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self.used(image)

    options = StepOptions(optimizer="adamw", grad_accumulation=passes)
    with torch.device("meta"):
        model, image = Model(), torch.ones(2, 16)
        graph = traced_step(model, (image,), lambda outputs: outputs.sum(), options)
        alone = traced_step(model.used, (image,), lambda outputs: outputs.sum(), options)
    assert graph.update == alone.update
    assert graph.remote == alone.remote
    (note,) = sentences(graph.report.notes)
    assert note.startswith(
        "2 parameters (90,300 elements, such as unused.weight) without a gradient"
    )
    assert not sentences(alone.report.notes)


def test_frozen_parameters_take_no_update_and_clipping_reads_all_gradients() -> None:
    given = parameters()
    given[2].requires_grad_(requires_grad=False)
    whole, part = (
        update_of(each, StepOptions(optimizer="adamw")) for each in (parameters(), given)
    )
    assert part.state_bytes == whole.state_bytes - 2 * given[2].nbytes
    total = sum(one.nbytes for one in parameters())
    clipped = update_of(parameters(), StepOptions(optimizer="adamw", clip_gradients=True))
    extra = clipped.moved_bytes - whole.moved_bytes
    assert 3 * total < extra < 3 * total + 1000  # norms read, factors applied
    assert clipped.num_kernels > whole.num_kernels + 2
