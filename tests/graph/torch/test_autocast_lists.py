"""Autocast's lists are those of the installed PyTorch, as its own header has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from driple.errors import GraphError
from driple.graph.datatypes import NUMBER_OF
from driple.graph.torch.autocast import LOWER, PROMOTED, SINGLE, SINGLE_RESULT
from driple.graph.torch.step import StepOptions, traced_step

HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
FLOAT, HALF, BFLOAT16 = (NUMBER_OF[f"DT_{name}"] for name in ("FLOAT", "HALF", "BFLOAT16"))


def listed(macro: str) -> set[str]:
    """Names of a list in PyTorch's header."""
    text = HEADER.read_text()
    begin = text.index(f"#define {macro}(")
    lines = []
    for line in text[begin:].splitlines()[1:]:
        lines.append(line)
        if not line.rstrip().endswith("\\"):
            break
    names = re.findall(r"_\((?:ADD_NS\()?(\w+)", "\n".join(lines))
    return set(names)


@pytest.mark.parametrize(
    ("names", "macros"),
    [
        (LOWER, ("AT_FORALL_LOWER_PRECISION_FP",)),
        (SINGLE, ("AT_FORALL_FP32",)),
        (
            SINGLE_RESULT,
            ("AT_FORALL_FP32_SET_OPT_DTYPE", "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE"),
        ),
        (PROMOTED, ("AT_FORALL_PROMOTE",)),
    ],
)
def test_the_lists_are_those_of_pytorch(names: tuple[str, ...], macros: tuple[str, ...]) -> None:
    expected: set[str] = set()
    for macro in macros:
        expected |= listed(macro)
    assert expected
    assert set(names) == expected


class Net(nn.Module):
    """A product, a norm, a reduction and a sum of two types."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.again, self.norm = nn.Linear(8, 8), nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.norm(self.layer(inputs))
        return (self.again(hidden) + inputs).softmax(-1).sum()


def test_amp_casts_products_keeps_norms_and_scales_the_loss() -> None:
    with torch.device("meta"):
        model, inputs = Net(), torch.zeros(4, 8)
    plain, lower, scaled = (
        traced_step(model, inputs, None, StepOptions(precision=precision))
        for precision in ("fp32", "amp-bf16", "amp-fp16")
    )
    for graph, dtype in ((plain, FLOAT), (lower, BFLOAT16), (scaled, HALF)):
        types = {
            op.outputs[0].dtype for op in graph.signatures if op.kind in {"matmul", "batch_matmul"}
        }
        assert types == {dtype}
        norms = {op.outputs[0].dtype for op in graph.signatures if "layer_norm" in op.kind}
        assert norms == {FLOAT}
    # Weights and biases of two layers, their inputs, and gradients of all these the other way.
    casts = [graph.op_types.count("aten::_to_copy") for graph in (plain, lower, scaled)]
    assert casts[0] == 0
    assert casts[1] == casts[2] > 8
    # The scaler multiplies the loss and its gradient; all gradients are unscaled before the update.
    assert scaled.op_types.count("aten::mul") == lower.op_types.count("aten::mul") + 2
    gradients = int(scaled.parameters.nbytes.sum())
    assert scaled.update.moved_bytes == lower.update.moved_bytes + 2 * gradients


def test_a_weight_that_is_used_twice_is_cast_once() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(8, 8, bias=False)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.layer(self.layer(inputs)).sum()

    with torch.device("meta"):
        model, inputs = Twice(), torch.zeros(4, 8)
    graph = traced_step(model, inputs, None, StepOptions(precision="amp-bf16"))
    # Input and weight; backwards the gradient of the sum and that of the weight.
    assert graph.op_types.count("aten::_to_copy") == 2 + 2 - (FLOAT == BFLOAT16)


def test_what_autocast_refuses_on_a_gpu_is_refused() -> None:
    with torch.device("meta"):
        model, inputs, labels = nn.Linear(8, 1), torch.zeros(4, 8), torch.zeros(4, 1)
    with pytest.raises(GraphError, match="unsafe to autocast"):
        traced_step(
            model,
            inputs,
            lambda outputs: nn.functional.binary_cross_entropy(outputs.sigmoid(), labels),
            StepOptions(precision="amp-fp16"),
        )
