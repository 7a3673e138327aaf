"""Channels-last is read from shapes as PyTorch's own strides have it when the step really runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from driple.graph.cost.convolutions import CHANNELS_LAST, conv_facts
from driple.graph.opgraph import OpGraph
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

declare_torchvision_ops()  # before timm, which imports torchvision

import timm  # noqa: E402

IMAGES = (2, 3, 64, 64)
KINDS = ("conv", "batch_norm", "pool")


def traced(name: str, **options: Any) -> OpGraph:
    step = StepOptions(**options)
    with torch.device("cpu" if step.trace == "real" else "meta"):
        model, images = timm.create_model(name).train(), torch.zeros(IMAGES)
        labels = torch.zeros(IMAGES[0], dtype=torch.int64)
    return traced_step(model, images, lambda out: nn.functional.cross_entropy(out, labels), step)


def image_ops(graph: OpGraph) -> list[tuple[Any, ...]]:
    """Kind, attributes and shapes of each op on images, in order."""
    ops = [graph.signatures[number] for number in graph.signature_of.tolist()]
    return [
        (op.kind, op.numbers, tuple(one.shape for one in op.inputs))
        for op in ops
        if any(kind in op.kind for kind in KINDS)
    ]


@pytest.mark.parametrize("task", ["train", "forward"])
@pytest.mark.parametrize("name", ["resnet18", "efficientnet_b0", "convnext_atto", "densenet121"])
def test_formats_are_those_of_a_real_step(name: str, task: str) -> None:
    """Forward and backward, op by op; images of one pixel are in the usual order, as there."""
    image_formats = image_ops(traced(name, task=task, channels_last=True))
    assert image_formats == image_ops(traced(name, task=task, channels_last=True, trace="real"))
    assert sum(CHANNELS_LAST in numbers for _, numbers, _ in image_formats) > len(image_formats) / 2


def test_without_it_nothing_is_channels_last() -> None:
    graph = traced("resnet18")
    assert not any(CHANNELS_LAST in op.numbers for op in graph.signatures)


def test_the_format_is_all_that_an_op_differs_in() -> None:
    """A plain convolutional network runs the same ops on images of the same sizes."""
    usual, last = image_ops(traced("resnet18")), image_ops(traced("resnet18", channels_last=True))
    for (kind, numbers, shapes), other in zip(usual, last, strict=True):
        assert (kind, shapes) == (other[0], other[2])
        assert set(other[1]) - set(numbers) <= {CHANNELS_LAST}


def test_a_model_that_is_in_it_needs_no_option() -> None:
    """The filter's format decides, whatever the images have."""
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3))
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        images = torch.zeros(IMAGES)
    graph = traced_step(model, images, lambda outputs: outputs.sum(), StepOptions())
    facts = [convolution for op in graph.signatures if (convolution := conv_facts(op)) is not None]
    assert len(facts) == 5
    assert all(one.channels_last for one in facts)


def test_the_model_is_as_before_afterwards() -> None:
    with torch.device("meta"):
        model, images = nn.Conv2d(3, 8, 3), torch.zeros(IMAGES)
    strides = model.weight.stride()
    traced_step(model, images, lambda out: out.sum(), StepOptions(channels_last=True))
    assert model.weight.stride() == strides
    assert images.is_contiguous()
