"""Before PyTorch 2, attention is products, a scaling and a softmax, as written by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from driple.graph.datatypes import NUMBER_OF
from driple.graph.opgraph import OpGraph
from driple.graph.signature import OpSignature
from driple.graph.step_facts import TensorRole
from driple.graph.torch.step import StepOptions, traced_step
from driple.graph.torch.unfused_attention import unfused_attention
from tests.graph.torch.test_attention import Attention

FLOAT, HALF = NUMBER_OF["DT_FLOAT"], NUMBER_OF["DT_HALF"]
HEADS, WIDTH = 4, 32


class Biased(nn.Module):
    """Attention with a learned bias of the scores, by PyTorch's function or by hand."""

    def __init__(self, *, by_hand: bool) -> None:
        super().__init__()
        self.project = nn.Linear(128, 384)
        self.bias = nn.Parameter(torch.zeros(HEADS, 16, 16))
        self.by_hand = by_hand

    def forward(self, inputs: Tensor) -> Tensor:
        parts = self.project(inputs).unflatten(-1, (3, HEADS, WIDTH)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        if self.by_hand:
            scores = query * WIDTH**-0.5 @ key.transpose(-1, -2) + self.bias
            return (scores.softmax(-1) @ value).sum()
        return scaled_dot_product_attention(query, key, value, attn_mask=self.bias).sum()


def graph_of(model: type[nn.Module], length: int = 16, **values: Any) -> OpGraph:
    options = {"precision": "fp32", "fused_attention": False, **values}
    with torch.device("meta"):
        module = model(by_hand=options.pop("by_hand", False))
        inputs = torch.zeros(2, length, 128)
    return traced_step(module, inputs, None, StepOptions(**options))


def ops_of(graph: OpGraph) -> list[OpSignature]:
    return [graph.signatures[number] for number in graph.signature_of.tolist()]


@pytest.mark.parametrize("task", ["train", "forward"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "amp-fp16", "amp-bf16"])
@pytest.mark.parametrize("model", [Attention, Biased])
def test_the_ops_are_those_of_attention_written_by_hand(
    model: type[nn.Module], precision: str, task: str
) -> None:
    """Scores are scaled; where a bias is added to them, queries are."""
    mine = graph_of(model, precision=precision, task=task)
    theirs = graph_of(model, precision=precision, task=task, by_hand=True)
    assert ops_of(mine) == ops_of(theirs)
    assert mine.phases.tolist() == theirs.phases.tolist()
    assert "attention" not in mine.kinds
    fused = graph_of(model, precision=precision, task=task, fused_attention=True)
    assert fused.kinds.count("attention") == 1


@pytest.mark.parametrize("precision", ["fp32", "amp-fp16"])
def test_no_other_kernel_comes_with_it(precision: str) -> None:
    """PyTorch 2's math path scales twice, and its softmax gives half precision under autocast."""
    graph = graph_of(Attention, precision=precision)
    forward = [kind for kind, phase in zip(graph.kinds, graph.phases, strict=True) if not phase]
    assert (forward.count("batch_matmul"), forward.count("softmax")) == (2, 1)
    assert forward.count("mul") == 1 + (precision == "amp-fp16")  # the latter scales the loss
    (softmax,) = (op for op in graph.signatures if op.kind == "softmax")
    assert softmax.outputs[0].dtype == FLOAT
    assert softmax.inputs[0].dtype == (FLOAT if precision == "fp32" else HALF)
    math = graph_of(Attention, precision=precision, fused_attention=True, compute_capability=None)
    assert math.kinds.count("mul") > graph.kinds.count("mul")


@pytest.mark.parametrize("precision", ["fp32", "amp-fp16"])
def test_the_scores_are_kept_for_the_backward_pass(precision: str) -> None:
    """Memory grows with the square of the length; that of a kernel grows with the length."""

    def kept(length: int, *, fused: bool) -> int:
        lives = graph_of(Attention, length, precision=precision, fused_attention=fused).lifetimes
        return int(lives.nbytes[lives.roles == TensorRole.ACTIVATION].sum())

    def square(*, fused: bool) -> float:
        """What is left of a quadratic function, for each pair of tokens."""
        low, middle, high = (kept(length, fused=fused) for length in (1024, 2048, 3072))
        return (high - 2 * middle + low) / 2 / 1024**2

    weights = 2 * HEADS * (4 if precision == "fp32" else 4 + 2)  # and their cast for the product
    assert square(fused=False) == pytest.approx(weights)
    assert square(fused=True) == pytest.approx(0, abs=1e-3)


def test_weights_are_dropped_by_one_kernel() -> None:
    class Dropped(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return scaled_dot_product_attention(values, values, values, dropout_p=0.1)

    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(8, 8), Dropped())
        inputs = torch.zeros(2, 4, 16, 8)
    options = StepOptions(fused_attention=False)
    kinds = traced_step(model, inputs, lambda made: made.sum(), options).kinds
    assert kinds.count("dropout") == kinds.count("dropout_gradient") == 1


NUMBERS = torch.Generator().manual_seed(3)
QUERY, KEY, VALUE = (
    torch.randn(2, heads, length, width, generator=NUMBERS)
    for heads, length, width in ((4, 6, 8), (4, 5, 8), (4, 5, 3))
)
SEEN = torch.arange(5) < torch.arange(1, 7)[:, None]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": 1.0},
        {"scale": 0.3},
        {"is_causal": True},
        {"attn_mask": SEEN},
        {"attn_mask": torch.randn(4, 6, 5, generator=NUMBERS)},
        {"attn_mask": torch.randn(6, 5, generator=NUMBERS), "scale": 0.3},
        {"enable_gqa": True},
    ],
    ids=lambda one: "-".join(one) or "plain",
)
def test_it_computes_what_pytorch_does(options: dict[str, Any]) -> None:
    key, value = (one[:, :2] if "enable_gqa" in options else one for one in (KEY, VALUE))
    mine = unfused_attention(QUERY, key, value, **options)
    theirs = scaled_dot_product_attention(QUERY, key, value, **options)
    torch.testing.assert_close(mine, theirs)


def test_a_step_on_real_inputs_runs_it() -> None:
    options = StepOptions(trace="real", fused_attention=False)
    mine, theirs = (
        traced_step(Attention(by_hand=by_hand), torch.randn(2, 16, 128), None, options)
        for by_hand in (False, True)
    )
    assert mine.kinds == theirs.kinds
    assert "softmax" in mine.kinds
