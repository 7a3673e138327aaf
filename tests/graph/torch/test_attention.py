"""Attention stays one op, by the kernel that PyTorch would use."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.graph.step_facts import TensorRole
from driple.graph.torch.attention import attention_kernel, gemm_alignment
from driple.graph.torch.step import StepOptions, traced_step

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def kernel(
    dtype: torch.dtype = FP16,
    width: int = 64,
    *,
    capability: tuple[int, int] | None = (8, 0),
    mask: bool = False,
    lengths: tuple[int, int] = (16, 16),
    heads: tuple[int, int] = (4, 4),
    **options: Any,
) -> str:
    query, key, value = (
        torch.empty(2, count, length, width, dtype=dtype, device="meta")
        for count, length in (
            (heads[0], lengths[0]),
            (heads[1], lengths[1]),
            (heads[1], lengths[1]),
        )
    )
    given = torch.empty(2, 1, *lengths, dtype=dtype, device="meta") if mask else None
    asked = {"is_causal": False, "dropout": 0.0, "grouped": heads[0] != heads[1], **options}
    return attention_kernel(query, key, value, given, capability=capability, **asked)


def test_the_kernel_follows_type_mask_shape_and_device() -> None:
    """The conditions of sdp_utils.cpp, one by one."""
    assert kernel() == kernel(BF16) == kernel(capability=(9, 0)) == "flash"
    assert kernel(FP32) == "efficient"  # flash has no single precision
    assert kernel(mask=True) == "efficient"  # flash takes no mask
    assert kernel(capability=(7, 0)) == kernel(capability=(7, 5)) == "efficient"
    assert kernel(BF16, capability=(7, 5)) == "math"  # no bfloat16 before Ampere
    assert kernel(capability=None) == "math"
    assert kernel(torch.float64) == "math"
    assert kernel(width=256) == "flash"
    assert kernel(width=264) == "efficient"
    assert kernel(width=36) == "flash"  # filled up to a multiple of 8
    assert kernel(FP32, 34) == "math"  # not a multiple of 4
    assert kernel(is_causal=True, lengths=(16, 8)) == "efficient"
    assert kernel(is_causal=True, mask=True) == "math"
    assert kernel(heads=(8, 2)) == "flash"
    assert kernel(FP32, heads=(8, 2)) == "math"  # only flash reads shared heads
    assert kernel(heads=(8, 2), grouped=False) == "math"
    assert gemm_alignment(FP16, (7, 0)) == 8
    assert gemm_alignment(FP32, (7, 0)) == 1


class Attention(nn.Module):
    """One layer of attention with heads of 32."""

    def __init__(self, *, causal: bool = False, by_hand: bool = False) -> None:
        super().__init__()
        self.project, self.causal, self.by_hand = nn.Linear(128, 384), causal, by_hand

    def forward(self, inputs: Tensor) -> Tensor:
        parts = self.project(inputs).unflatten(-1, (3, 4, 32)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        if self.by_hand:
            scores = (query @ key.transpose(-1, -2) * 32**-0.5).softmax(-1)
            return (scores @ value).sum()
        output = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=self.causal
        )
        return output.sum()


def graph_of(length: int = 256, precision: str = "amp-bf16", **options: Any) -> OpGraph:
    with torch.device("meta"):
        model, inputs = Attention(**options), torch.zeros(2, length, 128)
    return traced_step(model, inputs, None, StepOptions(precision=precision))  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["fp32", "amp-bf16"])
def test_attention_is_one_op_with_the_flops_that_torch_counts(precision: str) -> None:
    graph = graph_of(precision=precision)
    kinds = [graph.signatures[number].kind for number in graph.signature_of.tolist()]
    assert kinds.count("attention") == kinds.count("attention_gradient") == 1
    assert "batch_matmul" not in kinds
    assert "softmax" not in kinds
    name = "flash" if precision == "amp-bf16" else "efficient"
    assert f"aten::_scaled_dot_product_{name}_attention" in graph.op_types
    flops = cost_of_graph(graph).flops.tolist()
    flops_of = {kind: one for kind, one in zip(kinds, flops, strict=True) if "attention" in kind}
    query = torch.zeros(2, 4, 256, 32, device="meta", dtype=BF16, requires_grad=True)
    counter = FlopCounterMode(display=False)
    with counter:
        torch.ops.aten._scaled_dot_product_flash_attention(query, query, query)[0].sum().backward()
    counts = {str(op): one for op, one in counter.get_flop_counts()["Global"].items()}
    assert flops_of["attention"] == counts["aten._scaled_dot_product_flash_attention"]
    assert (
        flops_of["attention_gradient"]
        == counts["aten._scaled_dot_product_flash_attention_backward"]
    )


def test_a_causal_mask_halves_the_work() -> None:
    whole, half = (cost_of_graph(graph_of(1024, causal=causal)) for causal in (False, True))
    saved = whole.total_flops - half.total_flops
    scores = 2 * 4 * 1024 * 1023 / 2
    assert saved == pytest.approx(2 * 32 * scores * 7)


def test_attention_written_by_hand_stays_separate_ops() -> None:
    graph = graph_of(by_hand=True)
    kinds = [graph.signatures[number].kind for number in graph.signature_of.tolist()]
    assert kinds.count("batch_matmul") == 6
    assert kinds.count("softmax") == kinds.count("softmax_gradient") == 1


def test_the_scores_are_kept_only_by_attention_written_by_hand() -> None:
    def kept(graph: OpGraph) -> int:
        lives = graph.lifetimes
        return int(lives.nbytes[lives.roles == TensorRole.ACTIVATION].sum())

    scores = 2 * 4 * 1024 * 1024
    assert kept(graph_of(1024)) < scores
    assert kept(graph_of(1024, by_hand=True)) > 2 * scores
