"""Layouts of compiled steps: Inductor's rules on small sets of convolutions."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from driple.graph.compiled_layout import compiled_costs
from driple.graph.cost import cost_of_graph
from driple.graph.cost.convolutions import CHANNELS_LAST
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step


def convolutions(*sizes: tuple[int, int, int, int]) -> nn.Sequential:
    """Channels in and out, window and groups of each convolution."""
    layers = [
        nn.Conv2d(inner, outer, window, padding=window // 2, groups=groups)
        for inner, outer, window, groups in sizes
    ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1))


def is_last(model: nn.Module, channels: int, *, trains: bool) -> bool:
    """Whether all convolutions of the compiled step have their channels last, or none."""
    model, batch = model.to("meta"), torch.empty(2, channels, 16, 16, device="meta")
    options = StepOptions(compiled=True, task="train" if trains else "forward")
    graph = traced_step(model, batch, torch.sum, options)
    costs = compiled_costs(graph, cost_of_graph(graph).by_signature)
    found = {CHANNELS_LAST in op.numbers for op in costs.signatures if op.kind.startswith("conv")}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("trains", [False, True])
def test_wide_convolutions_get_their_channels_last(trains: bool) -> None:
    assert is_last(convolutions((96, 96, 3, 1), (96, 128, 1, 1)), 96, trains=trains)


@pytest.mark.parametrize("trains", [False, True])
def test_groups_of_several_channels_keep_the_layout(trains: bool) -> None:
    assert not is_last(convolutions((128, 128, 3, 4)), 128, trains=trains)


def test_few_groups_among_wide_convolutions_keep_it_in_training_alone() -> None:
    """Inference weighs FLOPs: 1.358 times as long for 1/5 of them, 0.823 for the others."""
    model = convolutions((128, 128, 3, 4), (128, 128, 3, 1))
    assert is_last(model, 128, trains=False)
    assert not is_last(model, 128, trains=True)


def test_convolutions_that_narrow_keep_it_in_training_alone() -> None:
    model = convolutions((256, 128, 3, 1))
    assert is_last(model, 256, trains=False)
    assert not is_last(model, 256, trains=True)


def test_small_channels_alone_keep_it_in_training_alone() -> None:
    model = convolutions((32, 64, 3, 1))
    assert is_last(model, 32, trains=False)
    assert not is_last(model, 32, trains=True)


def test_one_convolution_among_three_hundred_ops_keeps_the_layout() -> None:
    tail = [nn.ReLU() for _ in range(310)]
    assert not is_last(nn.Sequential(convolutions((96, 96, 3, 1)), *tail), 96, trains=False)
