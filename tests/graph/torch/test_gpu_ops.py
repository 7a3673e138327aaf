"""Ops that a GPU computes by one kernel are one op on the meta device, while a step is read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.torch.autocast import gpu_autocast
from driple.graph.torch.step import StepOptions, traced_step

FLOAT, HALF, BOOL = (NUMBER_OF[f"DT_{name}"] for name in ("FLOAT", "HALF", "BOOL"))


class Net(nn.Module):
    """One layer, then a function."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(16, 16), function

    def forward(self, inputs: Tensor) -> Tensor:
        return self.function(self.layer(inputs)).sum()


def graph_of(function: Callable[[Tensor], Tensor], precision: str = "fp32") -> OpGraph:
    with torch.device("meta"):
        model, inputs = Net(function), torch.zeros(8, 16)
    return traced_step(model, inputs, None, StepOptions(precision=precision))  # type: ignore[arg-type]


def types_of(graph: OpGraph, kind: str) -> list[tuple[int, ...]]:
    return [tuple(one.dtype for one in op.outputs) for op in graph.signatures if op.kind == kind]


def test_dropout_is_one_kernel_with_a_mask_of_bytes() -> None:
    graph = graph_of(lambda values: nn.functional.dropout(values, 0.1))
    assert graph.kinds.count("dropout") == graph.kinds.count("dropout_gradient") == 1
    assert "random" not in graph.kinds
    assert types_of(graph, "dropout") == [(FLOAT, BOOL)]
    assert "dropout" not in graph_of(lambda values: nn.functional.dropout(values, 0.0)).kinds


def test_a_norm_by_the_root_of_the_mean_square_is_one_kernel() -> None:
    norm = nn.RMSNorm(16, device="meta")
    graph = graph_of(norm)
    assert graph.kinds.count("rms_norm") == graph.kinds.count("rms_norm_gradient") == 1
    assert "rsqrt" not in graph.kinds


@pytest.mark.parametrize(("precision", "casts"), [("fp16", 0), ("bf16", 1)])
def test_softmax_reads_float16_and_gives_single_precision_at_once(
    precision: str, casts: int
) -> None:
    """Of bfloat16 PyTorch makes a copy in single precision first."""
    graph = graph_of(
        lambda values: nn.functional.softmax(values, -1, dtype=torch.float32), precision
    )
    assert types_of(graph, "softmax") == [(FLOAT,)]
    forward = [kind for kind, phase in zip(graph.kinds, graph.phases, strict=True) if not phase]
    assert forward.count("cast") == casts


def test_groups_of_experts_are_one_product() -> None:
    """Rows of all experts, 2 m n k of each; gradients by rows and by weights."""

    class Experts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Parameter(torch.zeros(4, 16, 32))

        def forward(self, rows: Tensor, ends: Tensor) -> Tensor:
            return nn.functional.grouped_mm(rows, self.weights, offs=ends).sum()

    from driple.graph.cost import cost_of_graph

    with torch.device("meta"):
        model, rows = Experts(), torch.zeros(64, 16, requires_grad=True)
        ends = torch.zeros(4, dtype=torch.int32)
    graph = traced_step(model, (rows, ends), None, StepOptions())
    assert graph.kinds.count("batch_matmul") == 3
    flops = cost_of_graph(graph).flops
    products = [one for one, kind in zip(flops, graph.kinds, strict=True) if kind == "batch_matmul"]
    assert products == [2 * 64 * 16 * 32] * 3


def test_nothing_is_left_behind() -> None:
    query = torch.zeros(1, 2, 8, 16, device="meta", dtype=torch.float16)
    with gpu_autocast():
        inside = torch.ops.aten.dropout(query, 0.5, True).shape
    assert inside == query.shape
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::_cudnn_rnn_backward", "Meta")
    assert not torch._C._dispatch_has_kernel_for_dispatch_key("aten::dropout", "AutocastIPU")
    with gpu_autocast():  # and it can be entered again
        assert nn.functional.scaled_dot_product_attention(query, query, query).shape == query.shape
