"""Autocast in a model that is followed by shapes alone: the casts that a GPU would make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.opkind import PRODUCT_FAMILIES, family_of
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.torch_graph import graph_of_step
from driple.planning.assumptions import precision_of
from tests.graph.torch.own_steps import graph_of_functions

FLOAT, HALF, BFLOAT16 = (NUMBER_OF[f"DT_{name}"] for name in ("FLOAT", "HALF", "BFLOAT16"))


class Net(nn.Module):
    """Convolution, batch norm, attention, layer norm, classes."""

    def __init__(self, context: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.context = context
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(2))
        self.attention = nn.TransformerEncoderLayer(36, 3, 16, batch_first=True)
        self.head = nn.Linear(36, 5)

    def forward(self, images: Tensor) -> Tensor:
        with self.context(images):
            return self.head(self.attention(self.body(images)).mean(1))


def graph_of(context: Callable[[Tensor], Any]) -> OpGraph:
    with torch.device("meta"):
        model, images = Net(context), torch.zeros(4, 3, 8, 8)
        labels = torch.zeros(4, dtype=torch.int64)
    return graph_of_step(
        model, images, lambda outputs: nn.functional.cross_entropy(outputs.float(), labels)
    )


def types_of(graph: OpGraph, fits: Callable[[str], bool]) -> set[int]:
    """Data types of the first outputs of some kinds of ops."""
    return {op.outputs[0].dtype for op in graph.signatures if fits(op.kind)}


def is_product(kind: str) -> bool:
    return family_of(kind) in PRODUCT_FAMILIES


@pytest.mark.parametrize(
    ("context", "dtype"),
    [
        (lambda _: torch.autocast("cuda"), HALF),
        (lambda _: torch.autocast("cuda", dtype=torch.bfloat16), BFLOAT16),
        (lambda images: torch.autocast(images.device.type), HALF),
        (lambda _: torch.autocast("cpu"), BFLOAT16),
        (lambda _: torch.autocast("cuda", enabled=False), FLOAT),
    ],
)
def test_products_and_their_gradients_run_in_the_lower_precision(
    context: Callable[[Tensor], Any], dtype: int
) -> None:
    """Norms of layers and the loss stay in single precision, parameters' gradients are so again."""
    graph, plain = graph_of(context), graph_of(lambda _: torch.autocast("cuda", enabled=False))
    assert types_of(graph, is_product) == {dtype}
    assert "layer_norm_gradient" in graph.kinds
    assert types_of(graph, lambda kind: kind.startswith("log_softmax")) == {FLOAT}
    assert sorted(graph.traffic.sent_bytes) == sorted(plain.traffic.sent_bytes)
    products = [sum(map(is_product, one.kinds)) for one in (graph, plain)]
    assert products[0] == products[1]
    assert (graph.kinds.count("cast") > plain.kinds.count("cast")) == (dtype != FLOAT)


def test_the_casts_are_those_of_pytorch_itself() -> None:
    """On the CPU, whose lists are the same for these ops, real autocast gives the same types."""
    inputs, weight = torch.ones(2, 3), torch.ones(4, 3)

    def types() -> list[torch.dtype]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = nn.functional.linear(inputs, weight)
            return [
                output.dtype,
                (output + 1).dtype,
                (output + inputs[:, :1]).dtype,
                (inputs * 2).dtype,
            ]

    real = types()
    inputs, weight = inputs.to("meta"), weight.to("meta")
    with gpu_autocast():
        assert types() == real
    assert types() == [torch.float32] * 4  # nothing of it is left afterwards


DECORATED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(12, 4)

    @torch.autocast("cuda", dtype=torch.bfloat16)
    def forward(self, inputs):
        return self.layer(inputs.flatten(1))

def build_model():
    return Net()

def build_dataset():
    return torch.utils.data.TensorDataset(torch.zeros(50, 3, 2, 2), torch.zeros(50).long())
"""


def test_a_decorated_forward_of_the_users_own_is_not_priced_in_single(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(DECORATED)
    graph, samples = graph_of_functions(f"{own}:build_model", f"{own}:build_dataset", None, 5)
    assert precision_of(graph) == "bfloat16"
    assert samples == 50
