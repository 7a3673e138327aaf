"""One network as a TensorFlow graph, a PyTorch model and an ONNX file: FLOPs and parameters alike.

TensorFlow builds the catalogue's graphs in a process of its own; the same layers stand here in
PyTorch. Both trace the same batch.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from driple.graph import OpGraph, read_graph
from driple.graph.cost import cost_of_graph
from driple.graph.torch.step import StepOptions, traced_step
from driple.jobs.pytorch.models.resnet import ResNet
from driple.jobs.pytorch.models.vgg import VGG
from tests.conftest import RunTensorFlow, asked, usual
from tests.graph.onnx.exports import exported, read_model

BATCH, CLASSES = 4, 1001  # tf_cnn_benchmarks has a class for the background
LENGTH, WORDS, WIDTH, HEADS, LAYERS = 50, 32_000, 512, 8, 6
TOLERANCE = 0.01

BUILD = """
import json, sys
from driple.jobs import Workload
from driple.jobs.tensorflow.training import *
use_graph_mode()
paths = {}
for name in sys.argv[2:]:
    paths[name] = sys.argv[1] + "/" + name.split("/")[0] + ".pb"
    step = build_training_step(Workload.parse(name), ClusterShape(), 0)
    open(paths[name], "wb").write(graphdef_of(step))
print(json.dumps(paths))
"""
WORKLOADS = {
    "resnet50": f"resnet50/imagenet/b{BATCH}/sgd/sync",
    "vgg16": f"vgg16/imagenet/b{BATCH}/sgd/sync",
    "transformer": f"transformer/europarl/b{BATCH}/sgd/sync",
}


class Attention(nn.Module):
    """Multi-head attention, its products written out."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            layer(part).unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)
            for layer, part in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        scores = query @ key.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5
        weights = nn.functional.dropout(torch.softmax(scores, -1), 0.1, self.training)
        output: torch.Tensor = self.out((weights @ value).transpose(1, 2).flatten(2))
        return output


class Layer(nn.Module):
    """Attention to some sequences, then two products; each with a residual and a norm."""

    def __init__(self, attentions: int) -> None:
        super().__init__()
        self.attentions = nn.ModuleList(Attention() for _ in range(attentions))
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(attentions + 1))
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        for attention, norm, memory in zip(
            self.attentions, self.norms, (None, *others), strict=False
        ):
            x = norm(x + self.dropout(attention(x, x if memory is None else memory)))
        last: torch.Tensor = self.norms[-1](x + self.dropout(self.narrow(torch.relu(self.wide(x)))))
        return last


class Transformer(nn.Module):
    """The catalogue's Transformer: one sequence is read as source and as target."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(WORDS, WIDTH), nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.ModuleList(Layer(1) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(Layer(2) for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        memory, x = self.source(words) * WIDTH**0.5, self.target(words) * WIDTH**0.5
        for layer in self.encoder:
            memory = layer(memory)
        for layer in self.decoder:
            x = layer(x, memory)
        logits: torch.Tensor = self.head(x.flatten(0, 1))
        return logits


def resnet50() -> nn.Module:
    """With the stride of a block in its first convolution, as published and in the catalogue."""
    model = ResNet(depth=50, num_classes=CLASSES)
    for block in model.modules():
        layers = getattr(block, "layers", None)
        if isinstance(layers, nn.Sequential):
            first, second, _ = (each for each in layers if isinstance(each, nn.Conv2d))
            first.stride, second.stride = second.stride, first.stride
    return model


MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet50": resnet50,
    "vgg16": lambda: VGG(depth=16, num_classes=CLASSES),
    "transformer": Transformer,
}


def batch(name: str) -> torch.Tensor:
    if name == "transformer":
        return torch.zeros(BATCH, LENGTH, dtype=torch.int64)
    return torch.zeros(BATCH, 3, 224, 224)


@pytest.fixture(scope="module")
def tensorflow_paths(
    request: pytest.FixtureRequest,
    run_tensorflow: RunTensorFlow,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    names = [WORKLOADS[name] for name in asked(request, "name")]
    return run_tensorflow(BUILD, str(tmp_path_factory.mktemp("graphs")), *names)


def of_torch(name: str) -> OpGraph:
    def loss(outputs: torch.Tensor) -> torch.Tensor:
        labels = torch.zeros(outputs.shape[0], dtype=torch.int64, device="meta")
        return nn.functional.cross_entropy(outputs, labels)

    with torch.device("meta"):
        model = MODELS[name]().train()
    return traced_step(model, batch(name).to("meta"), loss, StepOptions(compute_capability=None))


def trained_bytes(graph: OpGraph) -> int:
    table = graph.parameters
    return int(table.nbytes[table.is_trained].sum())


@pytest.mark.parametrize("name", usual(WORKLOADS, ("resnet50", "vgg16")))
def test_a_tensorflow_graph_and_a_pytorch_model_of_one_network_agree(
    tensorflow_paths: dict[str, Any], name: str
) -> None:
    theirs = read_graph(tensorflow_paths[WORKLOADS[name]])
    ours = of_torch(name)
    assert cost_of_graph(ours).total_flops == pytest.approx(
        cost_of_graph(theirs).total_flops, rel=TOLERANCE
    )
    assert trained_bytes(ours) == pytest.approx(trained_bytes(theirs), rel=TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKLOADS)
def test_an_onnx_file_of_the_network_agrees_with_both(
    tensorflow_paths: dict[str, Any], name: str, tmp_path: Path
) -> None:
    path = exported(MODELS[name](), [batch(name)], tmp_path / "model.onnx")
    graph = read_model(path, batch_size=BATCH)
    for other in (read_graph(tensorflow_paths[WORKLOADS[name]]), of_torch(name)):
        assert cost_of_graph(graph).total_flops == pytest.approx(
            cost_of_graph(other).total_flops, rel=TOLERANCE
        )
        assert trained_bytes(graph) == pytest.approx(trained_bytes(other), rel=TOLERANCE)
