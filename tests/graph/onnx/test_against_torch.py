"""Derived steps against traced ones: the same products, parameters and gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from driple.graph.cost import cost_of_graph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.options import ReadOptions
from driple.graph.torch.step import StepOptions, traced_step
from tests.graph.onnx.exports import exported, product_flops, read_model, read_onnx, traced

BATCH = 3


class Recurrent(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.words, self.layer, self.head = nn.Embedding(50, 8), layer, nn.Linear(12, 5)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.layer(self.words(words))[0]
        return self.head(states[:, -1])


class Attention(nn.Module):
    """A block of a transformer with positions, a residual and a broadcast mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(40, 16), nn.Parameter(torch.zeros(1, 10, 16))
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.norm, self.wide, self.narrow = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)
        self.head = nn.Linear(16, 40, bias=False)
        self.register_buffer("mask", torch.triu(torch.full((10, 10), -1e9), 1))

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places
        q, k, v = (f(x).unflatten(-1, (2, 8)).transpose(1, 2)
                   for f in (self.query, self.key, self.value))  # fmt: skip
        scores = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5 + self.mask, -1)
        x = self.norm(x + (scores @ v).transpose(1, 2).flatten(2))
        return self.head(x + self.narrow(nn.functional.gelu(self.wide(x))))


class Joined(nn.Module):
    """Queries, keys and values of one product, taken apart in three ways; one part stays unused."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.joined = nn.Embedding(40, 16), nn.Linear(16, 48)
        self.head = nn.Linear(16, 40, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        q, k, v = self.joined(self.words(words)).split(16, dim=2)
        low, _, high = v.split([4, 5, 7], dim=-1)
        first, second = torch.cat([low, high, low], -1).chunk(2, -1)
        scores = torch.softmax(q @ k.transpose(-1, -2), -1)
        return self.head(scores @ torch.cat([first, second], -1)[..., :1] + q)


class Branches(nn.Module):
    """Concatenation, channels that are split, a broadcast product and a strided slice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(4, 8, 1)
        self.gate, self.head = nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        left, right = self.first(images).chunk(2, 1)
        joined = torch.cat([left, self.second(right)], 1)
        gate = torch.sigmoid(self.gate(joined.mean((2, 3))))[:, :, None, None]
        return self.head((joined * gate)[:, :, ::2].amax((2, 3)))


def images(size: int = 16) -> list[torch.Tensor]:
    return [torch.zeros(BATCH, 3, size, size)]


def tokens(length: int = 10) -> list[torch.Tensor]:
    return [torch.zeros(BATCH, length, dtype=torch.int64)]


def conv(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LazyLinear(7))


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Sequence[torch.Tensor]]]] = {
    "linear": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(768, 9), nn.ReLU(), nn.Linear(9, 5)),
               images),
    "convolution": (lambda: conv(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8),
                                 nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 5, stride=2)),
                    images),
    "depthwise": (lambda: conv(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, groups=8), nn.Hardswish(),
                               nn.Conv2d(8, 12, 3, groups=4)), images),
    "transposed": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 5, 4, 2, 1)),
                   images),
    "norms": (lambda: conv(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 8, 3),
                           nn.InstanceNorm2d(8, affine=True), nn.PReLU(8), nn.AvgPool2d(2)),
              images),
    "lstm": (lambda: Recurrent(nn.LSTM(8, 6, batch_first=True, bidirectional=True)), tokens),
    "gru": (lambda: Recurrent(nn.GRU(8, 12, num_layers=2, batch_first=True)), tokens),
    "attention": (Attention, tokens),
    "joined": (Joined, tokens),
    "branches": (Branches, images),
}  # fmt: skip


def built(name: str) -> tuple[nn.Module, Sequence[torch.Tensor]]:
    make, inputs = MODELS[name]
    model = make()
    model(*inputs())  # sizes that layers take from their first batch
    return model, inputs()


@pytest.mark.parametrize("name", MODELS)
def test_a_derived_step_is_that_of_the_traced_model(name: str, tmp_path: Path) -> None:
    """The same products and parameters; cuDNN's formula counts the state before the first step."""
    model, inputs = built(name)
    graph = read_model(exported(model, inputs, tmp_path / "model.onnx"), batch_size=BATCH)
    expected = traced(model, inputs)
    assert int(graph.parameters.elements.sum()) == sum(one.numel() for one in model.parameters())
    assert graph.parameters.is_trained.all()
    assert sorted(graph.traffic.sent_bytes) == sorted(expected.traffic.sent_bytes)
    assert not cost_of_graph(graph).unknown
    assert not graph.report.unknown_share
    if name == "transposed":
        return  # by hand, below
    ours, theirs = product_flops(graph), product_flops(expected)
    is_recurrent = name in {"lstm", "gru"}
    assert sum(ours.values()) == pytest.approx(sum(theirs.values()), rel=0.02 * is_recurrent)
    if not is_recurrent:
        assert ours == theirs


def loss_of(kind: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """A loss as PyTorch has it, with labels of zeros."""

    def loss(outputs: torch.Tensor) -> torch.Tensor:
        if kind == "cross-entropy":
            labels = torch.zeros(outputs.shape[:-1], dtype=torch.int64, device="meta")
            return nn.functional.cross_entropy(outputs.movedim(-1, 1), labels)
        functions = nn.functional.binary_cross_entropy_with_logits, nn.functional.mse_loss
        return functions[kind == "mse"](outputs, torch.zeros_like(outputs))

    return loss


@pytest.mark.parametrize("name", ["linear", "convolution", "attention"])
@pytest.mark.parametrize(
    ("precision", "loss"),
    [
        ("fp32", "bce"),
        ("fp32", "mse"),
        ("bf16", "cross-entropy"),
        ("amp-bf16", "cross-entropy"),
        ("amp-fp16", "mse"),
    ],
)
def test_precision_and_loss_are_those_of_the_traced_model(
    name: str, precision: Any, loss: str, tmp_path: Path
) -> None:
    """FLOPs, bytes that move, gradients and memory are those of PyTorch and its autocast."""
    model, inputs = built(name)
    file = exported(model, inputs, tmp_path / "model.onnx")
    graph = read_onnx(
        file, options=ReadOptions(batch_size=BATCH), loss=loss, precision=precision
    )  # fmt: skip
    half = torch.bfloat16 if precision == "bf16" else torch.float32
    given = tuple(one.to("meta", half if one.is_floating_point() else None) for one in inputs)
    expected = traced_step(
        built(name)[0].to("meta").train(), given, loss_of(loss),
        StepOptions(compute_capability=None, precision=precision),
    )  # fmt: skip
    assert sorted(graph.traffic.sent_bytes) == sorted(expected.traffic.sent_bytes)
    assert product_flops(graph) == product_flops(expected)
    ours, theirs = cost_of_graph(graph).per_step.sum(0), cost_of_graph(expected).per_step.sum(0)
    assert ours[:2] == pytest.approx(theirs[:2], rel=0.1)
    memory = [one.lifetimes.nbytes.sum() for one in (graph, expected)]
    assert memory[0] == pytest.approx(memory[1], rel=0.1)
    products = [one.signatures[i] for one in (graph, expected) for i in one.signature_of]
    kinds = {op.outputs[0].dtype for op in products if family_of(op.kind) in PRODUCT_FAMILIES}
    assert len(kinds) == 1


@pytest.mark.parametrize("name", ["linear", "convolution", "depthwise"])
def test_gradients_are_those_kernels_that_pytorch_runs(name: str, tmp_path: Path) -> None:
    model, inputs = built(name)
    graph = read_model(exported(model, inputs, tmp_path / "model.onnx"), batch_size=BATCH)
    ours, theirs = (
        Counter(kind for kind in one.kinds if kind.endswith("_gradient") and "pool" not in kind)
        for one in (graph, traced(model, inputs))
    )
    assert ours == theirs


def test_products_of_a_transposed_convolution_by_hand(tmp_path: Path) -> None:
    """8 channels of 14 x 14 with a window of 4 x 4 to 5 channels; before it 27 weights a point."""
    model, inputs = built("transposed")
    graph = read_model(exported(model, inputs, tmp_path / "model.onnx"), batch_size=BATCH)
    before, after = 8 * 14 * 14 * 27, 8 * 14 * 14 * 16 * 5
    assert sum(product_flops(graph).values()) == 2 * BATCH * (2 * before + 3 * after)


@pytest.mark.parametrize("name", ["convolution", "attention", "joined"])
def test_both_exporters_of_pytorch_give_the_same_step(name: str, tmp_path: Path) -> None:
    model, inputs = built(name)
    old = read_model(exported(model, inputs, tmp_path / "old.onnx"), batch_size=BATCH)
    new = read_model(exported(model, inputs, tmp_path / "new.onnx", dynamo=True), batch_size=BATCH)
    assert sorted(new.parameters.elements) == sorted(old.parameters.elements)
    assert product_flops(new) == product_flops(old)
    assert set(new.parameters.names) == {name for name, _ in model.named_parameters()}


@pytest.mark.parametrize("name", MODELS)
def test_every_gradient_has_the_size_of_its_parameter(name: str, tmp_path: Path) -> None:
    model, inputs = built(name)
    graph = read_model(exported(model, inputs, tmp_path / "model.onnx"), batch_size=BATCH)
    table = graph.parameters
    for parameter, node in table.gradients.tolist():
        elements = {one.elements for one in graph.signatures[graph.signature_of[node]].outputs}
        assert table.elements[parameter] in elements, table.names[parameter]
    assert len(table.gradients) == len(table.names)
    assert (graph.edges[:, 0] < graph.edges[:, 1]).all()


def test_a_gate_and_a_bias_are_part_of_one_kernel(tmp_path: Path) -> None:
    """As in PyTorch: SiLU is one op, and a linear layer adds its bias in its product."""
    gated, inputs = built("norms")
    kinds = read_model(exported(gated, inputs, tmp_path / "n.onnx"), batch_size=BATCH).kinds
    assert kinds.count("silu") == kinds.count("silu_gradient") == 1
    assert "sigmoid" not in kinds
    model, inputs = built("attention")
    graph = read_model(exported(model, inputs, tmp_path / "a.onnx"), batch_size=BATCH)
    linear = [op for op in graph.signatures if op.kind == "matmul" and len(op.inputs) == 3]
    assert linear
    assert all(op.inputs[2].is_parameter for op in linear)
    # Only positions, the scores' mask and both residuals are added.
    forward = [kind for kind, phase in zip(graph.kinds, graph.phases, strict=True) if phase == 0]
    assert forward.count("add") == 4


def test_modules_are_those_of_the_model(tmp_path: Path) -> None:
    model, inputs = built("attention")
    graph = read_model(exported(model, inputs, tmp_path / "m.onnx"), batch_size=BATCH)
    assert {"query", "norm", "wide", "head"} <= set(graph.modules)
    of_head = [kind for kind, module in zip(graph.kinds, graph.module_of.tolist(), strict=True)
               if module >= 0 and graph.modules[module] == "head"]  # fmt: skip
    assert of_head.count("matmul") == 3
