"""FLOPs of a traced step are three times those of timm's own forward counts."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from driple.graph.cost import cost_of_graph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.torch.step import StepOptions, traced_step
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops

declare_torchvision_ops()  # before timm, which imports torchvision

import timm  # noqa: E402

# Multiply-adds of one image in 10^9, as timm's results state them (timm_inference.csv.gz).
GMACS = {
    "wide_resnet50_2": 11.43, "gluon_senet154": 20.77,
    "swin_s3_base_224": 13.69, "twins_svt_large": 15.15, "seresnext101_32x4d": 8.02,
    "coatnet_4_224": 62.48, "rdnet_tiny": 5.06, "davit_huge": 60.93, "gcvit_tiny": 4.79,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(GMACS))
def test_a_step_is_three_forward_passes(name: str) -> None:
    """Within 2 %: the first layer has no gradient by the images, attention is computed again."""
    with torch.device("meta"):
        model, images = timm.create_model(name), torch.zeros(2, 3, 224, 224)
        labels = torch.zeros(2, dtype=torch.int64)
    graph = traced_step(
        model.train(),
        images,
        lambda outputs: nn.functional.cross_entropy(outputs, labels),
        StepOptions(),
    )
    cost = cost_of_graph(graph)
    kinds = zip(cost.flops.tolist(), graph.kinds, strict=True)
    products = sum(flops for flops, kind in kinds if family_of(kind) in PRODUCT_FAMILIES)
    assert products / (2 * 2 * GMACS[name] * 1e9) == pytest.approx(3.0, rel=0.02)
    assert not cost.unknown
