"""Attention as one op, against PyTorch's own counter and a count by hand."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import sdpa_backward_flop_count, sdpa_flop_count

from driple.graph.cost import cost_of_op
from driple.graph.cost.products import product_of
from driple.graph.signature import OpSignature, Tensor

HALF = 19
Shape = tuple[int, ...]
SAME = ((2, 12, 384, 64), (2, 12, 384, 64), (2, 12, 384, 64))
# Queries of a decoder over a longer memory; values of another width.
CROSS = ((2, 8, 10, 32), (2, 8, 40, 32), (2, 8, 40, 48))


def attention(kind: str, shapes: tuple[Shape, Shape, Shape], **numbers: int) -> OpSignature:
    output = (*shapes[0][:-1], shapes[2][-1])
    inputs = shapes if kind == "attention" else (*shapes, output, output)
    outputs = (output,) if kind == "attention" else shapes
    return OpSignature(
        kind,
        tuple(Tensor(shape, HALF) for shape in inputs),
        tuple(Tensor(shape, HALF) for shape in outputs),
        tuple((name, (number,)) for name, number in numbers.items()),
    )


@pytest.mark.parametrize("shapes", [SAME, CROSS])
def test_flops_are_those_that_torch_counts(shapes: tuple[Shape, Shape, Shape]) -> None:
    query, key, value = map(torch.Size, shapes)
    output = torch.Size((*query[:-1], value[-1]))
    forward, backward = (
        cost_of_op(attention(kind, shapes)) for kind in ("attention", "attention_gradient")
    )
    assert forward.known
    assert forward.flops == sdpa_flop_count(query, key, value)  # type: ignore[no-untyped-call]
    assert backward.flops == sdpa_backward_flop_count(output, query, key, value)  # type: ignore[no-untyped-call]


def test_the_gradient_takes_five_products_for_two() -> None:
    forward, gradient = (
        cost_of_op(attention(k, SAME)) for k in ("attention", "attention_gradient")
    )
    assert forward.flops == 4 * 2 * 12 * 384 * 384 * 64
    assert gradient.flops == 2.5 * forward.flops


def test_a_causal_kernel_counts_the_scores_that_its_mask_leaves() -> None:
    """By enumeration: query i sees keys 0 to i."""
    rows, columns = 10, 40
    seen = sum(min(i + 1, columns) for i in range(rows))
    flops = cost_of_op(attention("attention", CROSS, causal=1)).flops
    assert flops == 2 * 16 * seen * (32 + 48)
    tall = ((1, 1, 40, 4), (1, 1, 10, 4), (1, 1, 10, 4))
    seen = sum(min(i + 1, 10) for i in range(40))
    assert cost_of_op(attention("attention", tall, causal=1)).flops == 4 * seen * 4
    plain, causal = (cost_of_op(attention("attention", SAME, causal=n)).flops for n in (0, 1))
    assert causal / plain == pytest.approx(385 / 768)


def test_scores_are_neither_read_nor_written() -> None:
    """Queries, keys, values and outputs once each, in half precision."""
    cost = cost_of_op(attention("attention", SAME))
    each = 2 * 2 * 12 * 384 * 64
    assert (cost.bytes_read, cost.bytes_written) == (3 * each, each)


def test_it_is_a_product_for_each_head() -> None:
    for kind in ("attention", "attention_gradient"):
        op = attention(kind, SAME)
        flops = cost_of_op(op).flops
        product = product_of(op, flops)
        assert product is not None
        assert (product.m, product.n, product.count) == (384, 384, 24)
        assert 2 * product.m * product.n * product.k * product.count == flops


def test_without_lengths_its_cost_is_unknown() -> None:
    bare = OpSignature("attention", (Tensor(None, HALF),) * 3, (Tensor(None, HALF),))
    assert not cost_of_op(bare).known
    assert not cost_of_op(OpSignature("attention", (), ())).known
