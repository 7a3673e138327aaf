"""Context parallelism by hand: FLOPs, bytes of rings and of all-to-alls, refused lengths."""

from __future__ import annotations

import numpy as np
import pytest

from driple.errors import GraphError
from driple.graph.cost import cost_of_graph
from driple.graph.opgraph import OpGraph
from driple.step.context_shard import context_shard
from tests.step.mixtures import LAYERS, SAMPLES, TOKENS, TYPE_BYTES, WIDTH, dense

SHARE = SAMPLES * TOKENS * WIDTH * TYPE_BYTES  # bytes of all keys, or of all values
PRODUCTS = ("matmul", "attention", "attention_gradient")


def flops_of(graph: OpGraph, *kinds: str) -> np.ndarray:
    """FLOPs of each node of some kinds."""
    chosen = [graph.signatures[i].kind in kinds for i in graph.signature_of.tolist()]
    flops: np.ndarray = cost_of_graph(graph).flops[np.array(chosen)]
    return flops


@pytest.mark.parametrize("degree", [2, 4])
@pytest.mark.parametrize("exchanges_heads", [False, True])
def test_a_device_computes_on_its_tokens(degree: int, exchanges_heads: bool) -> None:
    """Each product takes 1 / n of the FLOPs; parameters and gradients are whole."""
    graph = dense()
    shard = context_shard(graph, degree, exchanges_heads=exchanges_heads)
    whole, part = (flops_of(one, "matmul") for one in (graph, shard.graph))
    assert (degree * part).tolist() == whole.tolist()
    scores, own = (flops_of(one, "attention").sum() for one in (graph, shard.graph))
    causal_rounding = (TOKENS + 1) / TOKENS  # a query sees itself, too
    assert degree * own == pytest.approx(scores, rel=causal_rounding - 1)
    assert shard.graph.parameters.nbytes.tolist() == graph.parameters.nbytes.tolist()
    assert shard.graph.sent_bytes == graph.sent_bytes
    assert shard.graph.update == graph.update


def test_keys_and_values_go_round_a_ring() -> None:
    """Both in the forward pass, with their gradients in the backward pass; hidden by attention."""
    shard = context_shard(dense(), 4)
    sizes = sorted(one.nbytes for one in shard.exchanges)
    assert sizes == [2.0 * SHARE] * LAYERS + [4.0 * SHARE] * LAYERS
    assert all(one.kind == "ring" and one.is_hidden for one in shard.exchanges)


def test_heads_are_exchanged_for_tokens() -> None:
    """Queries, keys, values and results of a device's tokens, forward and backward."""
    shard = context_shard(dense(), 4, exchanges_heads=True)
    assert [one.nbytes for one in shard.exchanges] == [4.0 * SHARE / 4] * (2 * LAYERS)
    assert all(one.kind == "all_to_all" and not one.is_hidden for one in shard.exchanges)


@pytest.mark.parametrize("degree", [2, 4])
def test_activations_are_shares(degree: int) -> None:
    """What the forward pass keeps of the residual is 1 / n of it."""
    graph = dense()
    shard = context_shard(graph, degree)
    residuals = [
        node
        for node, at in enumerate(graph.signature_of.tolist())
        if graph.signatures[at].outputs
        and graph.signatures[at].outputs[0].shape == (SAMPLES, TOKENS, WIDTH)
    ]
    assert residuals
    assert set(shard.node_share[residuals].tolist()) <= {1 / degree}


@pytest.mark.parametrize(
    ("degree", "heads", "words"),
    [
        (3, False, r"cp3 does not divide into 2 x 3 parts of the 16 tokens .* 12 or 18 does"),
        (5, True, r"ulysses5 does not divide into the 16 tokens .* 15 or 20 does"),
        (8, True, r"ulysses8 does not divide the 4 heads of attention; 4 does"),
    ],
)
def test_lengths_that_do_not_divide_are_refused(degree: int, heads: bool, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        context_shard(dense(), degree, exchanges_heads=heads)
