"""Convolutions of real models: their recorded facts are the attributes of timm's modules."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import Tensor, nn

from driple.graph.cost.convolutions import ConvFacts, conv_facts
from driple.graph.opgraph import OpGraph
from driple.graph.torch.step import StepOptions, traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

declare_torchvision_ops()  # before timm, which imports torchvision

import timm  # noqa: E402

MODELS = (
    "convnext_atto", "efficientnet_b0", "inception_v3", "mixnet_s", "regnety_002",
    "resnext50_32x4d", "mobilenetv3_small_100", "res2net50_26w_4s", "hrnet_w18_small",
    "dla34", "ese_vovnet19b_dw", "resnetv2_50d_evos",
)  # fmt: skip
BATCH = 2
Attributes = tuple[object, ...]


def convolutions_of(model: nn.Module) -> Counter[Attributes]:
    """Attributes of each convolution that a forward pass calls, as its module has them."""
    counts: Counter[Attributes] = Counter()

    def note(module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(module, nn.Conv2d)
        groups = module.groups
        counts[
            groups,
            module.in_channels // groups,
            module.out_channels // groups,
            module.kernel_size,
            module.stride,
            module.dilation,
            tuple(given[0].shape[2:]),
            tuple(output.shape[2:]),
        ] += 1

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(note)
    model(torch.zeros(BATCH, 3, 224, 224, device="meta"))
    return counts


def attributes_of(facts: ConvFacts) -> Attributes:
    return (
        facts.groups, facts.in_per_group, facts.out_per_group, facts.window, facts.strides,
        facts.dilations, facts.image, facts.output,
    )  # fmt: skip


def facts_by_direction(graph: OpGraph) -> dict[str, Counter[Attributes]]:
    counts: dict[str, Counter[Attributes]] = {
        one: Counter() for one in ("forward", "input", "filter")
    }
    for number in graph.signature_of.tolist():
        facts = conv_facts(graph.signatures[number])
        if facts is not None:
            assert facts.batch == BATCH
            counts[facts.direction][attributes_of(facts)] += 1
    return counts


@pytest.mark.parametrize("name", MODELS)
def test_facts_are_the_attributes_of_modules(name: str) -> None:
    """Forward and both gradients; only the first layer has none by its images."""
    with torch.device("meta"):
        model = timm.create_model(name).train()
        images, labels = torch.zeros(BATCH, 3, 224, 224), torch.zeros(BATCH, dtype=torch.int64)
    graph = traced_step(
        model,
        images,
        lambda outputs: nn.functional.cross_entropy(outputs, labels),
        StepOptions(precision="amp-fp16"),
    )
    counts, wanted = facts_by_direction(graph), convolutions_of(model)
    assert wanted
    assert counts["forward"] == counts["filter"] == wanted
    assert sum((wanted - counts["input"]).values()) == 1
    assert not counts["input"] - wanted


def test_a_transposed_convolution_is_the_gradient_of_one() -> None:
    """From 8 to 6 channels in two groups, and back: what it makes, its convolution reads."""
    with torch.device("meta"):
        model = nn.ConvTranspose2d(8, 6, 4, stride=2, padding=1, groups=2)
        images = torch.zeros(BATCH, 8, 10, 10, requires_grad=True)
    graph = traced_step(model, images, lambda outputs: outputs.sum(), StepOptions())
    facts = [convolution for op in graph.signatures if (convolution := conv_facts(op)) is not None]
    assert [one.direction for one in facts] == ["input", "filter", "forward"]
    for convolution in facts:
        assert convolution.transposed
        assert (convolution.groups, convolution.in_per_group, convolution.out_per_group) == (
            2,
            3,
            4,
        )
        assert (convolution.image, convolution.output, convolution.strides) == (
            (20, 20),
            (10, 10),
            (2, 2),
        )


def test_a_transposed_convolution_by_channel_reads_what_it_makes() -> None:
    """Two output channels from each of four: no depthwise convolution has these as gradients."""
    with torch.device("meta"):
        model, images = nn.ConvTranspose2d(4, 8, 2, stride=2, groups=4), torch.zeros(2, 4, 5, 5)
    graph = traced_step(model, images, lambda outputs: outputs.sum(), StepOptions())
    facts = next(
        convolution for op in graph.signatures if (convolution := conv_facts(op)) is not None
    )
    assert (facts.groups, facts.in_per_group, facts.out_per_group) == (4, 2, 1)
