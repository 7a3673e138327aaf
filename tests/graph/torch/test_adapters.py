"""LoRA and quantized weights: what is trained, what is kept, and a model that is as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from driple.errors import ConfigError
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import TensorRole
from driple.graph.torch.adapters import adapted
from driple.graph.torch.lora import LoraAdapters
from driple.graph.torch.options import StepOptions
from driple.graph.torch.step import traced_step
from driple.render.remarks import sentences

WIDTH, RANK, BATCH = 256, 4, 8


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.norm(values + self.down(torch.relu(self.up(values))))


class Net(nn.Module):
    """Two blocks and a head of classes."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(WIDTH), Block(WIDTH))
        self.classifier = nn.Linear(WIDTH, 10)

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.blocks(values)).sum()


def net() -> Net:
    with torch.device("meta"):
        return Net()


def step(model: nn.Module | None = None, **options: Any) -> OpGraph:
    batch = torch.empty(BATCH, WIDTH, device="meta")
    return traced_step(
        model or net(), batch, lambda made: made, StepOptions(optimizer="adamw", **options)
    )


def kept_bytes(graph: OpGraph) -> int:
    """Parameters and buffers."""
    lives = graph.lifetimes
    return int(lives.nbytes[(lives.roles == TensorRole.PARAMETER) & (lives.made_by < 0)].sum())


def test_adapters_alone_are_trained() -> None:
    """Two matrices of rank r for each layer, and the head of classes in full."""
    table = step(lora=LoraAdapters(r=RANK)).parameters
    trained = {
        name: int(count)
        for name, count, is_trained in zip(
            table.names, table.elements, table.is_trained, strict=True
        )
        if is_trained
    }
    head = {name: count for name, count in trained.items() if name.startswith("classifier")}
    assert head == {"classifier.weight": 10 * WIDTH, "classifier.bias": 10}
    assert sum(trained.values()) - sum(head.values()) == 2 * 2 * RANK * 3 * WIDTH
    assert len(trained) - len(head) == 8


def test_targets_are_last_parts_of_names() -> None:
    table = step(lora=LoraAdapters(r=RANK, targets=("up",))).parameters
    adapters = [name for name in table.names if "lora_A" in name]
    assert adapters == ["blocks.0.up.lora_A.weight", "blocks.1.up.lora_A.weight"]


@pytest.mark.parametrize(
    ("weights", "bytes_each", "codes"),
    [
        ("nf4", 1 / 2 + 4 / 64, 16 * 4),
        ("nf4-double", 1 / 2 + 1 / 64 + 4 / 64 / 256, 16 * 4 + 256 * 4),
        ("int8", 1 + 4 / WIDTH, 0),
    ],
)
def test_quantized_weights_take_what_bitsandbytes_lays_out(
    weights: Any, bytes_each: float, codes: int
) -> None:
    """Of layers that are no head; scales of int8 are one for each row."""
    lora = LoraAdapters(r=RANK)
    count, layers = 2 * 2 * 2 * WIDTH * WIDTH, 4
    whole, packed = step(lora=lora), step(lora=lora, weights=weights)
    if weights == "int8":  # rows of two lengths: 256 and 512 weights
        bytes_each = 1 + 4 * (2 * WIDTH + WIDTH) / (2 * 2 * WIDTH * WIDTH)
    expected = count * (4 - bytes_each) - layers * codes
    assert kept_bytes(whole) - kept_bytes(packed) == pytest.approx(expected)
    assert whole.parameters.elements.sum() == packed.parameters.elements.sum()


def test_half_precision_keeps_adapters_in_single_unless_asked() -> None:
    """The base is cast; with quantized weights what is left is in single precision again."""

    def types(**options: Any) -> dict[str, int]:
        table = step(precision="bf16", **options).parameters
        width = table.nbytes // np.maximum(table.elements, 1)
        return dict(zip(table.names, width.tolist(), strict=True))

    own = types(lora=LoraAdapters(r=RANK))
    assert own["blocks.0.up.base_layer.weight"] == own["blocks.0.norm.weight"] == 2
    assert own["blocks.0.up.lora_A.weight"] == 4
    quantized = types(lora=LoraAdapters(r=RANK), weights="nf4")
    assert quantized["blocks.0.norm.weight"] == 4
    half = types(lora=LoraAdapters(r=RANK, dtype="bf16"), weights="nf4")
    assert half["blocks.0.norm.weight"] == half["blocks.0.up.lora_A.weight"] == 2
    kept = types(lora=LoraAdapters(r=RANK, rest="bf16"), weights="nf4")
    assert (kept["blocks.0.norm.weight"], kept["blocks.0.up.lora_A.weight"]) == (2, 4)
    wide = types(lora=LoraAdapters(r=RANK, dtype="bf16", rest="fp32"), weights="nf4")
    assert (wide["blocks.0.norm.weight"], wide["blocks.0.up.lora_A.weight"]) == (4, 2)


def test_frozen_weights_have_the_type_that_is_stated_under_autocast() -> None:
    """The net states none, so that without `rest` its weights stay in single precision."""

    def width(**lora: Any) -> int:
        table = step(precision="amp-bf16", lora=LoraAdapters(r=RANK, **lora)).parameters
        row = table.names.index("blocks.0.up.base_layer.weight")
        return int(table.nbytes[row] // table.elements[row])

    assert (width(), width(rest="bf16"), width(rest="fp32")) == (4, 2, 4)


def test_frozen_layers_have_no_product_for_their_weights() -> None:
    """A full layer has three products; a frozen one two, and its adapter six small ones."""

    def products(graph: OpGraph) -> list[int]:
        kinds = [graph.signatures[i].kind for i in graph.signature_of]
        large = [
            one
            for one, kind in zip(graph.signature_of, kinds, strict=True)
            if kind == "matmul"
            and min(side for x in graph.signatures[one].inputs[:2] for side in x.shape or ()) > RANK
        ]
        return large

    full, lora = step(), step(lora=LoraAdapters(r=RANK, targets=("up", "down")))
    whole = 2 * 2 * 3 + 3  # layers and the head; the first layer's input has no gradient
    assert len(products(full)) == whole - 1
    # The first frozen layer, before whose adapter nothing is trained, has its forward product.
    assert len(products(lora)) == 2 * 2 * 2 - 1 + 3


def test_a_product_with_packed_weights_writes_them_first() -> None:
    """Forward and backward: the bytes of a layer's weights in half precision, from half a byte."""
    graph = step(precision="bf16", lora=LoraAdapters(r=RANK, targets=("down",)), weights="nf4")
    unpacking = [
        graph.signatures[i]
        for i in graph.signature_of
        if graph.signatures[i].outputs
        and graph.signatures[i].outputs[0].shape == (WIDTH * WIDTH, 2)
        and graph.signatures[i].kind == "mul"
    ]
    assert len(unpacking) == 4 + 2  # nothing is trained before the second block
    assert unpacking[0].outputs[0].nbytes == 2 * 2 * WIDTH * WIDTH


@pytest.mark.parametrize("weights", [None, "nf4", "int8"])
def test_the_model_is_as_it_was(weights: Any) -> None:
    model = net()
    model.blocks[0].norm.weight.requires_grad_(False)
    before = {name: (id(one), one.dtype, one.requires_grad) for name, one in
              model.named_parameters()}  # fmt: skip
    modules = [(name, id(one)) for name, one in model.named_modules()]
    step(model, lora=LoraAdapters(r=RANK), weights=weights, precision="bf16")
    assert [(name, id(one)) for name, one in model.named_modules()] == modules
    after = {name: (id(one), one.dtype, one.requires_grad) for name, one in
             model.named_parameters()}  # fmt: skip
    assert after == before
    with pytest.raises(ConfigError):
        step(model, lora=LoraAdapters(targets=("nothing",)), weights=weights)
    assert [(name, id(one)) for name, one in model.named_modules()] == modules


def test_adapters_add_their_product() -> None:
    """By values: W x + alpha / r B A x."""
    model = Net().eval()
    values = torch.randn(3, WIDTH)
    plain = model.blocks[0].up(values)
    lora = LoraAdapters(r=RANK, alpha=8, targets=("up",))
    with adapted(model, StepOptions(lora=lora)):
        layer: Any = model.blocks[0].up
        added = values @ layer.lora_A.weight.t() @ layer.lora_B.weight.t() * 2
        torch.testing.assert_close(layer(values), plain + added)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lora": LoraAdapters(targets=("q_proj",))}, "linear layers are classifier, up, down"),
        ({"lora": LoraAdapters(targets=("norm",))}, "a LayerNorm, and only linear layers"),
        ({"weights": "nf4"}, "give --lora"),
        ({"lora": LoraAdapters(dtype="bf16")}, "needs --precision bf16 or amp-bf16, got fp32"),
        ({"lora": LoraAdapters(rest="fp16"), "precision": "amp-bf16"}, "rest=fp16 needs"),
        ({"lora": LoraAdapters(rest="fp32"), "precision": "bf16"}, "autocast or --weights"),
    ],
)
def test_refusals_say_what_to_do(options: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        step(**options)


def test_quantized_weights_alone_are_for_forward_passes() -> None:
    forward = step(weights="int8", task="forward")
    assert kept_bytes(forward) < kept_bytes(step(task="forward")) / 3


def test_experts_in_one_parameter_are_not_packed_and_the_answer_says_so() -> None:
    """As bitsandbytes, which replaces linear layers alone."""

    class Experts(Net):
        def __init__(self) -> None:
            super().__init__()
            self.experts = nn.Parameter(torch.empty(4, WIDTH, WIDTH))

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            output = torch.einsum("bi,eio->bo", values, self.experts)
            return self.classifier(self.blocks(output)).sum()

    with torch.device("meta"):
        model = Experts()
    graph = step(model, lora=LoraAdapters(r=RANK, targets=("up",)), weights="nf4")
    row = graph.parameters.names.index("experts")
    assert graph.parameters.nbytes[row] == 4 * graph.parameters.elements[row]
    words = " ".join(sentences(graph.report.notes))
    assert "experts, " in words
    assert "does not quantize" in words
    assert "experts" not in " ".join(
        sentences(step(lora=LoraAdapters(), weights="nf4").report.notes)
    )
