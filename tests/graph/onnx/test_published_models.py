"""ResNet-50, MobileNet-v2 and BERT-base, exported from PyTorch: FLOPs within 2 % of the trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from driple.graph.cost import cost_of_graph
from driple.jobs.pytorch.torchvision_ops import declare_torchvision_ops
from tests.graph.onnx.exports import exported, product_flops, read_model, traced

BATCH = 4


def _vision(name: str) -> nn.Module:
    declare_torchvision_ops()
    import torchvision

    model: nn.Module = getattr(torchvision.models, name)(weights=None)
    return model


class Classifier(nn.Module):
    """BERT-base with token ids as its only input."""

    def __init__(self) -> None:
        super().__init__()
        declare_torchvision_ops()
        import transformers

        self.bert = transformers.BertForSequenceClassification(transformers.BertConfig())

    def forward(self, words: torch.Tensor) -> Any:
        return self.bert(input_ids=words).logits


IMAGES = (torch.zeros(BATCH, 3, 224, 224),)
MODELS: dict[str, tuple[Callable[[], nn.Module], Sequence[torch.Tensor], int]] = {
    "resnet50": (lambda: _vision("resnet50"), IMAGES, 25_557_032),
    "mobilenet_v2": (lambda: _vision("mobilenet_v2"), IMAGES, 3_504_872),
    "bert-base": (Classifier, (torch.zeros(BATCH, 128, dtype=torch.int64),), 109_483_778),
}


@pytest.mark.slow
@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_flops_and_parameters_of_a_published_model(name: str, dynamo: bool, tmp_path: Path) -> None:
    make, inputs, parameters = MODELS[name]
    model = make()
    path = exported(model, inputs, tmp_path / "model.onnx", dynamo=dynamo)
    graph = read_model(path, batch_size=BATCH)
    expected = traced(model, inputs)
    assert int(graph.parameters.elements.sum()) == parameters
    assert graph.parameters.is_trained.all()
    ours, theirs = cost_of_graph(graph), cost_of_graph(expected)
    assert not ours.unknown
    assert ours.total_flops == pytest.approx(theirs.total_flops, rel=0.02)
    products = product_flops(graph), product_flops(expected)
    assert sum(products[0].values()) == pytest.approx(sum(products[1].values()), rel=0.01)
